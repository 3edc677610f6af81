//! `model_list`: every deployment, and the providers that they become.
//!
//! LiteLLM repeats address and key at every model; we have one provider for all models of an address. Deployments of one model that
//! differ only in their key become one provider with several keys, which rotate, if all its models have the same keys.

mod params;
mod place;

use std::collections::BTreeSet;

use super::note::{Level, Notes};
use super::value::{entries, get, line, parts, shown, string};

use crate::tree::Node;
use crate::words::{text, words};
pub(super) use place::ProviderPlace;

/// One deployment of a model.
#[derive(Debug, Clone)]
pub(super) struct Deployment {
    pub(super) line: u64,
    /// The name that clients ask for.
    pub(super) group: String,
    /// The model's own name at its provider.
    pub(super) model: String,
    pub(super) place: ProviderPlace,
    pub(super) key: Key,
    pub(super) unary: Option<String>,
    pub(super) first_token: Option<String>,
    /// Keys of `models` with their values.
    pub(super) info: Vec<(&'static str, String)>,
    /// Its priority within a model.
    pub(super) order: u64,
    /// It makes embeddings.
    pub(super) embeds: bool,
    /// Its own name, which fallbacks may use.
    pub(super) id: Option<String>,
    /// Its settings of retries: the name, its line and the number, if it is one. The first one counts.
    pub(super) retries: Vec<(&'static str, u64, Option<u64>)>,
}

/// The credential of a deployment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// Nothing.
    None,
    /// The value of a variable.
    Variable(String),
    /// The key itself. It is compared and never written.
    Plain(String, &'static str),
}

/// A provider of ours.
#[derive(Debug, Clone)]
pub(super) struct Provider {
    pub(super) name: String,
    pub(super) place: ProviderPlace,
    /// Names of variables.
    pub(super) keys: Vec<String>,
}

/// All providers, and which deployment belongs to which.
#[derive(Debug, Default)]
pub(super) struct Providers {
    pub(super) list: Vec<Provider>,
    /// By the number of the deployment.
    of: Vec<usize>,
    pub(super) variables: BTreeSet<String>,
}

impl Providers {
    /// The provider of a deployment.
    pub(super) fn of(&self, deployment: usize) -> Option<&Provider> {
        self.of.get(deployment).and_then(|at| self.list.get(*at))
    }
}

/// Reads `model_list`. What cannot be translated is left out, with a note.
pub(super) fn read(root: &Node, notes: &mut Notes) -> Vec<Deployment> {
    let Some(list) = get(root, "model_list") else { return Vec::new() };
    let credentials = get(root, "credential_list").map(parts).unwrap_or_default();
    let mut found: Vec<Deployment> = Vec::new();
    for node in parts(list) {
        let Some(group) = get(node, "model_name").and_then(string).filter(|name| is_name(name)) else {
            notes.left(
                line(node),
                "model_list",
                words("a model without a usable `model_name`", "使用できる `model_name` がないモデルです"),
            );
            continue;
        };
        let Some(own) = get(node, "litellm_params") else {
            notes.left(
                line(node),
                &shown(&group),
                words("it has no `litellm_params`", "`litellm_params` がありません"),
            );
            continue;
        };
        found.extend(params::read(&group, node, own, credentials, notes));
        for (name, value) in entries(node) {
            if !["model_name", "litellm_params", "model_info"].contains(&name) {
                notes.left(
                    line(value),
                    &shown(name),
                    words("Koboshi has no such setting", "Koboshi にこの設定はありません"),
                );
            }
        }
    }
    found
}

/// Whether a name can be the name of a route.
pub(super) fn is_name(name: &str) -> bool {
    match crate::schema::Key::find("routes.*").map(|row| &row.shape) {
        Some(crate::schema::Shape::Entry(entries)) => (entries.name.holds)(name),
        _ => true,
    }
}

/// Makes providers of deployments, and names variables for keys that are in the file.
pub(super) fn providers(deployments: &[Deployment], notes: &mut Notes) -> Providers {
    let keys = variables(deployments, notes);
    let mut places: Vec<&ProviderPlace> = Vec::new();
    for deployment in deployments {
        if !places.contains(&&deployment.place) {
            places.push(&deployment.place);
        }
    }
    let mut all = Providers { of: vec![usize::MAX; deployments.len()], ..Providers::default() };
    all.variables.extend(keys.iter().flatten().cloned());
    for place in places {
        let here: Vec<usize> = numbers(deployments, |one| one.place == *place);
        let sets = key_sets(&here, deployments, &keys);
        for set in sets {
            let name = free_name(place.vendor.name, &all.list);
            let at = all.list.len();
            for number in &here {
                let own = keys.get(*number).cloned().flatten();
                let fits = own.is_none() && set.is_empty() || own.is_some_and(|own| set.contains(&own));
                if let (true, Some(slot)) = (fits, all.of.get_mut(*number)) {
                    *slot = at;
                }
            }
            all.list.push(Provider { name, place: place.clone(), keys: set });
        }
    }
    all
}

fn numbers(deployments: &[Deployment], holds: impl Fn(&Deployment) -> bool) -> Vec<usize> {
    deployments.iter().enumerate().filter(|(_, one)| holds(one)).map(|(number, _)| number).collect()
}

/// The keys of the providers at one place: all in one if every model there has all of them, else one provider for each.
fn key_sets(here: &[usize], deployments: &[Deployment], keys: &[Option<String>]) -> Vec<Vec<String>> {
    let key_of = |number: usize| keys.get(number).cloned().flatten();
    let mut all: Vec<String> = Vec::new();
    let mut models: Vec<(&str, &str)> = Vec::new();
    for number in here {
        if let Some(key) = key_of(*number).filter(|key| !all.contains(key)) {
            all.push(key);
        }
        if let Some(one) = deployments.get(*number) {
            let model = (one.group.as_str(), one.model.as_str());
            if !models.contains(&model) {
                models.push(model);
            }
        }
    }
    let has_all = |(group, model): &(&str, &str)| {
        let of_model = |number: &&usize| {
            deployments.get(**number).is_some_and(|one| one.group == *group && one.model == *model)
        };
        let own: BTreeSet<Option<String>> =
            here.iter().filter(of_model).map(|number| key_of(*number)).collect();
        all.iter().all(|key| own.contains(&Some(key.clone()))) && !own.contains(&None)
    };
    let mixed = here.iter().any(|number| key_of(*number).is_none());
    if all.len() > 1 && models.iter().all(has_all) {
        return vec![all];
    }
    let mut sets: Vec<Vec<String>> = all.into_iter().map(|key| vec![key]).collect();
    if mixed {
        sets.push(Vec::new());
    }
    sets
}

fn free_name(wanted: &str, taken: &[Provider]) -> String {
    let is_free = |name: &String| !taken.iter().any(|provider| provider.name == *name);
    let others = (2_u32..).map(|number| format!("{wanted}-{number}"));
    std::iter::once(wanted.to_owned()).chain(others).find(is_free).unwrap_or_default()
}

/// The variable of each deployment's key. A key in the file gets a variable of its own.
fn variables(deployments: &[Deployment], notes: &mut Notes) -> Vec<Option<String>> {
    let mut taken: BTreeSet<String> = deployments
        .iter()
        .filter_map(|one| match &one.key {
            Key::Variable(name) => Some(name.clone()),
            _ => None,
        })
        .collect();
    let mut plain: Vec<(&str, String)> = Vec::new();
    let mut found = Vec::new();
    for deployment in deployments {
        found.push(match &deployment.key {
            Key::None => None,
            Key::Variable(name) => Some(name.clone()),
            Key::Plain(secret, wanted) => {
                let known = plain.iter().find(|(other, _)| other == secret).map(|(_, name)| name.clone());
                let name = known.unwrap_or_else(|| {
                    let others = (2_u32..).map(|number| format!("{wanted}_{number}"));
                    let mut names = std::iter::once((*wanted).to_owned()).chain(others);
                    let name = names.find(|name| !taken.contains(name)).unwrap_or_default();
                    taken.insert(name.clone());
                    plain.push((secret, name.clone()));
                    name
                });
                let reason = text!(
                    "the key stands in the file: put it into the environment variable `{name}`",
                    "キーがファイルに直接書かれています。環境変数 `{name}` に設定してください"
                );
                notes.add(deployment.line, "api_key", Level::Todo, reason);
                Some(name)
            }
        });
    }
    found
}

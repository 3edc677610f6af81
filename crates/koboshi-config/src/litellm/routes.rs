//! Routes: the deployments of a model in their order, then those of its fallbacks.

use super::deployments::{Deployment, Providers, is_name};
use super::note::{Level, Notes};
use super::settings::{Fallback, fallbacks};
use super::value::{entries, get, line, model, parts, string};
use crate::tree::{Node, Raw};
use crate::words::{text, words};

/// No chain of ours is longer.
const LONGEST: usize = 16;

/// A route of ours.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) name: String,
    pub(super) chain: Vec<String>,
}

/// What leads where.
struct Build<'b> {
    deployments: &'b [Deployment],
    providers: &'b Providers,
}

/// Builds all routes.
pub(super) fn build(
    root: &Node,
    deployments: &[Deployment],
    providers: &Providers,
    notes: &mut Notes,
) -> Vec<Route> {
    let build = Build { deployments, providers };
    let mut routes: Vec<Route> = Vec::new();
    for deployment in deployments {
        if !routes.iter().any(|route| route.name == deployment.group) {
            let chain = build.chain(&deployment.group, notes);
            routes.push(Route { name: deployment.group.clone(), chain });
        }
    }
    // Models of which nothing could be translated may still have fallbacks.
    for name in names(root) {
        if !routes.iter().any(|route| route.name == name) {
            routes.push(Route { name, chain: Vec::new() });
        }
    }
    build.fall_back(root, &mut routes, notes);
    build.aliases(root, &mut routes, notes);
    for route in &mut routes {
        if route.chain.len() > LONGEST {
            route.chain.truncate(LONGEST);
            let reason = text!(
                "its chain has more than {LONGEST} targets; the others are left out",
                "ターゲットが {LONGEST} 個を超えるため、残りは省略しました"
            );
            notes.add(1, &model(&route.name), Level::Left, reason);
        }
    }
    routes.retain(|route| !route.chain.is_empty());
    for route in &routes {
        let is_translated = deployments.iter().any(|one| one.group == route.name);
        if let Some(at) = line_of(root, &route.name).filter(|_| !is_translated) {
            let reason = text!(
                "its own deployments were not translated: its route has only its fallbacks, {}",
                "このモデル自体のデプロイは変換されず、ルートにはフォールバックだけがあります: {}",
                route.chain.join(", ")
            );
            notes.add(at, &model(&route.name), Level::Changed, reason);
        }
    }
    routes
}

/// Every name of `model_list`.
fn names(root: &Node) -> Vec<String> {
    let list = get(root, "model_list").map(parts).unwrap_or_default();
    list.iter()
        .filter_map(|node| get(node, "model_name").and_then(string))
        .filter(|name| is_name(name))
        .collect()
}

/// Where `model_list` first has this name.
fn line_of(root: &Node, name: &str) -> Option<u64> {
    let list = get(root, "model_list").map(parts).unwrap_or_default();
    list.iter()
        .filter_map(|node| get(node, "model_name"))
        .find(|node| string(node).as_deref() == Some(name))
        .map(line)
}

/// A setting of the router, else of the module: the router's wins.
fn setting<'n>(root: &'n Node, key: &str) -> Option<&'n Node> {
    ["router_settings", "litellm_settings"].iter().find_map(|section| get(get(root, section)?, key))
}

impl Build<'_> {
    /// The targets of a model, by `order` and then as they stand in the file.
    fn chain(&self, group: &str, notes: &mut Notes) -> Vec<String> {
        let mut own: Vec<(u64, usize)> = self
            .deployments
            .iter()
            .enumerate()
            .filter(|(_, one)| one.group == group)
            .map(|(number, one)| (one.order, number))
            .collect();
        own.sort();
        let mut chain = Vec::new();
        for (_, number) in own {
            if let Some(target) = self.target(group, number, notes)
                && !chain.contains(&target)
            {
                chain.push(target);
            }
        }
        chain
    }

    /// `provider/model`; none where a pattern leads to the provider by itself, or nowhere.
    fn target(&self, group: &str, number: usize, notes: &mut Notes) -> Option<String> {
        let (deployment, provider) = (self.deployments.get(number)?, self.providers.of(number)?);
        let name = &provider.name;
        let Some((before, after)) = deployment.model.split_once('*') else {
            return Some(format!("{name}/{}", deployment.model));
        };
        // `claude-*` at `anthropic/claude-*`, and `*` at `openai/*`: the model keeps its name.
        if after.is_empty() && (group == "*" && before.is_empty() || group == deployment.model) {
            return Some(format!("{name}/{{model}}"));
        }
        // `openai/*` at `openai/*`: a model with its provider before it needs no route.
        if after.is_empty() && before.is_empty() && group == format!("{name}/*") {
            return None;
        }
        let reason = text!(
            "this pattern cannot be written as a route; ask for `{name}/MODEL` instead",
            "このパターンはルートとして書けません。代わりに `{name}/モデル名` を指定してください"
        );
        notes.add(deployment.line, &model(group), Level::Left, reason);
        None
    }

    /// The targets of a name that a fallback gives: a model, a deployment, or a model of a pattern.
    fn named(&self, name: &str, routes: &[Route], notes: &mut Notes) -> Option<Vec<String>> {
        if self.deployments.iter().any(|one| one.group == name) {
            return Some(self.chain(name, notes));
        }
        if let Some(number) = self.deployments.iter().position(|one| one.id.as_deref() == Some(name)) {
            return self.target(name, number, notes).map(|target| vec![target]);
        }
        if routes.iter().any(|route| route.name == name) {
            return Some(Vec::new());
        }
        let (provider, _) = name.split_once('/')?;
        let is_pattern = |one: &&Deployment| one.group == format!("{provider}/*");
        self.deployments.iter().find(is_pattern).map(|_| vec![name.to_owned()])
    }

    fn fall_back(&self, root: &Node, routes: &mut [Route], notes: &mut Notes) {
        let general = setting(root, "fallbacks").map(fallbacks).unwrap_or_default();
        for Fallback { from, line, to } in general.iter().filter(|one| one.from != "*") {
            if routes.iter().any(|route| route.name == *from) {
                self.append(from, "fallbacks", to, routes, notes);
            } else {
                let reason =
                    words("there is no such model in `model_list`", "`model_list` にそのモデルがありません");
                notes.left(*line, "fallbacks", reason);
            }
        }
        let has_own = |name: &str| general.iter().any(|one| one.from == name);
        let for_all = general.iter().filter(|one| one.from == "*");
        let mut defaults: Vec<(String, u64)> = for_all.flat_map(|one| one.to.clone()).collect();
        if let Some(node) = setting(root, "default_fallbacks") {
            defaults.extend(parts(node).iter().filter_map(|one| Some((string(one)?, line(one)))));
        }
        let names: Vec<String> = routes.iter().map(|route| route.name.clone()).collect();
        for name in names.iter().filter(|name| !has_own(name)) {
            self.append(name, "default_fallbacks", &defaults, routes, notes);
        }
        for key in ["context_window_fallbacks", "content_policy_fallbacks"] {
            let Some(node) = setting(root, key) else { continue };
            for one in fallbacks(node) {
                self.append(&one.from, key, &one.to, routes, notes);
            }
            let reason = words(
                "these targets are at the end of the chain: they are tried after every kind of failure, not after this one only",
                "これらのターゲットはルートのリストの末尾に置かれ、この種類に限らず、どの失敗の後でも試されます",
            );
            notes.add(line(node), key, Level::Changed, reason);
            if key == "content_policy_fallbacks" {
                let reason = words(
                    "`request.route_around_filters: true` was written for it: it holds for every route, so a request that a content filter refuses goes on to the next target of any chain",
                    "これに伴い `request.route_around_filters: true` を書き込みました。これはすべてのルートに適用され、どのルートでも、コンテンツフィルターに拒否されたリクエストが次のターゲットに送られます",
                );
                notes.add(line(node), key, Level::Changed, reason);
            }
        }
    }

    fn append(&self, from: &str, key: &str, to: &[(String, u64)], routes: &mut [Route], notes: &mut Notes) {
        for (name, at) in to.iter().filter(|(name, _)| name != from) {
            let Some(targets) = self.named(name, routes, notes) else {
                let reason = text!(
                    "there is no model `{}` in `model_list`",
                    "`model_list` に `{}` というモデルがありません",
                    model(name)
                );
                notes.add(*at, key, Level::Left, reason);
                continue;
            };
            let Some(route) = routes.iter_mut().find(|route| route.name == from) else { continue };
            // A pattern without a route leads to its provider by itself: a route of fallbacks alone would stand in the way.
            if route.chain.is_empty() && from.contains('*') {
                let reason = text!(
                    "the pattern `{}` leads to its provider without a route, so this one gets no fallbacks",
                    "パターン `{}` はルートなしでプロバイダーに対応するため、このパターンにはフォールバックが付きません",
                    model(from)
                );
                notes.add(*at, key, Level::Left, reason);
                continue;
            }
            // A target whose model is what the client asked for does not fit another route.
            for target in targets.into_iter().filter(|target| !target.contains("{model}")) {
                if !route.chain.contains(&target) {
                    route.chain.push(target);
                }
            }
        }
    }

    fn aliases(&self, root: &Node, routes: &mut Vec<Route>, notes: &mut Notes) {
        let Some(node) = setting(root, "model_group_alias") else { return };
        for (alias, value) in entries(node) {
            let name = match &value.value {
                Raw::Map(_) => get(value, "model").and_then(string),
                _ => string(value),
            };
            let chain = name.as_deref().and_then(|name| routes.iter().find(|route| route.name == name));
            match chain.map(|route| route.chain.clone()).filter(|chain| !chain.is_empty()) {
                Some(chain) if is_name(alias) && !routes.iter().any(|route| route.name == alias) => {
                    routes.push(Route { name: alias.to_owned(), chain });
                }
                Some(_) => {}
                None => notes.left(
                    line(value),
                    &format!("model_group_alias.{}", model(alias)),
                    words("there is no such model in `model_list`", "`model_list` にそのモデルがありません"),
                ),
            }
        }
    }
}

//! A config of LiteLLM's proxy, translated into one of ours.
//!
//! [`translate`] reads `model_list`, `router_settings`, `litellm_settings`, `general_settings` and `credential_list`, and writes a
//! `koboshi.yaml` that can be used once its variables are set. What has no counterpart is listed with its line and the reason, in the
//! result and as a comment in the text: nothing is dropped silently. Keys in the file never appear in the text; a variable
//! replaces them.
//!
//! It does not read files, variables or LiteLLM's database, and it does not ask providers which models they have.

mod deployments;
mod note;
mod routes;
mod settings;
mod value;
mod vendors;
mod write;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use deployments::Deployment;

use crate::broken::broken_yaml;
use crate::check::{Problem, Problems};
use crate::foreign;
use crate::load::{MAX_BYTES, too_large};
use crate::source::Source;
use crate::tree;
use crate::words::{Text, text, words};

pub use note::{Level, Note};
#[cfg(test)]
pub(crate) use vendors::names;

/// The result of a translation.
#[derive(Debug, Clone)]
pub struct Translation {
    /// The config.
    pub text: String,
    /// What differs from before, in the order of the file.
    pub notes: Vec<Note>,
    /// Variables that must be set before the config can be used.
    pub variables: BTreeSet<String>,
}

impl Translation {
    /// Whether everything could be translated.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.notes.iter().all(|note| note.level != Level::Left)
    }
}

/// Translates a config of LiteLLM's proxy. `name` is the name of its file, for messages.
///
/// ```
/// use koboshi_config::{config::Language, litellm::translate};
///
/// let theirs = "model_list: [{model_name: fast, litellm_params: {model: openai/gpt-4o-mini, api_key: sk-secret-1}}]";
/// let ours = translate("config.yaml", theirs, Language::En)?;
/// assert!(ours.text.contains("fast: [openai/gpt-4o-mini]") && !ours.text.contains("sk-secret-1"));
/// assert!(ours.variables.contains("OPENAI_API_KEY"));
/// # Ok::<(), koboshi_config::check::Problems>(())
/// ```
///
/// # Errors
/// If it is no YAML, no config of LiteLLM, or if nothing of it can be translated.
pub fn translate(name: &str, text: &str, language: crate::config::Language) -> Result<Translation, Problems> {
    if text.len() > MAX_BYTES {
        return Err(Problems::unreadable(too_large(name)));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root = tree::parse(text)
        .map_err(|broken| Problems::unreadable(broken_yaml(&Source::broken(name, text), &broken)))?;
    let root = root.filter(foreign::is_litellm).ok_or_else(|| refuse(name, not_litellm()))?;
    let mut notes = note::Notes::default();
    let deployments = deployments::read(&root, &mut notes);
    let mut settings = settings::read(&root, &mut notes);
    settings.retries = retries(settings.retries, &deployments, &mut notes);
    let providers = deployments::providers(&deployments, &mut notes);
    let routes = routes::build(&root, &deployments, &providers, &mut notes);
    if routes.is_empty() && providers.list.is_empty() {
        return Err(refuse(name, nothing(&notes.list)));
    }
    let notes = notes.sorted();
    let plan = write::Plan {
        name,
        deployments: &deployments,
        providers: &providers,
        routes: &routes,
        settings: &settings,
        notes: &notes,
    };
    let written = plan.text(language);
    let mut variables = write::variables(&written);
    variables.extend(providers.variables.iter().cloned());
    Ok(Translation { text: written, notes, variables })
}

/// How often every deployment is retried: by the settings, else by the deployments if all agree. Other values are noted.
fn retries(set: Option<u64>, deployments: &[Deployment], notes: &mut note::Notes) -> Option<u64> {
    let own = |one: &Deployment| one.retries.first().and_then(|(_, _, count)| *count);
    let first = deployments.first().and_then(own);
    let retries = set.or_else(|| first.filter(|_| deployments.iter().all(|one| own(one) == first)));
    let others = deployments.iter().flat_map(|one| &one.retries);
    for (name, line, _) in others.filter(|(_, _, count)| count.is_none() || *count != retries) {
        let reason = words(
            "retries are set for all models together: see `retry.max_attempts`",
            "再試行回数は全モデル共通です。`retry.max_attempts` を参照してください",
        );
        notes.left(*line, name, reason);
    }
    retries
}

fn refuse(name: &str, message: Text) -> Problems {
    Problems::unreadable(Problem::of_file(name, message, None))
}

fn not_litellm() -> Text {
    words(
        "this is no config of LiteLLM's proxy: it has no `model_list`",
        "LiteLLM プロキシの設定ファイルではありません（`model_list` がありません）",
    )
    .into()
}

fn nothing(notes: &[Note]) -> Text {
    let reasons: Vec<&Note> = notes.iter().filter(|note| note.level == Level::Left).take(5).collect();
    let all = |language| -> String {
        reasons.iter().map(|note| format!("\n  {}", note.show(language))).collect::<Vec<_>>().concat()
    };
    let (en, ja) = (all(crate::config::Language::En), all(crate::config::Language::Ja));
    let head = text!("nothing in it can be translated", "変換できる内容がありません");
    Text::new(
        format!("{}{en}", head.get(crate::config::Language::En)),
        format!("{}{ja}", head.get(crate::config::Language::Ja)),
    )
}

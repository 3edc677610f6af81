//! Writes the translated config: sections in the order of our documentation, and at the end what was not carried over.

use std::collections::BTreeSet;

use super::deployments::{Deployment, Provider, Providers};
use super::note::{Level, Note};
use super::routes::Route;
use super::settings::{Settings, scaled};
use crate::config::Language;
use crate::secret::is_name;
use crate::source::printable;
use crate::words::{Words, words};

/// Attempts of a request by default.
const DEFAULT_ATTEMPTS: u64 = 6;
/// The longest delay of a retry by default, in seconds.
const DEFAULT_DELAY: f64 = 10.0;
/// The largest count of a breaker.
const MAX_FAILURES: u64 = 254;

/// Everything that is written.
pub(super) struct Plan<'p> {
    pub(super) name: &'p str,
    pub(super) deployments: &'p [Deployment],
    pub(super) providers: &'p Providers,
    pub(super) routes: &'p [Route],
    pub(super) settings: &'p Settings,
    pub(super) notes: &'p [Note],
}

impl Plan<'_> {
    pub(super) fn text(&self, language: Language) -> String {
        let mut body = self.providers();
        body.push_str(&self.routes());
        body.push_str(&self.models());
        body.push_str(&self.policies());
        let mut out = self.head(&body, language);
        out.push_str(&body);
        out.push_str(&self.hints(language));
        out.push_str(&self.left(language));
        out
    }

    fn head(&self, body: &str, language: Language) -> String {
        let name = printable(self.name).replace('\n', " ");
        let variables: Vec<String> = variables(body).into_iter().collect();
        let variables = variables.join(language.comma());
        let lines = match language {
            Language::En => format!(
                "# Translated from {name} of LiteLLM by `koboshi import litellm`. `koboshi check` says whether it is valid.\n\
                 # LiteLLM listens on port 4000, Koboshi on 127.0.0.1:4141; `serve.listen` changes it.\n"
            ),
            Language::Ja => format!(
                "# LiteLLM の {name} から `koboshi import litellm` で変換しました。`koboshi check` で確認できます。\n\
                 # LiteLLM はポート 4000、Koboshi は 127.0.0.1:4141 で待ち受けます。変更するには `serve.listen` を設定してください。\n"
            ),
        };
        let set = words("# Set these variables first: ", "# 先に設定する環境変数: ").get(language);
        let set = if variables.is_empty() { String::new() } else { format!("{set}{variables}\n") };
        format!("{lines}{set}\n")
    }

    fn providers(&self) -> String {
        let mut out = "providers:\n".to_owned();
        for provider in &self.providers.list {
            out.push_str(&self.provider(provider));
        }
        out
    }

    fn provider(&self, provider: &Provider) -> String {
        let place = &provider.place;
        let mut lines = vec![format!("kind: {}", place.vendor.kind.name())];
        let mut put = |key: &str, value: &Option<String>| {
            lines.extend(value.as_ref().map(|value| format!("{key}: {}", quoted(value))));
        };
        put("base_url", &place.base_url);
        put("api_version", &place.api_version);
        put("project", &place.project);
        put("location", &place.location);
        put("credentials_file", &place.credentials);
        if !provider.keys.is_empty() {
            let keys: Vec<String> = provider.keys.iter().map(|name| format!("\"${{{name}}}\"")).collect();
            lines.push(format!("keys: [{}]", keys.join(", ")));
        }
        lines.extend(timeouts(&self.settings.unary, &self.settings.first_token));
        let lines: String = lines.iter().map(|line| format!("    {line}\n")).collect();
        format!("  {}:\n{lines}", provider.name)
    }

    fn routes(&self) -> String {
        if self.routes.is_empty() {
            return String::new();
        }
        let mut out = "\nroutes:\n".to_owned();
        for route in self.routes {
            let chain: Vec<String> = route.chain.iter().map(|target| quoted(target)).collect();
            out.push_str(&format!("  {}: [{}]\n", quoted(&route.name), chain.join(", ")));
        }
        out
    }

    fn models(&self) -> String {
        let mut seen: Vec<String> = Vec::new();
        let mut out = String::new();
        for (number, deployment) in self.deployments.iter().enumerate() {
            let Some(provider) = self.providers.of(number) else { continue };
            let target = format!("{}/{}", provider.name, deployment.model);
            let mut lines: Vec<String> =
                deployment.info.iter().map(|(key, value)| format!("{key}: {value}")).collect();
            lines.extend(timeouts(&deployment.unary, &deployment.first_token));
            if lines.is_empty() || seen.contains(&target) {
                continue;
            }
            let lines: String = lines.iter().map(|line| format!("    {line}\n")).collect();
            out.push_str(&format!("  {}:\n{lines}", quoted(&target)));
            seen.push(target);
        }
        if out.is_empty() { out } else { format!("\nmodels:\n{out}") }
    }

    /// The settings for all models.
    fn policies(&self) -> String {
        let settings = self.settings;
        let mut sections: Vec<(&str, Vec<String>)> = Vec::new();
        let mut retry = Vec::new();
        let attempts = settings.retries.map(|count| count.saturating_add(1).min(1000));
        retry.extend(attempts.map(|count| format!("max_attempts: {count}")));
        if let Some(delay) = &settings.initial_delay {
            retry.push(format!("initial_delay: {delay}"));
            retry.push(format!("max_delay: {}", scaled(delay, DEFAULT_DELAY)));
        }
        sections.push(("retry", retry));
        let longest = self.routes.iter().map(|route| route.chain.len()).max().unwrap_or_default();
        let longest = u64::try_from(longest).unwrap_or_default();
        let needed = longest.saturating_add(attempts.unwrap_or(1)).saturating_sub(1);
        let mut request = Vec::new();
        if needed > DEFAULT_ATTEMPTS {
            request.push(format!("max_attempts: {needed}"));
        }
        if settings.route_around_filters {
            request.push("route_around_filters: true".to_owned());
        }
        sections.push(("request", request));
        let mut breaker = Vec::new();
        breaker.extend(
            settings.failures.map(|count| format!("consecutive_failures: {}", count.clamp(1, MAX_FAILURES))),
        );
        breaker.extend(
            settings
                .open
                .as_ref()
                .map(|open| format!("open: {{initial: {open}, multiplier: 1, max: {open}}}")),
        );
        sections.push(("breaker", breaker));
        let concurrency = settings.concurrency.map(|count| format!("max_concurrency: {count}"));
        sections.push(("gate", concurrency.into_iter().collect()));
        let cache = settings.cache.as_ref().map(|ttl| match ttl {
            Some(ttl) => format!("cache: {{mode: serve, ttl: {ttl}}}"),
            None => "cache: {mode: serve}".to_owned(),
        });
        sections.push(("degrade", cache.into_iter().collect()));
        let mut log = Vec::new();
        if settings.json_logs {
            log.push("format: json".to_owned());
        }
        if settings.debug {
            log.push("level: debug".to_owned());
        }
        sections.push(("log", log));
        let text = |(name, lines): (&str, Vec<String>)| {
            let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
            format!("\n{name}:\n{lines}")
        };
        sections.into_iter().filter(|(_, lines)| !lines.is_empty()).map(text).collect()
    }

    /// What a user may want to add.
    fn hints(&self, language: Language) -> String {
        let mut out = String::new();
        if self.settings.master_key {
            let about = words(
                "Clients sent LiteLLM's master key. To ask for it here too, put its hash in: `printf %s \"$LITELLM_MASTER_KEY\" | sha256sum` prints it.",
                "これまでクライアントは LiteLLM のマスターキーを送信していました。Koboshi でも必須にする場合は、そのハッシュを書いてください（`printf %s \"$LITELLM_MASTER_KEY\" | sha256sum` で表示できます）。",
            );
            out.push_str(&comment(about, language));
            out.push_str("# keys:\n#   litellm: {sha256: put-the-64-digits-here}\n");
        }
        if let Some(redis) = &self.settings.redis {
            let about = words(
                "To share cooldowns and the cache between several machines:",
                "クールダウンとキャッシュを複数のマシンで共有するには:",
            );
            out.push_str(&comment(about, language));
            out.push_str(&format!("# store:\n#   redis: \"{redis}\"\n"));
        }
        out
    }

    /// What was not carried over.
    fn left(&self, language: Language) -> String {
        let mut out = String::new();
        for (level, title) in [
            (Level::Todo, words("To do:", "必要な作業:")),
            (Level::Changed, words("Translated, but not quite the same:", "変換したが、動作が異なるもの:")),
            (Level::Left, words("Not translated:", "変換できなかったもの:")),
        ] {
            let notes: Vec<&Note> = self.notes.iter().filter(|note| note.level == level).collect();
            if notes.is_empty() {
                continue;
            }
            out.push_str(&comment(title, language));
            for note in notes {
                out.push_str(&format!("#   {}\n", printable(&note.show(language)).replace('\n', " ")));
            }
        }
        out
    }
}

fn comment(text: Words, language: Language) -> String {
    format!("\n# {}\n", text.get(language))
}

fn timeouts(unary: &Option<String>, first_token: &Option<String>) -> Option<String> {
    let mut parts = Vec::new();
    parts.extend(unary.as_ref().map(|length| format!("unary: {length}")));
    // LiteLLM's timeout also applies to streams where they have none of their own.
    parts.extend(first_token.as_ref().or(unary.as_ref()).map(|length| format!("first_token: {length}")));
    (!parts.is_empty()).then(|| format!("timeouts: {{{}}}", parts.join(", ")))
}

/// A text as YAML: plain where it has only one reading.
fn quoted(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._/-".contains(c))
        && !["true", "false", "null", "on", "off", "yes", "no", "y", "n"]
            .contains(&text.to_lowercase().as_str());
    if plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

/// Variables that a text names outside of its comments.
pub(super) fn variables(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        for part in line.split("${").skip(1) {
            let name = part.split('}').next().unwrap_or_default();
            if is_name(name) {
                found.insert(name.to_owned());
            }
        }
    }
    found
}

//! Writes a user's first file: short, commented, and for the providers whose keys are in the environment.
//!
//! [`found`] reads the environment, [`text`] writes the file. It can be used unchanged, whichever providers are chosen:
//! those without a key are commented out, and without any provider there is a route that the simulated one answers.
//!
//! The command touches files and asks the user; this module does neither.

mod offers;
mod routes;

use crate::config::Language;
use crate::gateway::ProviderKind;
use crate::words::{Words, words};

pub use offers::{OFFERS, Offer};

/// A provider for the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Which one.
    pub offer: &'static Offer,
    /// The variable that shows that it is available, if one is set: with its key, or with its address where no key is needed.
    pub variable: Option<&'static str>,
    /// Another address than the usual one.
    pub base_url: Option<String>,
}

impl Choice {
    /// Whether the environment shows that it is available.
    #[must_use]
    pub fn is_found(&self) -> bool {
        self.variable.is_some()
    }

    /// Whether it can be used now; one that lacks its key is commented out.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.is_found() || !self.offer.needs_key()
    }
}

/// Checks the environment for a provider.
#[must_use]
pub fn detect(offer: &'static Offer, lookup: &dyn Fn(&str) -> Option<String>) -> Choice {
    let holds = |name: &&&str| lookup(name).is_some_and(|value| is_usable(&value));
    let telling = if offer.needs_key() { offer.keys } else { offer.address.as_slice() };
    let variable = telling.iter().find(holds).copied();
    let lacks = offer.also.iter().any(|name| lookup(name).is_none_or(|value| value.trim().is_empty()));
    let base_url = offer.address.and_then(lookup).and_then(|address| offers::address(offer.kind, &address));
    Choice { offer, variable: variable.filter(|_| !lacks), base_url }
}

/// The variables without which a provider stays commented out, because they are not set or hold nothing that can be used.
#[must_use]
pub fn missing(offer: &'static Offer, lookup: &dyn Fn(&str) -> Option<String>) -> Vec<&'static str> {
    if detect(offer, lookup).is_ready() {
        return Vec::new();
    }
    let has_key = offer.keys.iter().any(|name| lookup(name).is_some_and(|value| is_usable(&value)));
    let key = offer.keys.first().copied().filter(|_| !has_key);
    let also = offer.also.iter().copied();
    let lacks = also.filter(|name| lookup(name).is_none_or(|value| value.trim().is_empty()));
    key.into_iter().chain(lacks).collect()
}

/// The available providers, in the order of the table.
#[must_use]
pub fn found(lookup: &dyn Fn(&str) -> Option<String>) -> Vec<Choice> {
    OFFERS.iter().map(|offer| detect(offer, lookup)).filter(Choice::is_found).collect()
}

/// Whether the value of a variable can be a key: it is sent in a header unchanged.
fn is_usable(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The file.
#[must_use]
pub fn text(choices: &[Choice], language: Language) -> String {
    let mut out = String::new();
    let mut say = |lines: Words| {
        for line in lines.get(language).lines() {
            out.push_str(&format!("# {line}\n"));
        }
    };
    say(HEAD);
    out.push('\n');
    // Who reads the comments in Japanese wants the messages so too.
    if language == Language::Ja {
        out.push_str("# メッセージの言語。\nlanguage: ja\n\n");
    }
    out.push_str(&providers(choices, language));
    out.push('\n');
    out.push_str(&routes::text(choices, language));
    out.push_str(REST.get(language));
    out
}

const HEAD: Words = words(
    "koboshi.yaml, written by `koboshi init`. Every key is optional; docs/config.md describes all of them.\n\
     `koboshi check` says whether the file is valid and what it changes.",
    "koboshi.yaml: `koboshi init` が作成しました。どの設定項目も省略できます。説明は docs/config.md にあります。\n\
     `koboshi check` で、正しく書けているかと、既定値から何が変わるかを確認できます。",
);

const REST: Words = words(
    "
# Other machines need a key of their own. `printf %s \"$KEY\" | sha256sum` prints the hash.
# serve:
#   listen: 0.0.0.0:4141
# keys:
#   alice:
#     sha256: put-the-64-digits-here

# What is answered when all targets of a route have failed: a cached response.
# degrade:
#   cache: {mode: fallback}

# The loop guard stops agents that repeat the same tool calls. `observe` only reports them.
# guard:
#   mode: observe
",
    "
# ほかのマシンから使うには、専用のキーが必要です。ハッシュは `printf %s \"$KEY\" | sha256sum` で表示できます。
# serve:
#   listen: 0.0.0.0:4141
# keys:
#   alice:
#     sha256: ここに64桁のハッシュ

# ルートのすべてのターゲットが失敗したときに返す応答（キャッシュを使う例）。
# degrade:
#   cache: {mode: fallback}

# ループガードは、同じツール呼び出しを繰り返すエージェントを止めます。`observe` では報告だけを行います。
# guard:
#   mode: observe
",
);

fn providers(choices: &[Choice], language: Language) -> String {
    let about = words(
        "LLM providers. API keys come from environment variables; this file holds none.",
        "LLM プロバイダー。API キーは環境変数から読み込み、このファイルには書きません。",
    );
    let mut out = format!("# {}\nproviders:\n", about.get(language));
    for choice in choices.iter().filter(|choice| choice.is_ready()) {
        out.push_str(&block(choice, ""));
    }
    let waiting: Vec<&Choice> = choices.iter().filter(|choice| !choice.is_ready()).collect();
    if !waiting.is_empty() {
        let set = words(
            "Chosen, but a variable is missing yet: set those that are named, then remove each `#` and the space behind it.",
            "選択済みですが、必要な環境変数がまだ揃っていません。ここに書かれた環境変数を設定してから、`#` とその後の空白を外してください。",
        );
        out.push_str(&format!("  # {}\n", set.get(language)));
        waiting.iter().for_each(|choice| out.push_str(&block(choice, "# ")));
    }
    let shown =
        |offer: &&Offer| offer.is_common && !choices.iter().any(|choice| choice.offer.name == offer.name);
    let more: Vec<&'static Offer> = OFFERS.iter().filter(shown).collect();
    if !more.is_empty() {
        let others = words(
            "Other providers: set the variable, then remove each `#` and the space behind it. Servers with an OpenAI-compatible API have `kind: openai` and a `base_url`.",
            "ほかのプロバイダー: 環境変数を設定してから、`#` とその後の空白を外してください。OpenAI 互換 API のサーバーは `kind: openai` と `base_url` を書きます。",
        );
        let none = words(
            "Known providers: set the variable of one, then remove each `#` and the space behind it. Servers with an OpenAI-compatible API have `kind: openai` and a `base_url`.",
            "プロバイダーの例: 環境変数を設定してから、`#` とその後の空白を外してください。OpenAI 互換 API のサーバーは `kind: openai` と `base_url` を書きます。",
        );
        let said = if choices.is_empty() { none } else { others };
        out.push_str(&format!("  # {}\n", said.get(language)));
        for offer in more {
            out.push_str(&block(&Choice { offer, variable: None, base_url: None }, "# "));
        }
    }
    out
}

/// One provider, with `comment` before every line.
fn block(choice: &Choice, comment: &str) -> String {
    let Offer { name, kind, keys, .. } = choice.offer;
    let variable = choice.variable.or(keys.first().copied()).unwrap_or_default();
    let mut lines = vec![format!("{name}:"), format!("  kind: {}", kind.name())];
    match kind {
        ProviderKind::Azure => {
            let address = choice.base_url.clone().unwrap_or_else(|| "${AZURE_OPENAI_ENDPOINT}".to_owned());
            lines.push(format!("  base_url: \"{address}\""));
        }
        ProviderKind::Vertex => {
            lines.push("  project: \"${GOOGLE_CLOUD_PROJECT}\"".to_owned());
            lines.push("  credentials_file: \"${GOOGLE_APPLICATION_CREDENTIALS}\"".to_owned());
        }
        _ => {
            let address = choice.base_url.as_deref().or(choice.offer.base_url);
            lines.extend(address.map(|address| format!("  base_url: {address}")));
        }
    }
    if !matches!(kind, ProviderKind::Vertex | ProviderKind::Ollama) {
        lines.push(format!("  keys: [\"${{{variable}}}\"]"));
    }
    lines.iter().map(|line| format!("  {comment}{line}\n")).collect()
}

#[cfg(test)]
mod tests;

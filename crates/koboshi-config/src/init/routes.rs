//! The routes of a first file: every provider falls back to one of another vendor, where there is one.

use super::{Choice, Offer};
use crate::config::Language;
use crate::words::{Words, words};

const ABOUT: Words = words(
    "Which targets serve a request, by the model name that the client asks for. If a target fails, the next one is tried.\n\
     `{model}` is the name that the client asked for.",
    "クライアントが指定したモデル名ごとに、どのターゲットを使うかを書きます。失敗すると次のターゲットを試します。\n\
     `{model}` はクライアントが指定したモデル名です。",
);
const ALONE: Words = words(
    "A second vendor would survive an outage of this one: add its key above and one of its models to the lists.",
    "別のベンダーを加えると、このベンダーの障害時にも応答できます。上にキーを、下のリストにそのモデルを追加してください。",
);
const DEMO: Words = words(
    "To see a fallback without a key: the simulated provider fails first, then it answers. Ask for the model `demo`.",
    "API キーがなくてもフォールバックを試せるルートです。1 つ目の模擬ターゲットは必ず失敗し、2 つ目が応答します。モデル名に `demo` を指定してください。",
);
const DEMO_ROUTE: &str = "demo: [sim/fail-503, sim/ok]";

pub(super) fn text(choices: &[Choice], language: Language) -> String {
    let ready: Vec<&'static Offer> =
        choices.iter().filter(|choice| choice.is_ready()).map(|choice| choice.offer).collect();
    let mut out = comment(ABOUT, "", language);
    out.push_str("routes:\n");
    if ready.len() == 1 {
        out.push_str(&comment(ALONE, "  ", language));
    }
    for (pattern, chain) in routes(&ready) {
        let pattern = if pattern.starts_with('*') { format!("\"{pattern}\"") } else { pattern.to_owned() };
        out.push_str(&format!("  {pattern}: [{}]\n", chain.join(", ")));
    }
    out.push_str(&comment(DEMO, "  ", language));
    let mark = if ready.is_empty() { "" } else { "# " };
    out.push_str(&format!("  {mark}{DEMO_ROUTE}\n"));
    out
}

fn comment(text: Words, indent: &str, language: Language) -> String {
    text.get(language).lines().map(|line| format!("{indent}# {line}\n")).collect()
}

/// Patterns with their targets.
fn routes(ready: &[&'static Offer]) -> Vec<(&'static str, Vec<String>)> {
    let mut found: Vec<(&'static str, Vec<String>)> = Vec::new();
    for offer in ready {
        let patterns: &[&str] = if offer.patterns.is_empty() { &["*"] } else { offer.patterns };
        for pattern in patterns {
            if found.iter().any(|(known, _)| known == pattern) {
                continue;
            }
            // Others that have the very same models come first, such as Azure beside OpenAI.
            let own =
                ready.iter().filter(|other| other.name == offer.name || other.patterns.contains(pattern));
            let mut chain: Vec<String> = own.map(|offer| format!("\"{}/{{model}}\"", offer.name)).collect();
            chain.extend(stand_in(offer, ready));
            found.push((pattern, chain));
        }
    }
    found
}

/// The model that answers when a provider has failed: one of another vendor, else a smaller one of its own.
fn stand_in(offer: &Offer, ready: &[&'static Offer]) -> Option<String> {
    let at = ready.iter().position(|one| one.name == offer.name).unwrap_or_default();
    let others = ready.iter().cycle().skip(at + 1).take(ready.len().saturating_sub(1));
    let other =
        others.into_iter().find(|other| !other.stand_in.is_empty() && other.patterns != offer.patterns);
    match other {
        Some(other) => Some(format!("{}/{}", other.name, other.stand_in)),
        None => offer.smaller.map(|model| format!("{}/{model}", offer.name)),
    }
}

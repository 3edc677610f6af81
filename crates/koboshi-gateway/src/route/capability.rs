//! What models can do: a small built-in table, which the config extends.
//!
//! It is for preflight only: a target that surely cannot serve a request is skipped before it is asked. What is not known
//! counts as possible, because a wrong no is worse than a refusal by the provider, which is caught anyway. Only prefill counts
//! as impossible unless known: a model that does not know it answers something else without saying so.

use koboshi_config::gateway::{ModelConfig, Named, ProviderKind};
use koboshi_wire::chat::{JsonNeed, Needs};

/// What a model can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capability {
    pub(crate) context: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) tools: bool,
    pub(crate) images: bool,
    pub(crate) json: bool,
    pub(crate) prefill: bool,
    pub(crate) reasoning: bool,
}

/// Why a target cannot serve a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    /// The conversation is longer than its window: tokens needed, tokens there.
    Context(u64, u64),
    Tools,
    Images,
    Json,
}

const ANY: Capability = Capability {
    context: None,
    output: None,
    tools: true,
    images: true,
    json: true,
    prefill: false,
    reasoning: false,
};

const fn sized(context: u64, output: u64) -> Capability {
    Capability { context: Some(context), output: Some(output), ..ANY }
}

const fn thinking(context: u64, output: u64) -> Capability {
    Capability { reasoning: true, ..sized(context, output) }
}

const fn blind(context: u64, output: u64) -> Capability {
    Capability { images: false, ..sized(context, output) }
}

/// By the beginning of the model's name; the first that fits counts. Where a window or a limit depends on more than the name, the larger
/// one stands here.
const KNOWN: &[(&str, Capability)] = &[
    ("gpt-5-chat", sized(128_000, 16_384)),
    ("gpt-5.1", thinking(400_000, 128_000)),
    ("gpt-5.2", thinking(400_000, 128_000)),
    ("gpt-5.3", thinking(400_000, 128_000)),
    ("gpt-5.", thinking(1_050_000, 128_000)),
    ("gpt-5", thinking(400_000, 128_000)),
    ("gpt-oss", Capability { reasoning: true, ..blind(131_072, 131_072) }),
    ("gpt-4.5", sized(128_000, 16_384)),
    ("gpt-4.1", sized(1_047_576, 32_768)),
    ("gpt-4o", sized(128_000, 16_384)),
    ("chatgpt-4o", sized(128_000, 16_384)),
    ("gpt-4-turbo", sized(128_000, 4096)),
    ("gpt-4-1106", sized(128_000, 4096)),
    ("gpt-4-0125", sized(128_000, 4096)),
    ("gpt-4-vision", sized(128_000, 4096)),
    ("gpt-4-32k", blind(32_768, 32_768)),
    ("gpt-4", blind(8192, 8192)),
    ("gpt-3.5", blind(16_385, 4096)),
    ("o1", thinking(200_000, 100_000)),
    ("o3", thinking(200_000, 100_000)),
    ("o4", thinking(200_000, 100_000)),
    ("codex-", thinking(200_000, 100_000)),
    ("gemini-1.5-pro", sized(2_097_152, 8192)),
    ("gemini-1", sized(1_048_576, 8192)),
    ("gemini-2.0", sized(1_048_576, 8192)),
    // From 2.5 on all of them think.
    ("gemini-", thinking(1_048_576, 65_536)),
    ("gemma-3", sized(131_072, 8192)),
    ("deepseek-reasoner", Capability { reasoning: true, ..blind(128_000, 64_000) }),
    ("deepseek-v4", Capability { reasoning: true, ..blind(1_048_576, 393_216) }),
    ("deepseek-", blind(128_000, 8192)),
    ("grok-2", sized(131_072, 131_072)),
    ("grok-3", sized(131_072, 131_072)),
    ("grok-", sized(2_000_000, 2_000_000)),
];

/// A Claude, by its version, which every platform writes into the name in its own way (`claude-3-5-haiku-20241022`, `claude-opus-4.6`,
/// `claude-sonnet-4@20250514`). One without a version is a new one.
fn claude(model: &str) -> Option<Capability> {
    let mut words =
        model.split(|letter: char| !letter.is_ascii_alphanumeric()).skip_while(|word| *word != "claude");
    words.next()?;
    let words: Vec<&str> = words.collect();
    let number = |word: &&str| word.parse::<u32>().ok().filter(|_| word.len() <= 2);
    let at = words.iter().position(|word| number(word).is_some());
    let version = at.map(|at| {
        let part = |at: usize| words.get(at).and_then(number).unwrap_or(0);
        (part(at), part(at + 1))
    });
    let is = |family| words.contains(&family);
    let old = |capability| Capability { prefill: true, ..capability };
    Some(match version {
        Some(version) if version < (3, 0) => old(Capability { tools: false, ..blind(200_000, 4096) }),
        Some(version) if version < (3, 5) => old(sized(200_000, 4096)),
        Some(version) if version < (3, 7) => old(sized(200_000, 8192)),
        Some(version) if version < (4, 0) => old(thinking(200_000, 128_000)),
        Some(version) if version < (4, 6) => old(match version {
            _ if is("sonnet") => thinking(1_000_000, 64_000),
            (4, 5) => thinking(200_000, 64_000),
            _ => thinking(200_000, 32_000),
        }),
        // They refuse the beginning of an answer.
        _ => thinking(1_000_000, 128_000),
    })
}

impl Capability {
    /// What is known of a model of a provider.
    pub(crate) fn of(provider: &str, kind: ProviderKind, model: &str, told: &Named<ModelConfig>) -> Self {
        // Relays put the vendor before the name.
        let bare = model.rsplit('/').next().unwrap_or(model);
        let listed = || KNOWN.iter().find(|(start, _)| bare.starts_with(start)).map(|(_, known)| *known);
        let mut known = claude(bare).or_else(listed).unwrap_or(ANY);
        // Whether a relay hands on the beginning of an answer as it is meant is not known.
        known.prefill &= kind == ProviderKind::Anthropic;
        if kind == ProviderKind::Sim {
            known = Capability { prefill: !model.contains("prefill=refuse"), ..ANY };
        }
        if let Some(told) = told_of(provider, model, told) {
            known.context = told.context.or(known.context);
            known.output = told.output.or(known.output);
            known.tools = told.tools.unwrap_or(known.tools);
            known.images = told.images.unwrap_or(known.images);
            known.json = told.json.unwrap_or(known.json);
            known.prefill = told.prefill.unwrap_or(known.prefill);
            known.reasoning = told.reasoning.unwrap_or(known.reasoning);
        }
        known
    }

    /// What is missing for a request, if anything surely is.
    pub(crate) fn lacks(&self, needs: &Needs) -> Option<Lack> {
        if needs.tools && !self.tools {
            return Some(Lack::Tools);
        }
        if needs.images && !self.images {
            return Some(Lack::Images);
        }
        if needs.json != JsonNeed::None && !self.json {
            return Some(Lack::Json);
        }
        // The estimate is rough, so only what is far above the window is refused without asking.
        let window = self.context?;
        let asked =
            needs.input_tokens.saturating_add(needs.output.unwrap_or(0).min(self.output.unwrap_or(u64::MAX)));
        (asked > window.saturating_add(window / 4)).then_some(Lack::Context(asked, window))
    }
}

/// What the config says of a model: the most specific entry.
pub(crate) fn told_of<'a>(
    provider: &str,
    model: &str,
    told: &'a Named<ModelConfig>,
) -> Option<&'a ModelConfig> {
    if told.is_empty() {
        return None;
    }
    let name = format!("{provider}/{model}");
    if let Some(exact) = told.get(&name) {
        return Some(exact);
    }
    let fitting = told.iter().filter(|(pattern, _)| fits(pattern, &name));
    fitting.max_by_key(|(pattern, _)| pattern.len()).map(|(_, told)| told)
}

/// Whether a name fits a pattern in which `*` stands for anything. Linear in both for the few stars that people write.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut rest = rest;
    let mut last = None;
    for part in parts {
        if let Some(part) = last.replace(part) {
            match rest.find(part) {
                Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |last: &str| rest.ends_with(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, name, fitting) in [
            ("gpt-4o", "gpt-4o", true),
            ("gpt-4o", "gpt-4o-mini", false),
            ("gpt-*", "gpt-4o", true),
            ("*", "", true),
            ("*-mini", "gpt-4o-mini", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("a*a", "a", false),
            ("*/llama*", "groq/llama-3", true),
        ] {
            assert_eq!(fits(pattern, name), fitting, "{pattern} {name}");
        }
    }

    #[test]
    fn the_config_knows_better_than_the_table() {
        let mut told = Named::new();
        told.insert("openai/gpt-4o*".to_owned(), ModelConfig { context: Some(10), ..ModelConfig::default() });
        told.insert(
            "openai/gpt-4o-mini".to_owned(),
            ModelConfig { prefill: Some(true), ..ModelConfig::default() },
        );
        assert_eq!(Capability::of("openai", ProviderKind::Openai, "gpt-4o", &told).context, Some(10));
        let mini = Capability::of("openai", ProviderKind::Openai, "gpt-4o-mini", &told);
        assert_eq!((mini.context, mini.prefill), (Some(128_000), true));
        assert_eq!(Capability::of("x", ProviderKind::Openai, "never-heard-of", &told), ANY);
    }

    #[test]
    fn a_claude_is_known_by_its_version() {
        let of = |kind, model: &str| Capability::of("p", kind, model, &Named::new());
        for (model, context, output, thinks, prefills) in [
            ("claude-2.1", 200_000, 4096, false, true),
            ("claude-3-opus-20240229", 200_000, 4096, false, true),
            ("claude-3-5-haiku-latest", 200_000, 8192, false, true),
            ("claude-3-7-sonnet-20250219", 200_000, 128_000, true, true),
            ("claude-sonnet-4-20250514", 1_000_000, 64_000, true, true),
            ("claude-opus-4@20250514", 200_000, 32_000, true, true),
            ("claude-opus-4-1", 200_000, 32_000, true, true),
            ("claude-haiku-4-5-20251001", 200_000, 64_000, true, true),
            ("anthropic/claude-sonnet-4.5", 1_000_000, 64_000, true, true),
            ("claude-opus-4-6", 1_000_000, 128_000, true, false),
            ("anthropic.claude-sonnet-4-6-v1:0", 1_000_000, 128_000, true, false),
            ("claude-sonnet-5", 1_000_000, 128_000, true, false),
            ("claude-next", 1_000_000, 128_000, true, false),
        ] {
            let can = of(ProviderKind::Anthropic, model);
            assert_eq!((can.context, can.output), (Some(context), Some(output)), "{model}");
            assert_eq!((can.reasoning, can.prefill), (thinks, prefills), "{model}");
            assert!(!of(ProviderKind::Openai, model).prefill, "of a relay it is not known");
        }
        assert_eq!(of(ProviderKind::Anthropic, "my-claudette"), ANY);
    }

    #[test]
    fn no_model_of_a_vendor_is_taken_for_a_smaller_one() {
        let of = |model: &str| Capability::of("p", ProviderKind::Openai, model, &Named::new());
        for (model, context, thinks) in [
            ("gpt-4.5-preview", 128_000, false),
            ("gpt-4-0125-preview", 128_000, false),
            ("gpt-4", 8192, false),
            ("gpt-5-mini", 400_000, true),
            ("gpt-5.1-codex", 400_000, true),
            ("gpt-5.5", 1_050_000, true),
            ("gpt-5-chat-latest", 128_000, false),
            ("gemini-1.5-pro-002", 2_097_152, false),
            ("gemini-2.0-flash", 1_048_576, false),
            ("gemini-3-pro-preview", 1_048_576, true),
            ("gemini-flash-latest", 1_048_576, true),
            ("grok-4-fast", 2_000_000, false),
        ] {
            assert_eq!((of(model).context, of(model).reasoning), (Some(context), thinks), "{model}");
        }
    }

    #[test]
    fn only_what_is_surely_impossible_is_refused() {
        let needs = Needs { input_tokens: 9000, images: true, ..Needs::default() };
        assert_eq!(
            Capability::of("openai", ProviderKind::Openai, "gpt-4", &Named::new()).lacks(&needs),
            Some(Lack::Images)
        );
        let long = Needs { input_tokens: 20_000, ..Needs::default() };
        let lack = Capability::of("openai", ProviderKind::Openai, "gpt-4", &Named::new()).lacks(&long);
        assert_eq!(lack, Some(Lack::Context(20_000, 8192)));
        let near = Needs { input_tokens: 9000, ..Needs::default() };
        assert_eq!(
            Capability::of("openai", ProviderKind::Openai, "gpt-4", &Named::new()).lacks(&near),
            None,
            "an estimate is no proof"
        );
        assert_eq!(ANY.lacks(&long), None);
    }
}

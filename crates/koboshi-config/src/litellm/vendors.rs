//! The prefix of LiteLLM's `model`: which kind of ours it is, its address, and the variable of its key.

use crate::gateway::ProviderKind;
use crate::well_known::{self, WellKnown};
use crate::words::{Words, words};

/// A provider as LiteLLM names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Vendor {
    /// The part before the `/`.
    pub(super) prefix: &'static str,
    /// Its name in our file.
    pub(super) name: &'static str,
    pub(super) kind: ProviderKind,
    /// Its address, where the kind does not imply it.
    pub(super) base_url: Option<&'static str>,
    /// The variable of its key in LiteLLM; none where no key is needed.
    pub(super) key: Option<&'static str>,
    /// Whether the user must give an address.
    pub(super) needs_address: bool,
}

/// A provider of ours, with the variable of its key in LiteLLM.
const fn keyed(prefix: &'static str, known: &WellKnown, key: &'static str) -> Vendor {
    Vendor { key: Some(key), ..vendor(prefix, known) }
}

const fn vendor(prefix: &'static str, known: &WellKnown) -> Vendor {
    let key = match known.keys {
        [first, ..] => Some(*first),
        [] => None,
    };
    let base_url = known.written_address();
    Vendor { prefix, name: known.name, kind: known.kind, base_url, key, needs_address: false }
}

const fn server(prefix: &'static str, name: &'static str) -> Vendor {
    let kind = ProviderKind::Openai;
    Vendor { prefix, name, kind, base_url: None, key: None, needs_address: true }
}

const VENDORS: &[Vendor] = &[
    vendor("openai", &well_known::OPENAI),
    keyed("azure", &well_known::AZURE, "AZURE_API_KEY"),
    vendor("anthropic", &well_known::ANTHROPIC),
    vendor("gemini", &well_known::GEMINI),
    keyed("vertex_ai", &well_known::VERTEX, "GOOGLE_APPLICATION_CREDENTIALS"),
    keyed("vertex_ai_beta", &well_known::VERTEX, "GOOGLE_APPLICATION_CREDENTIALS"),
    vendor("deepseek", &well_known::DEEPSEEK),
    vendor("ollama", &well_known::OLLAMA),
    vendor("ollama_chat", &well_known::OLLAMA),
    vendor("groq", &well_known::GROQ),
    vendor("mistral", &well_known::MISTRAL),
    vendor("openrouter", &well_known::OPENROUTER),
    vendor("xai", &well_known::XAI),
    keyed("together_ai", &well_known::TOGETHER, "TOGETHERAI_API_KEY"),
    vendor("fireworks_ai", &well_known::FIREWORKS),
    vendor("perplexity", &well_known::PERPLEXITY),
    vendor("cerebras", &well_known::CEREBRAS),
    vendor("nvidia_nim", &well_known::NVIDIA),
    vendor("sambanova", &well_known::SAMBANOVA),
    vendor("deepinfra", &well_known::DEEPINFRA),
    vendor("moonshot", &well_known::MOONSHOT),
    server("hosted_vllm", "vllm"),
    server("lm_studio", "lmstudio"),
    server("openai_like", "server"),
    server("custom_openai", "server"),
    server("litellm_proxy", "litellm"),
    server("llamafile", "llamafile"),
    server("xinference", "xinference"),
];

/// Providers that LiteLLM supports and we do not.
const OTHERS: &[&str] = &[
    "bedrock", "bedrock_converse", "sagemaker", "sagemaker_chat", "cohere", "cohere_chat", "huggingface",
    "replicate", "watsonx", "azure_ai", "azure_text", "databricks", "palm", "ai21", "ai21_chat", "nlp_cloud",
    "aleph_alpha", "petals", "predibase", "triton", "cloudflare", "voyage", "jina_ai", "github",
    "github_copilot", "clarifai", "maritalk", "text-completion-openai", "text-completion-codestral", "vllm",
    "snowflake", "oci", "gigachat", "infinity", "elevenlabs", "deepgram", "assemblyai", "bytez", "novita",
    "dashscope", "volcengine", "codestral", "friendliai", "galadriel", "baseten", "anyscale", "empower",
];

/// Our names of the providers that it has.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    VENDORS.iter().map(|vendor| vendor.name)
}

/// Splits a `model` into the vendor and the model's own name.
pub(super) fn of(model: &str, stated: Option<&str>) -> Result<(Vendor, String), Words> {
    let find = |prefix: &str| VENDORS.iter().find(|vendor| vendor.prefix == prefix).copied();
    if let Some(vendor) = stated.and_then(find) {
        let own = model.strip_prefix(vendor.prefix).and_then(|rest| rest.strip_prefix('/')).unwrap_or(model);
        return Ok((vendor, own.to_owned()));
    }
    if stated.is_some() {
        return Err(NOT_SPOKEN);
    }
    match model.split_once('/') {
        Some((prefix, own)) if find(prefix).is_some() => {
            // LiteLLM's prefix for the Responses API; Koboshi chooses the API of a model by itself.
            let own = own.strip_prefix("responses/").unwrap_or(own);
            find(prefix).map(|vendor| (vendor, own.to_owned())).ok_or(NOT_SPOKEN)
        }
        Some((prefix, _)) if OTHERS.contains(&prefix) => Err(NOT_SPOKEN),
        Some(_) => Err(UNKNOWN),
        None => guessed(model).and_then(find).map(|vendor| (vendor, model.to_owned())).ok_or(UNKNOWN),
    }
}

/// The vendor of a model without a prefix, as LiteLLM finds it by its list of models.
fn guessed(model: &str) -> Option<&'static str> {
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| model.starts_with(prefix));
    if begins(&["gpt-", "chatgpt-", "o1", "o3", "o4", "text-embedding-", "ft:gpt-", "codex-"]) {
        return Some("openai");
    }
    if begins(&["claude-"]) {
        return Some("anthropic");
    }
    begins(&["gemini-"]).then_some("vertex_ai")
}

const NOT_SPOKEN: Words = words(
    "this provider is not supported natively; if it has an OpenAI-compatible endpoint, add it by hand with `kind: openai` and its `base_url`",
    "このプロバイダーには直接対応していません。OpenAI 互換のエンドポイントがあれば、`kind: openai` と `base_url` で追加してください",
);
const UNKNOWN: Words = words(
    "it is not clear which provider this is; add it by hand under `providers`",
    "どのプロバイダーか判断できません。`providers` に手で追加してください",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_of_the_responses_api_is_no_part_of_a_models_name() {
        let named = |model| of(model, None).map(|(vendor, own)| (vendor.prefix, own)).ok();
        assert_eq!(named("openai/responses/o1"), Some(("openai", "o1".to_owned())));
        assert_eq!(named("openai/gpt-4o"), Some(("openai", "gpt-4o".to_owned())));
    }
}

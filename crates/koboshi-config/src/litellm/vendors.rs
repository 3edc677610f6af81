//! What stands before the `/` of LiteLLM's `model`: which kind of ours it is, where it is, and which variable LiteLLM takes its key from.

use crate::gateway::ProviderKind;
use crate::words::{Words, words};

/// A provider as LiteLLM names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Vendor {
    /// What stands before the `/`.
    pub(super) prefix: &'static str,
    /// Its name in our file.
    pub(super) name: &'static str,
    pub(super) kind: ProviderKind,
    /// Its address, where it is not known from the kind.
    pub(super) base_url: Option<&'static str>,
    /// The variable that LiteLLM takes its key from; none where keys are not asked for.
    pub(super) key: Option<&'static str>,
    /// Whether it is nowhere without an address of the user's own.
    pub(super) needs_address: bool,
}

const fn compatible(
    prefix: &'static str,
    name: &'static str,
    base_url: &'static str,
    key: &'static str,
) -> Vendor {
    let kind = ProviderKind::Openai;
    Vendor { prefix, name, kind, base_url: Some(base_url), key: Some(key), needs_address: false }
}

const fn native(prefix: &'static str, name: &'static str, kind: ProviderKind, key: &'static str) -> Vendor {
    Vendor { prefix, name, kind, base_url: None, key: Some(key), needs_address: false }
}

const fn server(prefix: &'static str, name: &'static str) -> Vendor {
    let kind = ProviderKind::Openai;
    Vendor { prefix, name, kind, base_url: None, key: None, needs_address: true }
}

const VENDORS: &[Vendor] = &[
    native("openai", "openai", ProviderKind::Openai, "OPENAI_API_KEY"),
    native("azure", "azure", ProviderKind::Azure, "AZURE_API_KEY"),
    native("anthropic", "anthropic", ProviderKind::Anthropic, "ANTHROPIC_API_KEY"),
    native("gemini", "gemini", ProviderKind::Gemini, "GEMINI_API_KEY"),
    native("vertex_ai", "vertex", ProviderKind::Vertex, "GOOGLE_APPLICATION_CREDENTIALS"),
    native("vertex_ai_beta", "vertex", ProviderKind::Vertex, "GOOGLE_APPLICATION_CREDENTIALS"),
    native("deepseek", "deepseek", ProviderKind::Deepseek, "DEEPSEEK_API_KEY"),
    Vendor { key: None, ..native("ollama", "ollama", ProviderKind::Ollama, "") },
    Vendor { key: None, ..native("ollama_chat", "ollama", ProviderKind::Ollama, "") },
    compatible("groq", "groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    compatible("mistral", "mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    compatible("openrouter", "openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    compatible("xai", "xai", "https://api.x.ai/v1", "XAI_API_KEY"),
    compatible("together_ai", "together", "https://api.together.xyz/v1", "TOGETHERAI_API_KEY"),
    compatible("fireworks_ai", "fireworks", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    compatible("perplexity", "perplexity", "https://api.perplexity.ai", "PERPLEXITYAI_API_KEY"),
    compatible("cerebras", "cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    compatible("nvidia_nim", "nvidia", "https://integrate.api.nvidia.com/v1", "NVIDIA_NIM_API_KEY"),
    compatible("sambanova", "sambanova", "https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
    compatible("deepinfra", "deepinfra", "https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"),
    compatible("moonshot", "moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    server("hosted_vllm", "vllm"),
    server("lm_studio", "lmstudio"),
    server("openai_like", "server"),
    server("custom_openai", "server"),
    server("litellm_proxy", "litellm"),
    server("llamafile", "llamafile"),
    server("xinference", "xinference"),
];

/// Providers that LiteLLM knows and we do not speak to.
const OTHERS: &[&str] = &[
    "bedrock", "bedrock_converse", "sagemaker", "sagemaker_chat", "cohere", "cohere_chat", "huggingface",
    "replicate", "watsonx", "azure_ai", "azure_text", "databricks", "palm", "ai21", "ai21_chat", "nlp_cloud",
    "aleph_alpha", "petals", "predibase", "triton", "cloudflare", "voyage", "jina_ai", "github",
    "github_copilot", "clarifai", "maritalk", "text-completion-openai", "text-completion-codestral", "vllm",
    "snowflake", "oci", "gigachat", "infinity", "elevenlabs", "deepgram", "assemblyai", "bytez", "novita",
    "dashscope", "volcengine", "codestral", "friendliai", "galadriel", "baseten", "anyscale", "empower",
];

/// What stands behind a `model`: the vendor and the model's own name.
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
            // LiteLLM's mark for the Responses API; Koboshi chooses the API of a model by itself.
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

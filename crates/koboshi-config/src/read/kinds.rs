//! Providers that are no kind of ours: what their users write instead.
//!
//! Most have an endpoint that copies OpenAI's API; where there is one, its address is named.

use crate::words::{Text, text};

/// Name, and the address of its OpenAI-compatible endpoint.
const COMPATIBLE: &[(&str, &str)] = &[
    ("groq", "https://api.groq.com/openai/v1"),
    ("mistral", "https://api.mistral.ai/v1"),
    ("openrouter", "https://openrouter.ai/api/v1"),
    ("xai", "https://api.x.ai/v1"),
    ("together", "https://api.together.xyz/v1"),
    ("together_ai", "https://api.together.xyz/v1"),
    ("fireworks", "https://api.fireworks.ai/inference/v1"),
    ("fireworks_ai", "https://api.fireworks.ai/inference/v1"),
    ("perplexity", "https://api.perplexity.ai"),
    ("cerebras", "https://api.cerebras.ai/v1"),
    ("vllm", "http://localhost:8000/v1"),
    ("hosted_vllm", "http://localhost:8000/v1"),
    ("lmstudio", "http://localhost:1234/v1"),
    ("lm_studio", "http://localhost:1234/v1"),
    ("llamacpp", "http://localhost:8080/v1"),
];

/// Providers whose own API is not spoken.
const NATIVE: &[&str] = &[
    "bedrock", "sagemaker", "cohere", "huggingface", "replicate", "watsonx", "databricks", "ai21",
    "cloudflare",
];

/// Other names of our kinds.
const OURS: &[(&str, &str)] = &[
    ("azure_openai", "azure"),
    ("azureopenai", "azure"),
    ("claude", "anthropic"),
    ("google", "gemini"),
    ("google_ai_studio", "gemini"),
    ("vertex_ai", "vertex"),
    ("vertexai", "vertex"),
    ("openai_compatible", "openai"),
    ("openai_like", "openai"),
    ("ollama_chat", "ollama"),
];

/// What to write in place of a kind that does not exist.
pub(super) fn hint(written: &str) -> Option<Text> {
    let name = written.to_lowercase().replace(['-', ' '], "_");
    if let Some((_, kind)) = OURS.iter().find(|(other, _)| *other == name) {
        return Some(text!("write `{kind}`", "`{kind}` と書いてください"));
    }
    if let Some((_, address)) = COMPATIBLE.iter().find(|(other, _)| *other == name) {
        return Some(text!(
            "write `kind: openai` and `base_url: {address}`",
            "`kind: openai` と `base_url: {address}` を書いてください"
        ));
    }
    // `aws_bedrock`, `amazon-bedrock`, `cohere_chat`
    let native = NATIVE.iter().find(|native| name.contains(**native))?;
    Some(text!(
        "`{native}` is not supported natively: if it has an OpenAI-compatible endpoint, write `kind: openai` with that \
         endpoint as `base_url`",
        "`{native}` には直接対応していません。OpenAI 互換のエンドポイントがあれば、`kind: openai` とし、`base_url` にその URL を書いてください"
    ))
}

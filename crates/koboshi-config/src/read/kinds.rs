//! Hints for providers that are no kind of ours.
//!
//! Most have an OpenAI-compatible endpoint; where there is one, the hint names its address.

use crate::well_known;
use crate::words::{Text, text};

/// Servers on one's own machine, and the usual address of their OpenAI-compatible endpoint.
const LOCAL: &[(&str, &str)] = &[
    ("vllm", "http://localhost:8000/v1"),
    ("hosted_vllm", "http://localhost:8000/v1"),
    ("lmstudio", "http://localhost:1234/v1"),
    ("lm_studio", "http://localhost:1234/v1"),
    ("llamacpp", "http://localhost:8080/v1"),
];

/// Providers whose own API we do not support.
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
    // `together_ai`, `fireworks_ai`
    let bare = name.strip_suffix("_ai").unwrap_or(&name);
    let local = || LOCAL.iter().find(|(other, _)| *other == name).map(|(_, address)| *address);
    if let Some(address) = well_known::written_address(bare).or_else(local) {
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

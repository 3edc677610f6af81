//! Translations of small files, each about one thing.

use super::*;
use crate::config::Language;
use crate::load::{Environment, LoadedConfig, load_located};

fn translated(text: &str) -> Translation {
    translate("config.yaml", text, Language::En).unwrap_or_else(|problems| panic!("{problems}"))
}

/// The translation, loaded with a value for every variable.
fn loaded(translation: &Translation) -> LoadedConfig {
    let lookup = |name: &str| {
        let value = match name {
            name if name.ends_with("_BASE") || name.ends_with("_URL") => "https://llm.example",
            name if name.contains("PROJECT") => "my-project-1",
            name if name.contains("VERSION") => "2024-10-21",
            _ => "key-1",
        };
        translation.variables.contains(name).then(|| value.to_owned())
    };
    load_located("koboshi.yaml", &translation.text, Environment::new(&lookup))
        .unwrap_or_else(|problems| panic!("{}\n{problems}", translation.text))
}

fn reasons(translation: &Translation, level: Level) -> Vec<String> {
    translation.notes.iter().filter(|note| note.level == level).map(|note| note.show(Language::En)).collect()
}

#[test]
fn deployments_of_one_model_are_a_chain_and_their_order_counts() {
    let translation = translated(
        "model_list:\n  - {model_name: m, litellm_params: {model: azure/eu, api_base: 'https://eu.openai.azure.com/', api_key: os.environ/EU, order: 2}}\n  - {model_name: m, litellm_params: {model: gpt-4o, order: 1}}\n  - {model_name: m, litellm_params: {model: azure/ca, api_base: 'https://ca.openai.azure.com/', api_key: os.environ/CA, api_version: '2024-10-21'}}\n",
    );
    let config = loaded(&translation).config;
    assert_eq!(config.routes["m"].chain, ["openai/gpt-4o", "azure/eu", "azure-2/ca"]);
    assert_eq!(config.providers["azure"].base_url.as_deref(), Some("https://eu.openai.azure.com"));
    assert_eq!(config.providers["azure-2"].api_version.as_deref(), Some("2024-10-21"));
    assert!(translation.is_complete(), "{:?}", translation.notes);
}

#[test]
fn a_reason_is_said_once_and_a_changed_log_level_is_said() {
    let imported = translated(
        "model_list:\n  - {model_name: m, litellm_params: {model: gpt-4o}}\nlitellm_settings:\n  set_verbose: true\n  cache: true\n  cache_params: {type: redis, host: a, port: 1, password: b, ttl: 60}\n",
    );
    let changed = reasons(&imported, Level::Changed);
    let about = |words: &str| changed.iter().filter(|note| note.contains(words)).count();
    assert_eq!(about("Koboshi's own store"), 1, "{changed:?}");
    assert_eq!(about("log.level: debug"), 1, "{changed:?}");
    loaded(&imported);
}

#[test]
fn keys_of_one_model_are_used_in_turn_and_others_stay_apart() {
    let two = |model: &str, key: &str| {
        format!(
            "  - {{model_name: {model}, litellm_params: {{model: openai/{model}, api_key: os.environ/{key}}}}}\n"
        )
    };
    let both = translated(&format!("model_list:\n{}{}", two("a", "K1"), two("a", "K2")));
    assert!(
        both.text.contains("keys: [\"${K1}\", \"${K2}\"]") && both.text.contains("a: [openai/a]"),
        "{}",
        both.text
    );
    loaded(&both);
    let apart = translated(&format!("model_list:\n{}{}{}", two("a", "K1"), two("a", "K2"), two("b", "K2")));
    let config = loaded(&apart).config;
    assert_eq!(config.routes["a"].chain, ["openai/a", "openai-2/a"]);
    assert_eq!(config.routes["b"].chain, ["openai-2/b"]);
}

#[test]
fn plain_keys_become_variables_and_appear_nowhere() {
    let translation = translated(
        "model_list:\n  - {model_name: a, litellm_params: {model: openai/a, api_key: hunter2-one}}\n  - {model_name: b, litellm_params: {model: openai/b, api_key: hunter2-two}}\n  - {model_name: c, litellm_params: {model: openai/c, api_key: hunter2-one}}\ngeneral_settings: {master_key: hunter2-master}\nenvironment_variables: {REDIS_PASSWORD: hunter2-redis}\nrouter_settings: {redis_host: hunter2-host, redis_password: hunter2-pw, redis_port: 6379}\nhunter2-section-key: {hunter2-in-map: 1}\n",
    );
    let said = format!("{} {:?} {:?}", translation.text, translation.notes, translation.variables);
    assert!(!said.contains("hunter2"), "{said}");
    let config = loaded(&translation).config;
    assert_eq!(config.routes["c"].chain, ["openai/c"], "the same key is the same provider");
    assert_eq!(config.routes["b"].chain, ["openai-2/b"]);
    let names: Vec<&str> = translation.variables.iter().map(String::as_str).collect();
    assert_eq!(names, ["OPENAI_API_KEY", "OPENAI_API_KEY_2"]);
    assert!(translation.text.contains("sha256: put-the-64-digits-here"), "{}", translation.text);
}

#[test]
fn fallbacks_aliases_and_defaults_lengthen_chains() {
    let translation = translated(
        "model_list:\n  - {model_name: small, litellm_params: {model: openai/gpt-4o-mini}}\n  - {model_name: large, litellm_params: {model: openai/gpt-4o}, model_info: {id: the-large-one}}\n  - {model_name: other, litellm_params: {model: anthropic/claude-sonnet-4-5}}\nrouter_settings:\n  fallbacks: [{small: [other]}]\n  context_window_fallbacks: [{small: [the-large-one]}]\n  default_fallbacks: [other]\n  model_group_alias: {gpt-4: large, tiny: {model: small, hidden: true}, none: nobody}\nlitellm_settings:\n  fallbacks: [{small: [large]}]\n",
    );
    let config = loaded(&translation).config;
    assert_eq!(
        config.routes["small"].chain,
        ["openai/gpt-4o-mini", "anthropic/claude-sonnet-4-5", "openai/gpt-4o"],
        "the router's fallbacks win, and those for the context come last"
    );
    assert_eq!(config.routes["large"].chain, ["openai/gpt-4o", "anthropic/claude-sonnet-4-5"]);
    assert_eq!(config.routes["gpt-4"].chain, config.routes["large"].chain);
    assert_eq!(config.routes["tiny"].chain, config.routes["small"].chain);
    assert_eq!(
        config.routes["other"].chain,
        ["anthropic/claude-sonnet-4-5"],
        "no model falls back to itself"
    );
    let left = reasons(&translation, Level::Left);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].contains("model_group_alias.none"), "{left:?}");
    let changed = reasons(&translation, Level::Changed);
    assert!(changed.iter().any(|one| one.contains("litellm_settings.fallbacks")), "it is named: {changed:?}");
}

#[test]
fn timeouts_retries_and_cooldowns_are_carried_over() {
    let translation = translated(
        "model_list:\n  - {model_name: m, litellm_params: {model: openai/m, timeout: 0.5, stream_timeout: 2}, model_info: {max_input_tokens: 128000, supports_vision: true, mode: chat}}\nrouter_settings: {num_retries: 2, timeout: 30, allowed_fails: 3, cooldown_time: 45, retry_after: 20}\nlitellm_settings: {num_retries: 9, request_timeout: 600, drop_params: true, set_verbose: true, json_logs: true, cache: true, cache_params: {type: redis, ttl: 600}}\ngeneral_settings: {max_parallel_requests: 50}\n",
    );
    let config = loaded(&translation).config;
    let second = std::time::Duration::from_secs(1);
    assert_eq!(config.remedy.backoff.attempts, 3, "the router wins: {}", translation.text);
    assert_eq!((config.remedy.backoff.first, config.remedy.backoff.cap), (second * 20, second * 20));
    assert_eq!(config.providers["openai"].timeouts.unary, Some(second * 30));
    let model = &config.models["openai/m"];
    assert_eq!((model.timeouts.unary, model.timeouts.first_token), (Some(second / 2), Some(second * 2)));
    assert_eq!((model.facts.context_window, model.facts.images), (Some(128_000), Some(true)));
    assert_eq!(config.breaker.consecutive, Some(4));
    assert_eq!((config.breaker.open.first, config.breaker.open.cap), (second * 45, second * 45));
    assert_eq!((config.gate.concurrency, config.degrade.cache_ttl), (Some(50), second * 600));
    assert_eq!(config.log.level, "debug");
    assert!(translation.is_complete(), "{:?}", translation.notes);
}

#[test]
fn a_setting_of_one_deployment_that_is_not_carried_over_is_named() {
    let translation = translated(
        "model_list:\n  - {model_name: m, litellm_params: {model: openai/m, drop_params: true}}\n",
    );
    let left = reasons(&translation, Level::Left);
    assert!(left.iter().any(|one| one.contains("drop_params")), "{left:?}");
}

/// A note says what really happens to a setting, whichever way it is set.
#[test]
fn no_note_claims_the_opposite_of_what_koboshi_does() {
    let note = |settings: &str, key: &str| {
        let translation = translated(&format!(
            "model_list: [{{model_name: m, litellm_params: {{model: openai/m}}}}]\nlitellm_settings: {{{settings}}}\n"
        ));
        translation
            .notes
            .iter()
            .find(|note| note.key.ends_with(key))
            .map(|note| note.show(Language::En))
            .unwrap()
    };
    let on = note("drop_params: true", "drop_params");
    assert!(on.contains("no setting is needed") && on.contains("`n` above 1"), "{on}");
    assert!(on.contains("the client's own API gets the request unchanged"), "{on}");
    let off = note("drop_params: false", "drop_params");
    assert!(off.contains("cannot be switched off") && !off.contains("no setting is needed"), "{off}");
    assert!(note("enable_pre_call_checks: true", "checks").contains("always works like this"));
    assert!(note("enable_pre_call_checks: false", "checks").contains("cannot be switched off"));
}

/// Retries of one deployment are named where another number was written, also beside a number for all.
#[test]
fn retries_of_a_deployment_that_are_not_carried_over_are_named() {
    let left = |params: &str, router: &str| {
        let translation = translated(&format!(
            "model_list:\n  - {{model_name: m, litellm_params: {{model: openai/m, {params}}}}}\nrouter_settings: {{{router}}}\n"
        ));
        reasons(&translation, Level::Left)
    };
    let both = left("num_retries: 7, max_retries: 5", "num_retries: 2");
    assert!(both.iter().any(|one| one.contains("num_retries")), "{both:?}");
    assert!(both.iter().any(|one| one.contains("max_retries")), "{both:?}");
    assert_eq!(left("num_retries: 2", "num_retries: 2"), [""; 0], "it is what was written");
    let two = left("num_retries: 7, max_retries: 5", "");
    assert!(two.len() == 1 && two[0].contains("num_retries"), "{two:?}");
}

/// What a translation makes wider or shorter is noted.
#[test]
fn settings_that_become_wider_or_shorter_are_noted() {
    let translation = translated(
        "model_list:\n  - {model_name: big, litellm_params: {model: bedrock/anthropic.claude-v2}}\n  - {model_name: m, litellm_params: {model: openai/m}}\nlitellm_settings:\n  default_fallbacks: [m]\n  content_policy_fallbacks: [{m: [big]}]\n",
    );
    assert_eq!(loaded(&translation).config.routes["big"].chain, ["openai/m"]);
    let changed = reasons(&translation, Level::Changed);
    assert!(
        changed.iter().any(|one| one.contains("`big`") && one.contains("only its fallbacks, openai/m")),
        "{changed:?}"
    );
    assert!(changed.iter().any(|one| one.contains("it holds for every route")), "{changed:?}");
}

/// Of two names of one setting LiteLLM follows `timeout`, wherever it is; a note about the other one says so.
#[test]
fn of_timeout_and_request_timeout_the_one_that_won_is_named() {
    let second = std::time::Duration::from_secs(1);
    for settings in [
        "router_settings: {timeout: 30, request_timeout: 600}",
        "router_settings: {request_timeout: 600, timeout: 30}",
        "router_settings: {timeout: 30}\nlitellm_settings: {request_timeout: 600}",
        "litellm_settings: {timeout: 30, request_timeout: 600}",
    ] {
        let translation = translated(&format!(
            "model_list:\n  - {{model_name: m, litellm_params: {{model: openai/m}}}}\n{settings}\n"
        ));
        assert_eq!(
            loaded(&translation).config.providers["openai"].timeouts.unary,
            Some(second * 30),
            "{settings}"
        );
        let changed = reasons(&translation, Level::Changed);
        let told = changed.iter().any(|one| one.contains("request_timeout") && one.contains("`timeout`"));
        assert!(told, "{settings}: {changed:?}");
    }
    let translation = translated(
        "model_list:\n  - {model_name: m, litellm_params: {model: openai/m, request_timeout: 600, timeout: 5}}\n",
    );
    assert_eq!(loaded(&translation).config.models["openai/m"].timeouts.unary, Some(second * 5));
    let changed = reasons(&translation, Level::Changed);
    assert!(
        changed.iter().any(|one| one.contains("request_timeout") && one.contains("`timeout`")),
        "{changed:?}"
    );
    let alone = translated(
        "model_list:\n  - {model_name: m, litellm_params: {model: openai/m, request_timeout: 600}}\n",
    );
    assert!(reasons(&alone, Level::Changed).is_empty(), "{:?}", alone.notes);
}

#[test]
fn every_vendor_of_the_table_is_read_and_others_are_named() {
    for (model, more, target) in [
        ("groq/llama-3.3-70b-versatile", "", "groq/llama-3.3-70b-versatile"),
        ("openrouter/meta-llama/llama-3", "", "openrouter/meta-llama/llama-3"),
        ("ollama_chat/llama3.2", "api_base: 'http://localhost:11434'", "ollama/llama3.2"),
        ("hosted_vllm/my-model", "api_base: 'http://gpu:8000/v1', api_key: none", "vllm/my-model"),
        ("anthropic/claude-3", "api_base: 'https://proxy.example'", "anthropic/claude-3"),
        ("gemini/gemini-2.5-flash", "", "gemini/gemini-2.5-flash"),
        ("vertex_ai/gemini-2.5-pro", "vertex_project: p-1", "vertex/gemini-2.5-pro"),
        ("azure/gpt-4o", "api_version: os.environ/AZURE_API_VERSION", "azure/gpt-4o"),
        ("my-model", "custom_llm_provider: deepseek", "deepseek/my-model"),
        ("xai/grok-4", "", "xai/grok-4"),
    ] {
        let comma = if more.is_empty() { "" } else { ", " };
        let translation = translated(&format!(
            "model_list: [{{model_name: m, litellm_params: {{model: {model}{comma}{more}}}}}]"
        ));
        assert_eq!(loaded(&translation).config.routes["m"].chain, [target], "{}", translation.text);
        assert!(translation.is_complete(), "{:?}", translation.notes);
    }
    let list = |models: &[&str]| -> String {
        let all: String = models
            .iter()
            .map(|model| format!("  - {{model_name: m, litellm_params: {{model: {model}}}}}\n"))
            .collect();
        format!("model_list:\n{all}")
    };
    let models =
        ["bedrock/anthropic.claude-v2", "vertex_ai/claude-3-opus", "unheard/of", "hosted_vllm/x", "gpt-4o"];
    let translation = translated(&list(&models));
    let left = reasons(&translation, Level::Left);
    assert_eq!(left.len(), 4, "{left:?}");
    assert!(left[0].starts_with("line 2:") && left[0].contains("bedrock/anthropic.claude-v2"), "{left:?}");
    assert!(translation.text.contains(&format!("#   {}", left[0])), "{}", translation.text);
    let problems = translate("c.yaml", &list(&["bedrock/x"]), Language::En).unwrap_err();
    assert!(
        problems.is_unreadable() && problems.to_string().contains("nothing in it can be translated"),
        "{problems}"
    );
}

#[test]
fn patterns_keep_the_names_of_models() {
    let translation = translated(
        "model_list:\n  - {model_name: '*', litellm_params: {model: openai/*}}\n  - {model_name: 'claude-*', litellm_params: {model: anthropic/claude-*}}\n  - {model_name: 'gemini/*', litellm_params: {model: gemini/*}}\n  - {model_name: 'team/*', litellm_params: {model: groq/*}}\n",
    );
    let config = loaded(&translation).config;
    assert_eq!(config.routes["*"].chain, ["openai/{model}"]);
    assert_eq!(config.routes["claude-*"].chain, ["anthropic/{model}"]);
    assert!(!config.routes.contains_key("gemini/*") && config.providers.contains_key("gemini"));
    let left = reasons(&translation, Level::Left);
    assert!(left.len() == 1 && left[0].contains("team/*"), "{left:?}");
}

#[test]
fn credentials_of_the_list_are_used() {
    let translation = translated(
        "model_list:\n  - {model_name: m, litellm_params: {model: azure/gpt-4o, litellm_credential_name: eu}}\ncredential_list:\n  - credential_name: eu\n    credential_values: {api_key: os.environ/EU_KEY, api_base: 'https://eu.openai.azure.com', api_version: '2024-10-21'}\n    credential_info: {}\n",
    );
    let config = loaded(&translation).config;
    assert_eq!(config.providers["azure"].base_url.as_deref(), Some("https://eu.openai.azure.com"));
    assert!(translation.variables.contains("EU_KEY"));
}

#[test]
fn what_is_no_config_of_litellm_is_refused() {
    for text in [
        "", "retry: {max_attempts: 3}", "[1]", "model_list: [", "model_list: []", "model_list: 5",
        "litellm_settings: {}",
    ] {
        assert!(translate("c.yaml", text, Language::Ja).is_err(), "{text}");
    }
}

/// Vectors of two models do not mix, and a chat model makes none.
#[test]
fn an_embedding_model_falls_back_to_no_other_model() {
    let imported = translated(
        "model_list:\n  - {model_name: chat, litellm_params: {model: openai/gpt-4o}}\n  - {model_name: spare, litellm_params: {model: anthropic/claude-sonnet-4-5}}\n  - {model_name: vectors, litellm_params: {model: openai/text-embedding-3-small}}\n  - {model_name: house, litellm_params: {model: openai/house-v1}, model_info: {mode: embedding}}\n  - {model_name: same, litellm_params: {model: azure/text-embedding-3-small, api_base: \"https://a.example\"}}\n  - {model_name: \"openai/*\", litellm_params: {model: openai/*}}\nrouter_settings:\n  fallbacks: [{same: [vectors, spare]}]\n  default_fallbacks: [spare, vectors]\n",
    );
    let text = &imported.text;
    assert!(text.contains("chat: [openai/gpt-4o, anthropic/claude-sonnet-4-5]\n"), "{text}");
    assert!(text.contains("vectors: [openai/text-embedding-3-small]\n"), "{text}");
    assert!(text.contains("house: [openai/house-v1]\n"), "{text}");
    assert!(text.contains("same: [azure/text-embedding-3-small, openai/text-embedding-3-small]\n"), "{text}");
    let note = |key: &str, words: &str, level: Level| {
        let is =
            |note: &&Note| note.key == key && note.level == level && note.show(Language::En).contains(words);
        assert!(imported.notes.iter().any(|note| is(&note)), "{words}: {:?}", imported.notes);
    };
    note("default_fallbacks", "`vectors` does not fall back to anthropic/claude-sonnet-4-5", Level::Changed);
    note("default_fallbacks", "`chat` does not fall back to openai/text-embedding-3-small", Level::Changed);
    note("fallbacks", "`same` does not fall back to anthropic/claude-sonnet-4-5", Level::Left);
    note("default_fallbacks", "`openai/*` go straight to their provider", Level::Changed);
}

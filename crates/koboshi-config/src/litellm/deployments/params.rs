//! `litellm_params` and `model_info` of one deployment.

use koboshi::models::is_embedding;

use super::super::note::{Level, Notes};
use super::super::settings::TIMEOUT_WINS;
use super::super::value::{
    entries, get, is_true, line, model as named, seconds, shown, string, variable, whole,
};
use super::super::vendors;
use super::{Deployment, Key, place};
use crate::gateway::ProviderKind;
use crate::schema;
use crate::tree::{Node, Raw};
use crate::words::{Words, words};

/// Placeholder keys for servers that need none.
const NO_KEYS: &[&str] = &[
    "", "none", "null", "anything", "dummy", "fake", "fake-key", "empty", "no-key", "not-needed", "na", "n/a",
];

const PLACEHOLDER: Words = words(
    "looks like a placeholder, so no key is sent; if the server does expect it, set `keys` of the provider",
    "仮の値とみなし、キーを送信しない設定にしました。サーバーが実際にこのキーを要求する場合は、プロバイダーの `keys` に設定してください",
);

/// Modes of a model that we serve.
const SERVED: &[&str] = &["chat", "completion", "embedding", "responses"];

/// Parameters that are read here.
const READ: &[&str] = &[
    "model", "api_key", "api_base", "base_url", "api_version", "vertex_project", "vertex_location",
    "vertex_credentials", "custom_llm_provider", "litellm_credential_name", "timeout", "request_timeout",
    "stream_timeout", "order", "max_retries", "num_retries",
];

/// Why other parameters are not carried over. The first row that names a parameter counts.
const LEFT: &[(&[&str], Words)] = &[
    (
        &["rpm", "tpm", "max_parallel_requests"],
        words(
            "Koboshi takes rate limits from response headers; a limit of requests or tokens per minute cannot be set for a provider (for each client it is `keys.*.rate`; `gate.max_concurrency` limits how many requests run at a target at the same time)",
            "Koboshi はレート制限をレスポンスヘッダーから学習します。プロバイダーに対する 1 分あたりのリクエスト数やトークン数の上限は設定できません（クライアントごとの上限は `keys.*.rate` です。`gate.max_concurrency` で、ターゲットごとの同時リクエスト数を制限できます）",
        ),
    ),
    (
        &["drop_params"],
        words(
            "no setting for one deployment: Koboshi always drops optional parameters that a target's API does not have",
            "デプロイごとの設定はありません。Koboshi は、ターゲットの API にない任意のパラメーターを常に除きます",
        ),
    ),
    (
        &["weight"],
        words("targets are tried in order, without weights", "ターゲットは順番に試され、重みはありません"),
    ),
    (
        &["organization", "extra_headers", "headers", "extra_body"],
        words(
            "Koboshi adds no headers or fields of its own to requests",
            "Koboshi はリクエストにヘッダーやフィールドを追加しません",
        ),
    ),
    (
        &[
            "temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "stop", "n",
            "presence_penalty", "frequency_penalty", "response_format", "reasoning_effort", "thinking",
            "tools", "user", "metadata", "stream",
        ],
        words(
            "parameters of a request are set by the client",
            "リクエストのパラメーターはクライアント側で指定してください",
        ),
    ),
    (
        &[
            "input_cost_per_token", "output_cost_per_token", "input_cost_per_second", "max_budget",
            "budget_duration", "base_model", "litellm_trace_id", "tags",
        ],
        words(
            "set prices in `models_file` and budgets under `keys`; Koboshi has no tags",
            "料金は `models_file` で、予算は `keys` で設定してください。タグの機能はありません",
        ),
    ),
    (
        &["azure_ad_token", "tenant_id", "client_id", "client_secret", "azure_username", "azure_password"],
        words(
            "sign-in with Microsoft Entra: use a `token_command` that prints a token",
            "Microsoft Entra での認証には、トークンを表示する `token_command` を使ってください",
        ),
    ),
    (
        &["mock_response"],
        words(
            "for fake answers there are the models of `sim`",
            "架空の応答には `sim` のモデルを使ってください",
        ),
    ),
];
const NO_SUCH: Words = words("Koboshi has no such setting", "Koboshi にこの設定はありません");

/// Reads one deployment; what cannot be translated is noted.
pub(super) fn read(
    group: &str,
    node: &Node,
    own: &Node,
    credentials: &[Node],
    notes: &mut Notes,
) -> Option<Deployment> {
    let at = line(own);
    let shared = get(own, "litellm_credential_name")
        .and_then(string)
        .and_then(|name| place::credential(credentials, &name));
    let value = |name: &str| get(own, name).or_else(|| shared.and_then(|shared| get(shared, name)));
    let refused = |notes: &mut Notes, key: &str, reason: Words| {
        notes.left(at, &format!("{} ({})", named(group), named(key)), reason);
    };
    let Some(model) = value("model").and_then(string) else {
        refused(notes, "model", words("it has no `model`", "`model` がありません"));
        return None;
    };
    if get(own, "litellm_credential_name").is_some() && shared.is_none() {
        refused(
            notes,
            "litellm_credential_name",
            words(
                "there is no such credential in `credential_list`",
                "`credential_list` にその認証情報がありません",
            ),
        );
    }
    let stated = value("custom_llm_provider").and_then(string);
    let (vendor, name) = match vendors::of(&model, stated.as_deref()) {
        Ok(found) => found,
        Err(reason) => {
            refused(notes, &model, reason);
            return None;
        }
    };
    if vendor.kind == ProviderKind::Vertex && !name.starts_with("gemini") && !name.starts_with('*') {
        refused(
            notes,
            &model,
            words(
                "only Gemini models are supported on Vertex AI",
                "Vertex AI で対応しているのは Gemini モデルだけです",
            ),
        );
        return None;
    }
    let mode = get(node, "model_info").and_then(|info| get(info, "mode")).and_then(string);
    if mode.as_deref().is_some_and(|mode| !SERVED.contains(&mode)) {
        refused(
            notes,
            &model,
            words(
                "Koboshi serves text and embeddings, no images, audio, rerank or moderation",
                "Koboshi が扱うのはテキストと埋め込みです。画像、音声、リランク、モデレーションには対応していません",
            ),
        );
        return None;
    }
    if !is_model(&name) {
        refused(
            notes,
            "model",
            words("its name cannot be used as a target", "この名前はターゲットに使えません"),
        );
        return None;
    }
    let place = match place::read(vendor, value, notes) {
        Ok(place) => place,
        Err(reason) => {
            refused(notes, &model, reason);
            return None;
        }
    };
    rest(own, notes);
    let key = key(value("api_key"), &place);
    let placeholder = value("api_key").filter(|node| string(node).is_some_and(|text| !text.is_empty()));
    if let (Key::None, Some(node)) = (&key, placeholder) {
        notes.add(line(node), "api_key", Level::Changed, PLACEHOLDER);
    }
    let length = |name: &str, notes: &mut Notes| {
        let node = value(name)?;
        let found = seconds(node);
        if found.is_none() {
            notes.left(line(node), name, words("it is no number of seconds", "秒数として読み取れません"));
        }
        found
    };
    if let (Some(_), Some(other)) = (value("timeout"), value("request_timeout")) {
        notes.add(line(other), "request_timeout", Level::Changed, TIMEOUT_WINS);
    }
    let unary = length("timeout", notes).or_else(|| length("request_timeout", notes));
    let first_token = length("stream_timeout", notes);
    let (info, id) = info(get(node, "model_info"), notes);
    let embeds = mode.as_deref() == Some("embedding") || is_embedding(&name);
    Some(Deployment {
        embeds,
        line: value("api_key").map_or(at, line),
        group: group.to_owned(),
        model: name,
        place,
        key,
        unary,
        first_token,
        info,
        order: value("order").and_then(whole).unwrap_or(u64::MAX),
        id,
        retries: ["max_retries", "num_retries"]
            .into_iter()
            .filter_map(|name| value(name).map(|node| (name, line(node), whole(node))))
            .collect(),
    })
}

fn is_model(name: &str) -> bool {
    let length = name.chars().count();
    (1..=200).contains(&length)
        && !name.chars().any(|c| c.is_whitespace() || c.is_control() || c == '{' || c == '}')
}

fn key(node: Option<&Node>, place: &super::ProviderPlace) -> Key {
    let vendor = place.vendor;
    if vendor.kind == ProviderKind::Vertex {
        return Key::None;
    }
    let wanted = vendor.key.unwrap_or(match vendor.name {
        "vllm" => "VLLM_API_KEY",
        "ollama" => "OLLAMA_API_KEY",
        _ => "SERVER_API_KEY",
    });
    match node.and_then(string) {
        Some(text) if NO_KEYS.contains(&text.to_lowercase().as_str()) => Key::None,
        Some(text) => match variable(&text) {
            Some(name) => Key::Variable(name.to_owned()),
            None => Key::Plain(text, wanted),
        },
        // The vendor's key is not sent to another server.
        None if vendor.kind == ProviderKind::Openai && place.base_url.as_deref() != vendor.base_url => {
            Key::None
        }
        None => vendor.key.map_or(Key::None, |name| Key::Variable(name.to_owned())),
    }
}

/// Notes what is not carried over.
fn rest(own: &Node, notes: &mut Notes) {
    for (name, node) in entries(own).filter(|(name, _)| !READ.contains(name)) {
        if matches!(node.value, Raw::Null) {
            continue;
        }
        let known = LEFT.iter().find(|(names, _)| names.contains(&name)).map(|(_, reason)| *reason);
        notes.add(line(node), &shown(name), Level::Left, known.unwrap_or(NO_SUCH));
    }
}

/// Keys of `models`, and the deployment's own name.
fn info(node: Option<&Node>, notes: &mut Notes) -> (Vec<(&'static str, String)>, Option<String>) {
    let Some(node) = node else { return (Vec::new(), None) };
    let mut found = Vec::new();
    let mut id = None;
    for (name, value) in entries(node) {
        let count = whole(value)
            .filter(|count| (1..=u64::from(u32::MAX)).contains(count))
            .map(|count| count.to_string());
        let flag = || matches!(value.value, Raw::Flag(_)).then(|| is_true(value).to_string());
        let (key, translated) = match name {
            "id" => {
                id = string(value);
                continue;
            }
            "max_input_tokens" => ("context_window", count),
            "max_output_tokens" => ("max_output_tokens", count),
            "supports_function_calling" => ("tools", flag()),
            "supports_vision" => ("images", flag()),
            "supports_response_schema" => ("json", flag()),
            "supports_reasoning" => ("reasoning", flag()),
            "mode" => continue,
            _ => ("", None),
        };
        match translated {
            Some(text) if schema::Key::named("models.*", key).is_some() => found.push((key, text)),
            _ => {
                let reason = words(
                    "Koboshi keeps no such information about models",
                    "Koboshi はモデルのこの情報を扱いません",
                );
                notes.add(line(value), &format!("model_info.{}", shown(name)), Level::Left, reason);
            }
        }
    }
    (found, id)
}

//! `router_settings`, `litellm_settings`, `general_settings` and the others: settings for all models.
//!
//! Most keys may be in `router_settings` or in `litellm_settings`; as in LiteLLM, the former wins.

use super::note::{Level, Notes};
use super::value::{entries, get, is_true, length, line, parts, seconds, shown, string, variable, whole};
use crate::tree::{Node, Raw};
use crate::words::{Words, text, words};

/// Settings for all models, as our file writes them.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) unary: Option<String>,
    pub(super) first_token: Option<String>,
    pub(super) retries: Option<u64>,
    pub(super) initial_delay: Option<String>,
    /// Failures that open a breaker.
    pub(super) failures: Option<u64>,
    /// How long it stays open.
    pub(super) open: Option<String>,
    pub(super) concurrency: Option<u64>,
    /// How long a cached response is fresh; none where there is no cache.
    pub(super) cache: Option<Option<String>>,
    pub(super) route_around_filters: bool,
    pub(super) debug: bool,
    pub(super) json_logs: bool,
    /// Whether clients had to send a key.
    pub(super) master_key: bool,
    /// The address of a shared Redis, for a comment.
    pub(super) redis: Option<String>,
}

/// Keys of `router_settings` and `litellm_settings` that `routes` reads.
const OF_ROUTES: &[&str] = &[
    "fallbacks", "context_window_fallbacks", "content_policy_fallbacks", "default_fallbacks",
    "model_group_alias",
];
/// What Koboshi does in any case.
const ALWAYS: &[&str] = &["enable_pre_call_checks", "turn_off_message_logging", "redact_user_api_key_info"];

/// Why other settings are not carried over.
const LEFT: &[(&[&str], Words)] = &[
    (
        &[
            "success_callback", "failure_callback", "callbacks", "service_callbacks", "callback_settings",
            "langfuse_default_tags",
        ],
        words(
            "Koboshi has no callbacks: metrics are under `/metrics`, traces go to `trace.otlp`",
            "Koboshi にコールバックはありません。メトリクスは `/metrics`、トレースは `trace.otlp` を使ってください",
        ),
    ),
    (
        &["retry_policy", "allowed_fails_policy", "model_group_retry_policy"],
        words(
            "retries follow the kind of the failure (docs/codes.md) and cannot be set for each",
            "リトライはエラーの種類ごとに決まっており（docs/codes.md）、個別には設定できません",
        ),
    ),
    (
        &[
            "database_url", "store_model_in_db", "database_connection_pool_limit",
            "database_connection_timeout", "disable_spend_logs", "store_prompts_in_spend_logs",
            "proxy_batch_write_at", "ui_access_mode", "allowed_routes", "enable_jwt_auth", "custom_auth",
            "max_budget", "budget_duration", "key_generation_settings", "default_team_settings", "alerting",
            "alerting_threshold", "alerting_args", "background_health_checks", "health_check_interval",
        ],
        words(
            "Koboshi has budgets under `keys` and a dashboard built in; it has no database to set up and no teams, and tells of failures by `notify` (docs/notices.md)",
            "Koboshi では予算を `keys` で設定します。ダッシュボードは組み込みです。データベースの準備は不要です。チームの機能はありません。障害や予算は `notify` で通知できます（docs/notices.md）",
        ),
    ),
    (
        &[
            "disable_cooldowns", "enable_tag_filtering", "tag_filtering_match_any", "provider_budget_config",
            "max_fallbacks",
        ],
        words("Koboshi has no such setting", "Koboshi にこの設定はありません"),
    ),
];
const OVERRIDDEN: Words = words(
    "the same key of `router_settings` wins, as in LiteLLM",
    "LiteLLM と同じく、`router_settings` にある同じ設定項目が優先されます",
);
pub(super) const TIMEOUT_WINS: Words = words(
    "`timeout` is set too: it wins, as in LiteLLM, and this value is not used",
    "`timeout` も設定されています。LiteLLM と同じく `timeout` が優先され、この値は使われません",
);
const NOT_NEEDED: Words = words(
    "no setting is needed: Koboshi always works like this",
    "設定は不要です。Koboshi は常にこのように動作します",
);
const ALWAYS_ON: Words = words(
    "Koboshi always does this, and it cannot be switched off",
    "Koboshi は常にこの動作を行い、無効にはできません",
);
const DROPPED: Words = words(
    "no setting is needed where a request is translated for a target with another API: parameters that its API does not know are dropped there, except those that the client waits for, such as `logprobs` or `n` above 1: a target that lacks those is skipped, and if no target is left, the request is a 400. A target with the client's own API gets the request unchanged, and may refuse a parameter that its model does not know (docs/gateway.md)",
    "ターゲットの API がクライアントのものと異なり、リクエストを変換する場合は、設定は不要です。その API にないパラメーターは取り除かれます。ただし、`logprobs` や 2 以上の `n` のように、クライアントが結果を必要とするものは対象外です。対応していないターゲットは飛ばされ、残りがなければ 400 エラーになります。クライアントと同じ API のターゲットにはリクエストがそのまま送られるため、モデルが対応していないパラメーターはエラーになることがあります（docs/gateway.md）",
);
const NOT_OFF: Words = words(
    "it cannot be switched off where a request is translated for a target with another API: parameters that its API does not know are dropped there, except those that the client waits for, such as `logprobs` or `n` above 1: a target that lacks those is skipped, and if no target is left, the request is a 400. A target with the client's own API gets the request unchanged (docs/gateway.md)",
    "リクエストを別の API に変換する場合は、無効にできません。その API にないパラメーターは取り除かれます。ただし、`logprobs` や 2 以上の `n` のように、クライアントが結果を必要とするものは対象外です。対応していないターゲットは飛ばされ、残りがなければ 400 エラーになります。クライアントと同じ API のターゲットには、リクエストがそのまま送られます（docs/gateway.md）",
);
const NO_SUCH: Words = words("Koboshi has no such setting", "Koboshi にこの設定はありません");

/// Reads all of them.
pub(super) fn read(root: &Node, notes: &mut Notes) -> Settings {
    let mut settings = Settings::default();
    let has_timeout = ["litellm_settings", "router_settings"]
        .iter()
        .filter_map(|name| get(root, name))
        .any(|section| get(section, "timeout").is_some());
    // The router's come last, so that they win.
    for name in ["litellm_settings", "router_settings"] {
        for (key, node) in get(root, name).into_iter().flat_map(entries) {
            if key == "request_timeout" && has_timeout {
                notes.add(line(node), &format!("{name}.{key}"), Level::Changed, TIMEOUT_WINS);
                continue;
            }
            settings.take(name, key, node, notes);
            if name == "litellm_settings"
                && get(root, "router_settings").is_some_and(|router| get(router, key).is_some())
            {
                notes.add(line(node), &format!("{name}.{}", shown(key)), Level::Changed, OVERRIDDEN);
            }
        }
    }
    if let Some(router) = get(root, "router_settings") {
        settings.redis = redis(router, notes);
    }
    for (key, node) in get(root, "general_settings").into_iter().flat_map(entries) {
        settings.take_general(key, node, notes);
    }
    for (name, node) in entries(root) {
        others(name, node, notes);
    }
    settings
}

impl Settings {
    fn take(&mut self, section: &str, key: &str, node: &Node, notes: &mut Notes) {
        let full = format!("{section}.{}", shown(key));
        let number = |notes: &mut Notes| {
            let found = whole(node);
            if found.is_none() {
                notes.left(line(node), &full, words("it is no whole number", "整数として読み取れません"));
            }
            found
        };
        let length = |notes: &mut Notes| {
            let found = seconds(node);
            if found.is_none() {
                notes.left(
                    line(node),
                    &full,
                    words("it is no number of seconds", "秒数として読み取れません"),
                );
            }
            found
        };
        match key {
            "content_policy_fallbacks" => self.route_around_filters = true,
            _ if OF_ROUTES.contains(&key) || key.starts_with("redis_") => {}
            "drop_params" => {
                notes.add(line(node), &full, Level::Changed, if is_true(node) { DROPPED } else { NOT_OFF });
            }
            _ if ALWAYS.contains(&key) && is_true(node) => {
                notes.add(line(node), &full, Level::Changed, NOT_NEEDED);
            }
            _ if ALWAYS.contains(&key) => notes.left(line(node), &full, ALWAYS_ON),
            "timeout" | "request_timeout" => self.unary = length(notes).or(self.unary.take()),
            "stream_timeout" => self.first_token = length(notes).or(self.first_token.take()),
            "num_retries" => self.retries = number(notes).or(self.retries.take()),
            "retry_after" if whole(node) == Some(0) => {}
            "retry_after" => self.initial_delay = length(notes).or(self.initial_delay.take()),
            "allowed_fails" => {
                self.failures = number(notes).map(|count| count.saturating_add(1)).or(self.failures.take());
                let reason = words(
                    "LiteLLM counts failures per minute, Koboshi failures in a row (`breaker.consecutive_failures`)",
                    "LiteLLM は 1 分あたりの失敗を、Koboshi は連続した失敗を数えます（`breaker.consecutive_failures`）",
                );
                notes.add(line(node), &full, Level::Changed, reason);
            }
            "cooldown_time" => self.open = length(notes).or(self.open.take()),
            "set_verbose" | "debug_level" => {
                self.debug |= is_true(node);
                if is_true(node) {
                    let reason = words(
                        "it became `log.level: debug`, which logs each tool call with its check, but no prompts and no answers",
                        "`log.level: debug` に変換しました。ツール呼び出しとその検査結果は記録されますが、プロンプトと応答は記録されません",
                    );
                    notes.add(line(node), &full, Level::Changed, reason);
                }
            }
            "json_logs" => self.json_logs |= is_true(node),
            "cache" | "cache_responses" => {
                if is_true(node) {
                    self.cache.get_or_insert(None);
                }
            }
            "cache_params" => self.cache_params(node, notes),
            "routing_strategy" | "routing_strategy_args" => {
                let reason = words(
                    "the deployments of a model are tried in order; several keys of one provider are used in turn",
                    "1 つのモデルの複数のデプロイは順番に試されます。同じプロバイダーの複数のキーは交互に使われます",
                );
                notes.add(line(node), &full, Level::Changed, reason);
            }
            _ => {
                let known = LEFT.iter().find(|(names, _)| names.contains(&key)).map(|(_, reason)| *reason);
                notes.left(line(node), &full, known.unwrap_or(NO_SUCH));
            }
        }
    }

    fn cache_params(&mut self, node: &Node, notes: &mut Notes) {
        for (key, value) in entries(node) {
            match key {
                "ttl" => self.cache = Some(seconds(value)),
                "type" if matches!(string(value).as_deref(), Some("local" | "redis" | "disk")) => {}
                "mode"
                | "supported_call_types"
                | "namespace"
                | "host"
                | "port"
                | "password"
                | "type"
                | "url" => {
                    let reason = words(
                        "cached responses are kept in Koboshi's own store (`store`)",
                        "キャッシュは Koboshi 自身のストア（`store`）に保存されます",
                    );
                    // Said once, however many of these keys there are.
                    notes.add(line(node), "cache_params", Level::Changed, reason);
                }
                _ => notes.left(line(value), &format!("cache_params.{}", shown(key)), NO_SUCH),
            }
        }
    }

    fn take_general(&mut self, key: &str, node: &Node, notes: &mut Notes) {
        let full = format!("general_settings.{}", shown(key));
        match key {
            "master_key" => {
                self.master_key = true;
                let reason = words(
                    "Koboshi keeps only hashes of client keys: see `keys` in a comment of the new file. Until then it answers on this machine only",
                    "Koboshi はクライアントのキーをハッシュだけで保持します。変換後のファイルのコメントにある `keys` を参照してください。それまではこのマシンからのリクエストにだけ応答します",
                );
                notes.add(line(node), &full, Level::Todo, reason);
            }
            "max_parallel_requests" => {
                self.concurrency = whole(node).filter(|count| (1..=u64::from(u32::MAX)).contains(count));
            }
            _ => {
                let known = LEFT.iter().find(|(names, _)| names.contains(&key)).map(|(_, reason)| *reason);
                notes.left(line(node), &full, known.unwrap_or(NO_SUCH));
            }
        }
    }
}

/// Sections that are not read at all.
fn others(name: &str, node: &Node, notes: &mut Notes) {
    const READ: &[&str] =
        &["model_list", "credential_list", "router_settings", "litellm_settings", "general_settings"];
    match name {
        _ if READ.contains(&name) => {}
        "environment_variables" => {
            let names: Vec<String> = entries(node).map(|(name, _)| shown(name)).collect();
            let (en, names) = (names.join(", "), names.join("、"));
            let reason = text!(
                "set these in the environment of Koboshi: {en}",
                "Koboshi を起動する環境に設定してください: {names}"
            );
            notes.add(line(node), name, Level::Todo, reason);
        }
        "include" => {
            let reason =
                words("translate each included file by itself", "含まれるファイルは個別に変換してください");
            notes.left(line(node), name, reason);
        }
        _ => {
            let known = LEFT.iter().find(|(names, _)| names.contains(&name)).map(|(_, reason)| *reason);
            notes.left(line(node), &shown(name), known.unwrap_or(NO_SUCH));
        }
    }
}

/// The address of LiteLLM's shared Redis, without anything that may be a secret.
fn redis(router: &Node, notes: &mut Notes) -> Option<String> {
    let node = ["redis_url", "redis_host"].iter().find_map(|key| get(router, key))?;
    let reason = words(
        "Koboshi shares its state through Redis too: see `store` in a comment of the new file",
        "Koboshi も Redis で状態を共有できます。変換後のファイルのコメントにある `store` を参照してください",
    );
    notes.add(line(node), "router_settings.redis_host", Level::Todo, reason);
    let port = match get(router, "redis_port").map(|port| (whole(port), string(port))) {
        None => "6379".to_owned(),
        Some((Some(port), _)) => port.to_string(),
        Some((None, text)) => {
            format!("${{{}}}", text.as_deref().and_then(variable).unwrap_or("REDIS_PORT"))
        }
    };
    let named = |key: &str, usual: &str| {
        let name = get(router, key).and_then(string).and_then(|text| variable(&text).map(str::to_owned));
        format!("${{{}}}", name.unwrap_or_else(|| usual.to_owned()))
    };
    Some(match get(router, "redis_url") {
        Some(_) => named("redis_url", "REDIS_URL"),
        None if get(router, "redis_password").is_some() => {
            format!(
                "redis://:{}@{}:{}/0",
                named("redis_password", "REDIS_PASSWORD"),
                named("redis_host", "REDIS_HOST"),
                port
            )
        }
        None => {
            format!("redis://{}:{}/0", named("redis_host", "REDIS_HOST"), port)
        }
    })
}

/// A length that is at most a day, multiplied.
pub(super) fn scaled(text: &str, seconds: f64) -> String {
    let own = crate::schema::parse_length(text).map_or(0.0, |length| length.as_secs_f64());
    length(own.max(seconds))
}

/// A model with the models that answer when it has failed.
pub(super) struct Fallback {
    pub(super) from: String,
    pub(super) line: u64,
    /// Names with their lines.
    pub(super) to: Vec<(String, u64)>,
}

/// The entries of a list of fallbacks.
pub(super) fn fallbacks(node: &Node) -> Vec<Fallback> {
    let mut found = Vec::new();
    for part in parts(node) {
        for (from, to) in entries(part) {
            let to = parts(to).iter().map(|one| {
                let named = match &one.value {
                    Raw::Map(_) => get(one, "model").and_then(string),
                    _ => string(one),
                };
                (named.unwrap_or_default(), line(one))
            });
            found.push(Fallback { from: from.to_owned(), line: line(part), to: to.collect() });
        }
    }
    found
}

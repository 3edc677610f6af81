//! Nothing is missing, both languages say the same, and no phrase is unhelpful.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use koboshi::args::{ChangeKind, Defect};
use koboshi::fault::{Fault, Kind, Sub};

use super::{Lang, Phrases};

/// The pairs whose advice differs from their kind's.
const FINER: &[(Kind, &[Sub])] = &[
    (
        Kind::ConnectionFailed,
        &[Sub::Dns, Sub::Unreachable, Sub::Reset, Sub::Handshake, Sub::Certificate, Sub::Proxy],
    ),
    (
        Kind::Timeout,
        &[Sub::Connect, Sub::FirstContent, Sub::Idle, Sub::Total, Sub::Unary, Sub::Deadline, Sub::Upstream],
    ),
    (Kind::Unavailable, &[Sub::Loading, Sub::Locked, Sub::Stopping, Sub::Resources]),
    (Kind::RateLimited, &[Sub::Concurrency, Sub::Operator]),
    (Kind::TokenExpired, &[Sub::Token]),
    (Kind::QuotaExceeded, &[Sub::Window, Sub::Day, Sub::Month, Sub::Plan, Sub::Billing]),
    (Kind::PermissionDenied, &[Sub::Region, Sub::Blocked, Sub::Model]),
    (Kind::InvalidRequest, &[Sub::Capability, Sub::Path, Sub::OutputLimit]),
    (Kind::ResponseInvalid, &[Sub::Empty, Sub::ToolCall, Sub::OutputLimit, Sub::NotApi]),
    (Kind::SpawnFailed, &[Sub::Command]),
    (Kind::ProcessFailed, &[Sub::Memory, Sub::Signal, Sub::Crash, Sub::Turns, Sub::TimeLimit]),
    (Kind::AgentError, &[Sub::Turns]),
    (Kind::CoolingDown, &[Sub::Operator]),
];

const TOOL_CATEGORIES: &str = "font missing_module missing_command version_conflict permission resource plotting file_io network \
    timeout syntax type_or_value invalid_arguments not_found_in_file auth rate_limit tool_missing test_failure other";

/// Ids that the code puts together from parts. All others stand in it as they are.
const COMPOSED: &str = "case-form-log case-form-tool case-form-answer notice-client-day notice-client-month notice-severity-critical notice-severity-info notice-severity-warning \
    agent-end-idle agent-end-stopped agent-end-succeeded agent-aside agent-held agent-parked agent-running agent-stopped agent-stopping agent-waiting asks-again-after asks-again-in \
    breaker-consecutive breaker-failure-rate breaker-forced breaker-probe-failed breaker-probes-succeeded \
    breaker-released breaker-restored breaker-slow-rate breaker-wait-over breaker-warned cause-connection-refused \
    cause-content-filtered cause-cooling-down-operator cause-model-not-found-own cause-permission-denied \
    cause-permission-denied-blocked cause-quota-exceeded cause-quota-exceeded-billing cause-quota-exceeded-plan \
    cause-rate-limited cause-timeout-deadline cause-timeout-first-content cause-timeout-idle cause-timeout-total \
    cause-timeout-unary cause-token-expired cause-unauthorized confidence-high confidence-low confidence-low-line \
    confidence-medium confidence-medium-form display-auto display-copied display-copy display-dismiss \
    display-kind-connection-failed.message display-kind-connection-failed.suggestion \
    display-kind-conversation-not-found.message display-kind-conversation-not-found.suggestion \
    display-kind-internal.message display-kind-internal.suggestion display-kind-outbox-full.message \
    display-kind-outbox-full.suggestion display-kind-superseded.message display-kind-superseded.suggestion \
    display-kind-unauthorized.message display-kind-unauthorized.suggestion display-new display-offline display-ready \
    display-retry display-retrying display-stop display-tried display-trim display-wait display-wait-until \
    expected-contents expected-count expected-level expected-messages expected-model-name expected-text-or-items \
    expected-true-or-false guard-question-fix-or-other-way guard-question-go-on guard-question-what-next \
    guard-step-check-service guard-step-figure-to-file guard-step-free-room guard-step-give-example guard-step-go-on \
    guard-step-list-first guard-step-name-tools guard-step-name-versions guard-step-one-test guard-step-other-place \
    guard-step-other-way guard-step-other-words guard-step-print-values guard-step-raise-limit guard-step-read-again \
    guard-step-say-what-is-known guard-step-show-place guard-step-sign-in guard-step-smaller guard-step-use-installed \
    guard-step-wait-then-go-on guard-what-alternating-errors guard-what-any-errors guard-what-cycle guard-what-depth \
    guard-what-same-call guard-what-similar-errors guard-what-stagnation guard-what-width journal-breaker journal-budget \
    journal-cooldown journal-fault journal-gate journal-lease journal-operator journal-remedy journal-run journal-store \
    limit-concurrency limit-input-tokens limit-operator limit-output-tokens limit-quota limit-requests limit-tokens \
    origin-client origin-koboshi origin-process origin-provider origin-tool origin-transport reason-auth reason-billing \
    reason-blocked reason-context reason-error reason-key reason-model reason-network reason-none reason-operator \
    reason-overloaded reason-permission reason-plan reason-quota reason-rate-limit reason-region reason-sign-in \
    reason-starts reason-status-401 reason-status-402 reason-status-403 reload-added reload-changed reload-removed reload-restart-for reload-restarted \
    scope-account scope-model scope-network scope-provider scope-request scope-sign-in state-absent state-cooling \
    state-disabled state-due state-forced-closed state-forced-open state-held state-open state-parked state-probing \
    spend-attempts spend-input spend-output spend-cost spend-by-key spend-by-model spend-by-route spend-by-agent \
    spend-by-day spend-budget-day spend-budget-month try-again-after try-again-in wait-date-from-file wait-date-from-now wait-date-from-text wait-from-file wait-from-now \
    wait-from-text";

/// What the gateway itself says of a request or of its own state, each with a message and a suggestion.
const OWN: &str = "refused-csrf refused-no-host refused-host-failed refused-agents-none refused-agent-name refused-agent-unknown refused-agent-near refused-agent-project refused-agent-run refused-agent-place refused-agents-away \
    own-key-simulated own-key-refused own-key-forbidden refused-upgrade session-no-access session-ticket session-unknown session-refused session-no-model bare-unauthorized bare-quota-exceeded bare-permission-denied gateway-bare-unauthorized gateway-bare-permission-denied \
    model-quota-exceeded model-quota-exceeded-window model-quota-exceeded-day model-quota-exceeded-month provider-internal refused-path refused-path-doubled refused-chat-off refused-admin-path refused-method refused-content-type refused-deadline refused-model-path \
    refused-key-missing refused-key-unknown refused-admin-key refused-admin-local refused-admin-unset refused-metrics refused-host-count refused-stopping refused-memory refused-busy refused-content-encoding refused-origin refused-host refused-model refused-model-long refused-model-near \
    refused-no-provider refused-only-simulated refused-body refused-body-empty refused-body-cut refused-body-not-json refused-body-not-utf8 \
    refused-body-not-object refused-body-too-deep refused-body-large refused-body-slow refused-body-broken \
    refused-field-missing refused-field-twice refused-field-type refused-field-unknown refused-item-type refused-order \
    refused-order-large refused-target refused-scope-key refused-scope-unknown refused-scope-near refused-until refused-query refused-query-choice \
    refused-query-number refused-query-time refused-query-day refused-key-route refused-budget-day refused-budget-month refused-rate refused-feed-full refused-store refused-internal ready-no-provider ready-store";

fn phrases() -> Phrases {
    Phrases::new().unwrap()
}

/// What is said of the arguments of a call, by the names that the core has for it.
fn repairs() -> impl Iterator<Item = String> {
    let changes = ChangeKind::ALL.iter().map(|change| format!("repair-change-{}", change.name()));
    let defects = Defect::ALL.iter().map(|defect| format!("repair-defect-{}", defect.name()));
    changes.chain(defects).map(|id| id.replace('_', "-"))
}

/// Every id (with attribute) of a file and the text that belongs to it.
fn entries(lang: Lang) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    let (mut message, mut current) = (String::new(), String::new());
    for line in lang.source().lines().filter(|line| !line.starts_with('#')) {
        let (id, text) = line.split_once('=').unwrap_or(("", line));
        let id = id.trim_end();
        if id.starts_with(|c: char| c.is_ascii_lowercase()) {
            message = id.to_owned();
            current.clone_from(&message);
            all.insert(current.clone(), text.to_owned());
        } else if let Some(attribute) = id.trim_start().strip_prefix('.') {
            all.remove(&message);
            current = format!("{message}.{attribute}");
            all.insert(current.clone(), text.to_owned());
        } else {
            all.entry(current.clone()).or_default().push_str(line);
        }
    }
    all.remove("");
    all
}

/// The code of all crates, tests in files of their own left out.
fn source_code() -> String {
    let mut code = String::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && !["tests", "benches", "target"].contains(&name.as_str()) {
                folders.push(path);
            } else if name.ends_with(".rs") && name != "tests.rs" {
                code.push_str(&std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    code
}

fn variables(text: &str) -> BTreeSet<&str> {
    text.split("{ $").skip(1).filter_map(|rest| rest.split_once(" }")).map(|(name, _)| name).collect()
}

fn is_japanese(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}')
}

/// Message and suggestion of a pair as one text.
fn both(lang: Lang, kind: Kind, sub: Option<Sub>) -> String {
    let phrases = phrases();
    format!("{} {}", phrases.message(lang, kind, sub), phrases.suggestion(lang, kind, sub))
}

#[test]
fn every_kind_and_every_finer_reason_speaks_both_languages() {
    let phrases = phrases();
    for &lang in Lang::ALL {
        for part in ["message", "suggestion"] {
            for kind in Kind::ALL {
                let id = format!("kind-{}.{part}", kind.name()).replace('_', "-");
                assert!(phrases.own(lang, &id, &[]).is_some(), "{id} is missing in {}", lang.name());
            }
            for (kind, subs) in FINER {
                for sub in *subs {
                    let id = format!("kind-{}-{}.{part}", kind.name(), sub.name()).replace('_', "-");
                    assert!(phrases.own(lang, &id, &[]).is_some(), "{id} is missing in {}", lang.name());
                }
            }
        }
    }
}

#[test]
fn every_tool_category_and_label_speaks_both_languages() {
    let phrases = phrases();
    for &lang in Lang::ALL {
        for category in TOOL_CATEGORIES.split(' ') {
            for part in ["message", "suggestion"] {
                let id = format!("tool-{category}.{part}").replace('_', "-");
                assert!(phrases.own(lang, &id, &[]).is_some(), "{id} is missing in {}", lang.name());
            }
            assert!(phrases.tool_message(lang, category).is_some());
            assert!(phrases.tool_suggestion(lang, category).is_some());
        }
        for id in COMPOSED.split_whitespace().map(str::to_owned).chain(repairs()) {
            assert!(phrases.own(lang, &id, &[]).is_some(), "{id} is missing in {}", lang.name());
        }
        for kind in Kind::ALL {
            let fault = Fault::of(*kind, "test");
            for id in [
                format!("reason-{}", fault.log_reason()),
                format!("origin-{}", fault.origin.name()),
                format!("scope-{}", fault.scope.name()),
                format!("confidence-{}", fault.confidence.name()),
            ] {
                assert!(phrases.text(lang, &id, &[]).is_some(), "{id}");
            }
        }
    }
}

#[test]
fn both_files_have_the_same_ids_and_variables() {
    let (en, ja) = (entries(Lang::En), entries(Lang::Ja));
    assert_eq!(en.keys().collect::<Vec<_>>(), ja.keys().collect::<Vec<_>>());
    for (id, text) in &en {
        assert_eq!(variables(text), variables(&ja[id]), "{id}");
    }
    assert_eq!(variables(&en["json-retry-model"]), BTreeSet::from(["error", "json"]));
}

/// An entry for a kind, sub or category that does not exist is never shown: a leftover or a slip.
#[test]
fn no_entry_is_left_over() {
    let mut known: BTreeSet<String> = COMPOSED.split_whitespace().map(str::to_owned).collect();
    let mut both = |id: String| {
        known.extend(["message", "suggestion"].map(|part| format!("{id}.{part}").replace('_', "-")));
    };
    Kind::ALL.iter().for_each(|kind| both(format!("kind-{}", kind.name())));
    for (kind, subs) in FINER {
        subs.iter().for_each(|sub| both(format!("kind-{}-{}", kind.name(), sub.name())));
    }
    TOOL_CATEGORIES.split(' ').for_each(|category| both(format!("tool-{category}")));
    OWN.split_whitespace().for_each(|id| both(id.to_owned()));
    known.extend(repairs());
    let there: BTreeSet<String> = entries(Lang::En).into_keys().collect();
    let missing: Vec<&String> = known.difference(&there).collect();
    assert!(missing.is_empty(), "not in the phrase file: {missing:?}");
    let of_rules = rule_ids();
    let is_of_rule = |id: &str| id.split_once('.').is_some_and(|(id, _)| of_rules.contains(id));
    let code = source_code();
    let is_in_code = |id: &str| code.contains(&format!("\"{id}\""));
    let is_unused =
        |id: &&String| !is_in_code(id) && !id.split_once('.').is_some_and(|(id, _)| is_in_code(id));
    let unused = there.difference(&known).filter(|id| !is_of_rule(id));
    let unused: Vec<&String> = unused.filter(is_unused).collect();
    assert!(unused.is_empty(), "no code has these ids, and the lists of this test neither: {unused:?}");
}

/// The ids that phrases of single rules may have.
fn rule_ids() -> BTreeSet<String> {
    let files = [
        include_str!("../../../koboshi/src/classify/rules/tool.yaml"),
        include_str!("../../../koboshi/src/classify/rules/process.yaml"),
    ];
    let id = |line: &'static str| line.trim().strip_prefix("- {id: ")?.split(',').next();
    let ids = files.into_iter().flat_map(str::lines).filter_map(id);
    ids.map(|id| format!("rule-{}", id.replace(['.', '_'], "-"))).collect()
}

#[test]
fn texts_are_whole_and_in_their_own_language() {
    let phrases = phrases();
    for &lang in Lang::ALL {
        for (id, source) in entries(lang) {
            let args: Vec<(&str, &str)> = variables(&source).into_iter().map(|name| (name, "X")).collect();
            let text = phrases.own(lang, &id, &args).unwrap();
            assert!(!text.trim().is_empty(), "{id}");
            assert_eq!(text.trim(), text, "{id}");
            assert!(!text.contains(['{', '}', '\u{2068}', '\u{2069}', '!', '！']), "{id}: {text}");
            assert_eq!(source.chars().any(is_japanese), lang == Lang::Ja, "{id}: {text}");
            if id.ends_with(".message") || id.ends_with(".suggestion") {
                let end = if lang == Lang::Ja { '。' } else { '.' };
                assert!(text.ends_with(end), "{id}: {text}");
            }
        }
    }
}

#[test]
fn the_finer_reason_wins_and_falls_back() {
    let phrases = phrases();
    for &lang in Lang::ALL {
        let plain = phrases.suggestion(lang, Kind::Timeout, None);
        assert_ne!(phrases.suggestion(lang, Kind::Timeout, Some(Sub::Idle)), plain);
        assert_eq!(phrases.suggestion(lang, Kind::Timeout, Some(Sub::Billing)), plain);
        assert_eq!(phrases.text(lang, "no-such-id", &[]), None);
        assert_eq!(phrases.text(lang, "", &[]), None);
        assert_eq!(phrases.text(lang, "kind-timeout.no_such_part", &[]), None);
        assert_eq!(phrases.tool_message(lang, "no such category"), None);
    }
}

#[test]
fn variables_are_filled_in_as_they_are() {
    let phrases = phrases();
    let seen = phrases.text(Lang::En, "label-seen", &[("line", "7"), ("rule", "a.{ $b }")]);
    assert_eq!(seen.as_deref(), Some("Found in line 7, by rule a.{ $b }"));
    let until = phrases.text(Lang::Ja, "wait-until", &[("time", "17:00"), ("left", "23 分")]);
    assert_eq!(until.as_deref(), Some("17:00まで（あと 23 分）"));
    assert!(phrases.text(Lang::En, "label-seen", &[]).unwrap().contains("$line"), "a gap shows, not a crash");
}

#[test]
fn tags_and_locale_names_lead_to_a_language() {
    for (tag, lang) in [
        ("ja", Some(Lang::Ja)),
        ("ja_JP.UTF-8", Some(Lang::Ja)),
        ("JA-jp", Some(Lang::Ja)),
        ("en-US", Some(Lang::En)),
        ("en@euro", Some(Lang::En)),
        ("C", None),
        ("", None),
        ("jav", None),
    ] {
        assert_eq!(Lang::from_tag(tag), lang, "{tag}");
    }
}

/// The sentences of the designs that Koboshi grew from are promises to their users. Where one of them read badly, it was mended.
#[test]
fn inherited_sentences_stay() {
    let phrases = phrases();
    let messages = [
        (Kind::ConnectionFailed, "AI プロバイダーへの接続に失敗しました"),
        (Kind::Timeout, "AI プロバイダーからの応答がタイムアウトしました"),
        (Kind::Unavailable, "AI サービスが一時的に利用できません"),
        (Kind::Unauthorized, "API キーが無効です"),
        (Kind::TokenExpired, "サインインの有効期限が切れています"),
        (Kind::PermissionDenied, "API へのアクセス権限がありません"),
        (Kind::ContextBuildFailed, "コンテキストの構築に失敗しました"),
        (Kind::ContextTooLarge, "コンテキストがトークン数の上限を超えています"),
        (Kind::TemplateNotFound, "プロンプトテンプレートが見つかりません"),
        (Kind::ResponseInvalid, "AI モデルからの応答が不正です"),
        (Kind::ContentFiltered, "応答がブロックされました"),
        (Kind::Overloaded, "AI モデルが過負荷状態です"),
        (Kind::Internal, "内部エラーが発生しました"),
        (Kind::ConversationNotFound, "会話が見つかりません"),
        (Kind::MessageSaveFailed, "メッセージの保存に失敗しました"),
        (Kind::CallDepthExceeded, "ツール呼び出しの回数を超えました"),
    ];
    for (kind, sentence) in messages {
        assert!(phrases.message(Lang::Ja, kind, None).contains(sentence), "{}", kind.name());
        let subs = FINER.iter().find(|(with, _)| *with == kind).map_or(&[][..], |(_, subs)| *subs);
        // A locked conversation is no failure of the service, what was not connected did not answer late, a token that was never there has
        // not expired, a block on the way is no missing permission, and a web page is no model's answer: there the sentence would mislead.
        let misled =
            |sub: &&Sub| matches!(sub, Sub::Locked | Sub::Connect | Sub::Token | Sub::Blocked | Sub::NotApi);
        for sub in subs.iter().filter(|sub| !misled(sub)) {
            assert!(
                phrases.message(Lang::Ja, kind, Some(*sub)).contains(sentence),
                "{} {sub:?}",
                kind.name()
            );
        }
    }
    let suggestions = [
        (Kind::RateLimited, "しばらく待ってから再度お試しください。"),
        (Kind::ContextTooLarge, "質問を短くするか、会話をリセットしてください。"),
        (Kind::Unavailable, "システム管理者に連絡してください。"),
    ];
    for (kind, sentence) in suggestions {
        assert!(phrases.suggestion(Lang::Ja, kind, None).contains(sentence), "{}", kind.name());
    }
    let texts = [
        ("json-retry-user", "このアクションは正しく実行されませんでした"),
        ("json-exhausted-user", "ユーザーのタスクを正しく実行できませんでした"),
        (
            "json-retry-model",
            "JSON構文エラーが発生しました。以下のJSONを修正してください。\nエラー: E\n不正なJSON: J\n\n\
             正しいJSON形式でもう一度functionCallを送信してください。",
        ),
        (
            "json-exhausted-model",
            "JSON構文エラーが解決できませんでした。タスクを正しく実行できません。\nエラー: E\n不正なJSON: J",
        ),
        (
            "static-unavailable",
            "申し訳ありません。現在サービスが利用できません。しばらくしてからもう一度お試しください。",
        ),
        (
            "unavailable-long",
            "申し訳ございません。AI アシスタントが現在利用できません。\n\n\
             しばらく時間をおいてから再度お試しください。\n問題が続く場合は、システム管理者にお問い合わせください。",
        ),
        ("static-notice", "AI サービスが一時的に利用できないため、事前定義された応答を表示しています。"),
    ];
    for (id, text) in texts {
        assert_eq!(
            phrases.text(Lang::Ja, id, &[("error", "E"), ("json", "J")]).as_deref(),
            Some(text),
            "{id}"
        );
    }
}

/// Advice that sends people the wrong way is worse than none.
#[test]
fn nothing_unhelpful_is_said() {
    type Words = &'static [&'static str];
    let never: &[(Kind, Option<Sub>, Words, Words)] = &[
        (
            Kind::ConnectionFailed,
            Some(Sub::Dns),
            &["later", "try again", "wait"],
            &["しばらく", "お試し", "後ほど", "待って", "時間をおいて"],
        ),
        (
            Kind::ConnectionFailed,
            Some(Sub::Certificate),
            &["network error", "try again", "later"],
            &["ネットワークエラー", "お試し", "しばらく"],
        ),
        (Kind::ConnectionFailed, Some(Sub::Unreachable), &["api key", "your key"], &["キー"]),
        (Kind::ConnectionRefused, None, &["key"], &["キー"]),
        (
            Kind::ConnectionFailed,
            Some(Sub::Reset),
            &["timed out", "time limit"],
            &["タイムアウト", "制限時間"],
        ),
        (Kind::ConnectionClosed, None, &["timed out", "time limit"], &["タイムアウト", "制限時間"]),
        (Kind::ConnectionFailed, Some(Sub::Proxy), &["provider refused"], &["プロバイダーが拒否"]),
        (Kind::Unavailable, None, &["internal error"], &["内部エラー"]),
        (Kind::Overloaded, None, &["internal error"], &["内部エラー"]),
        (Kind::QuotaExceeded, Some(Sub::Billing), &["try again"], &["お試し"]),
        (Kind::Unauthorized, None, &["try again later"], &["しばらく"]),
    ];
    for (kind, sub, english, japanese) in never {
        let en = both(Lang::En, *kind, *sub).to_lowercase();
        let ja = both(Lang::Ja, *kind, *sub);
        english.iter().for_each(|words| assert!(!en.contains(words), "{en}"));
        japanese.iter().for_each(|words| assert!(!ja.contains(words), "{ja}"));
    }
    assert!(
        both(Lang::En, Kind::ConnectionFailed, Some(Sub::Certificate)).contains("Retrying will not help")
    );
    assert!(
        both(Lang::Ja, Kind::ConnectionFailed, Some(Sub::Certificate)).contains("再試行しても解決しません")
    );
    for lang in Lang::ALL {
        assert!(both(*lang, Kind::ConnectionFailed, Some(Sub::Dns)).contains("base_url"));
    }
    // Each time limit is named, so that a person knows which setting to look at.
    for (sub, en, ja) in [
        (Sub::Connect, "connect timeout", "接続のタイムアウト"),
        (Sub::FirstContent, "first-content timeout", "最初の応答までのタイムアウト"),
        (Sub::Idle, "idle timeout", "無通信のタイムアウト"),
        (Sub::Total, "whole request", "リクエスト全体のタイムアウト"),
    ] {
        assert!(both(Lang::En, Kind::Timeout, Some(sub)).contains(en));
        assert!(both(Lang::Ja, Kind::Timeout, Some(sub)).contains(ja));
    }
}

/// Of an answer that was not streamed, no part has arrived: a part is spoken of only where there is one.
#[test]
fn a_closed_connection_speaks_of_a_part_only_where_one_arrived() {
    let phrases = phrases();
    for (lang, condition) in
        [(Lang::En, "If a part of the answer has arrived,"), (Lang::Ja, "応答の一部が届いている場合は、")]
    {
        let suggestion = phrases.suggestion(lang, Kind::ConnectionClosed, None);
        assert!(suggestion.contains(condition), "{suggestion}");
    }
}

/// Reports are redacted as a whole: our own sentences must come through.
#[test]
fn redaction_leaves_phrases_alone() {
    let redactor = koboshi::redact::Redactor::new();
    for &lang in Lang::ALL {
        for (id, text) in entries(lang) {
            assert_eq!(redactor.redact(&text), text, "{id}");
        }
    }
}

#[test]
fn phrases_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&phrases());
}

#[test]
fn countdowns_are_counted_in_the_readers_language() {
    let phrases = Phrases::new().unwrap();
    let length = std::time::Duration::from_millis(93_600_000 + 125_400);
    assert_eq!(phrases.countdown(Lang::En, length), "1d 2h 2m 6s");
    assert_eq!(phrases.countdown(Lang::Ja, length), "1 日 2 時間 2 分 6 秒");
    let short = std::time::Duration::from_millis(640);
    assert_eq!(phrases.countdown(Lang::Ja, short), "640 ミリ秒");
}

//! What a secret looks like, and what announces one.
//!
//! A table, so that a new kind of key is one new row. Patterns are ASCII-only and become one alternation in
//! the order of the table (the leftmost match wins, then the first row). Three rules keep the promises
//! of the module above:
//! - no assertion about what follows a match, so that a text cut in two never matches more than the whole;
//! - no unbounded repetition in front of something that must still come, so that no search runs far
//!   ahead of its match;
//! - shapes end in the widest class of key characters, so that no match ends in the middle of another key.

/// How the secret is found once a pattern has matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Secret {
    /// The match is no secret, whatever the rows below would say.
    Nothing,
    /// The match is the secret.
    Match,
    /// The match is the secret if it does not read like a word (`sk-learn`).
    MatchUnlessWord,
    /// The match begins a private key block.
    KeyBlock,
    /// A value follows whose name leaves no doubt: only plain words are left alone.
    Value,
    /// Like `Value`, but the bare value may hold `,;&)` as values in environment files do.
    EnvValue,
    /// A value follows that may well be prose: bare after a colon it must look like a secret.
    KeyValue,
    /// Like `KeyValue`, and numbers and addresses are left alone (`max_token: 4096`, `token_url: https…`).
    TokenValue,
    /// Like `TokenValue`, and paths are left alone (`GOOGLE_APPLICATION_CREDENTIALS=/…/key.json`).
    CredentialValue,
    /// A scheme and its credentials follow.
    Authorization,
    /// Credentials follow a scheme.
    Bearer,
    /// The value stands in a sentence, after its name (`API key … is invalid`): only what no word looks like is one.
    InSentence,
    /// Cookies follow, up to the end of the line or the quote.
    Cookies,
    /// The user part of an address may follow.
    UserInfo,
}

/// One row: a pattern, how to find the secret from it, and what to call it.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) label: &'static str,
    pub(super) take: Secret,
    pub(super) pattern: &'static str,
}

const fn rule(label: &'static str, take: Secret, pattern: &'static str) -> Rule {
    Rule { label, take, pattern }
}

/// Between a name and its value: a closing quote (perhaps escaped), then `:`, `=`, `=>`, `:=` or their
/// encoded and full-width forms. Spaces are bounded on purpose.
macro_rules! sep {
    () => {
        r#"\\{0,7}["']?\]?[ \t]{0,4}(?:[:=]{1,2}>?|%3[AaDd]|：)[ \t]{0,8}"#
    };
}

/// What a sentence puts before a value: a space or a particle, then perhaps a quote. Alternatives, not classes: these are bytes.
macro_rules! in_sentence {
    ($particle:literal) => {
        concat!($particle, r#"[ \t]{0,4}(?:["'`(<\[]|「|『|（|‹|«)?"#)
    };
}

/// The end of a name after the word that gives it away: `_value`, `Value`, `2`, but not the `s` of `max_tokens`.
macro_rules! suffix {
    () => {
        "(?:[0-9]{1,2}|[_-][A-Za-z0-9_-]{1,16}|[A-Z][A-Za-z0-9]{1,16})?"
    };
}

pub(super) const RULES: &[Rule] = &[
    // Known by their shape.
    rule("key", Secret::KeyBlock, "-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----"),
    rule("key", Secret::Match, r"sk-(?:ant|proj|svcacct|or-v[0-9]|lf|None)-[A-Za-z0-9_*-]{10,}"),
    rule("key", Secret::Match, r"sk-(?:admin-)?[A-Za-z0-9]{20,}[A-Za-z0-9_*-]*"),
    rule("key", Secret::MatchUnlessWord, r"\bsk-[A-Za-z0-9_*-]{4,}"),
    rule("key", Secret::Match, r"[rs]k_(?:live|test)_[A-Za-z0-9_-]{8,}"),
    rule("key", Secret::Match, r"AIza[A-Za-z0-9_-]{30,}"),
    rule(
        "key",
        Secret::Match,
        r"A[KS]IA[A-Z0-9]{16}[A-Za-z0-9_-]*(?:[ \t]?[:,|/ ][ \t]?[A-Za-z0-9/+_-]{40,})?",
    ),
    rule("key", Secret::Match, r"ABSK[A-Za-z0-9+/=_-]{40,}"),
    rule(
        "key",
        Secret::Match,
        r"(?:gsk_|csk-|r8_|pplx-|fw_|nvapi-|xai-|tgp_v1_)[A-Za-z0-9_-]?[A-Za-z0-9]{16,}[A-Za-z0-9_-]*",
    ),
    rule(
        "token",
        Secret::Match,
        r"(?:hf_|npm_|gh[pousr]_|dapi|lsv2_[a-z]{2}_)[A-Za-z0-9]{16,}[A-Za-z0-9_-]*",
    ),
    rule("token", Secret::Match, r"(?:github_pat_|glpat-|GOCSPX-|ya29\.|pypi-)[A-Za-z0-9_.-]{16,}"),
    rule("token", Secret::Match, r"xox[a-z]-[A-Za-z0-9_-]{10,}"),
    rule("token", Secret::Match, r"eyJ[A-Za-z0-9_-]{12,}(?:\.[A-Za-z0-9_-]*)*"),
    rule("webhook", Secret::Value, r"hooks\.slack\.com/(?:services|workflows|triggers)/"),
    rule("webhook", Secret::Value, r"discord(?:app)?\.com/api/webhooks/"),
    // Announced by a name.
    rule("token", Secret::Authorization, concat!("(?i:authorization)", sep!())),
    rule("token", Secret::Bearer, r"(?i:\bbearer)(?:[ \t]{1,4}|%20|\+)"),
    rule("cookie", Secret::Cookies, concat!("(?i:cookies?)", sep!())),
    rule("password", Secret::EnvValue, "(?:(?:PASSWORD|PASSWD|PASSPHRASE)[A-Z0-9_]{0,16}|_PASS|_PWD)="),
    rule("secret", Secret::EnvValue, "SECRET[A-Z0-9_]{0,16}="),
    rule("key", Secret::EnvValue, "API_?KEY[A-Z0-9_]{0,16}="),
    rule(
        "password",
        Secret::Value,
        concat!(
            "(?i:passwords?|passwd|passphrase|パスワード|パスフレーズ|暗証番号|PINコード)",
            suffix!(),
            sep!()
        ),
    ),
    rule("password", Secret::Value, concat!("(?i:_pwd|_pass)", sep!())),
    rule(
        "key",
        Secret::KeyValue,
        concat!(
            "(?i:(?:api|access|secret|private|auth|signing|encryption|master|subscription|account|shared",
            "|service|admin|app|client|storage|license)[ _-]?keys?)",
            suffix!(),
            "(?: (?:provided|given|supplied|used|is))?",
            sep!()
        ),
    ),
    rule("password", Secret::TokenValue, concat!(r"\b(?:pass|pwd|Pass|Pwd)", sep!())),
    rule(
        "key",
        Secret::KeyValue,
        concat!(
            "(?:(?i:API)|秘密|シークレット|アクセス|認証|プライベート|マスター|暗号化|署名|共有|アカウント|サービス",
            "|クライアント|ライセンス|サブスクリプション)(?: |・|_)?キー",
            sep!()
        ),
    ),
    rule("key", Secret::KeyValue, concat!("(?:秘密|暗号|署名|共有|暗号化)鍵", sep!())),
    rule("key", Secret::TokenValue, concat!("[A-Z0-9]_KEY", sep!())),
    rule("key", Secret::Value, r"[?&;](?i:(?:api[_-]?)?key|auth|sig|signature|x-amz-signature)="),
    rule("secret", Secret::Value, concat!("(?i:secrets?|シークレット)", suffix!(), sep!())),
    rule("secret", Secret::CredentialValue, concat!("(?i:credentials?)", suffix!(), sep!())),
    rule("token", Secret::TokenValue, concat!("(?i:token|トークン)", suffix!(), "(?: provided)?", sep!())),
    // Named in a sentence.
    rule(
        "password",
        Secret::InSentence,
        concat!("(?:(?i:password|passphrase)(?: is)? |パスワード|パスフレーズ)", in_sentence!("(?:は|が)?")),
    ),
    rule(
        "key",
        Secret::InSentence,
        concat!("(?i:(?:api|access|secret|private)[ _-]?key)(?: is)? ", in_sentence!("")),
    ),
    rule("key", Secret::InSentence, concat!("(?:キー|秘密鍵|シークレット)", in_sentence!("(?:は|が|の)?"))),
    rule(
        "token",
        Secret::InSentence,
        concat!("(?:(?i:token)(?: is)? |トークン)", in_sentence!("(?:は|が|の)?")),
    ),
    // Command lines and argument lists, then lists of header pairs.
    rule(
        "secret",
        Secret::KeyValue,
        r#"--(?:[a-z0-9]{1,16}-){0,3}(?:key|token|secret|password|passwd)(?:[ \t]{1,2}|\\{0,7}["'],[ \t]{0,4})"#,
    ),
    rule(
        "secret",
        Secret::KeyValue,
        r#"\(b?["'](?i:[a-z0-9-]{0,24}(?:-key|token|secret|password|authorization|cookie))["'],[ \t]{0,4}"#,
    ),
    rule("userinfo", Secret::UserInfo, "://"),
    rule("email", Secret::Nothing, "git@"),
    // Last: a key may stand where the local part of an address would.
    rule(
        "email",
        Secret::Match,
        r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.[A-Za-z][A-Za-z0-9_-]+",
    ),
];

/// Whether a mark with this label is one of ours.
pub(super) fn is_label(label: &str) -> bool {
    label == "text" || super::bare::LABELS.contains(&label) || RULES.iter().any(|rule| rule.label == label)
}

//! The fault table: every kind of fault, once.
//!
//! This is the only source of kinds. The codes page (`docs/codes.md`), `koboshi codes`, the phrase files
//! and the clients are generated from it or checked against it, so a new kind is one new row here and
//! a test elsewhere says what else it needs.
//!
//! A row holds what is *usual* for a kind. Single faults may differ (a certificate that fails
//! verification is a `connection_failed` that no retry cures): the classifier's rules say where, and the
//! [`Fault`](super::Fault) carries the resolved flags. The table deliberately holds no wording: phrases
//! live in `koboshi-report`.

use super::{Health, Later, Origin, Other, Same, Scope};

/// One row of the fault table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// The kind this row describes.
    pub kind: Kind,
    /// Stable name, as used in JSON, metrics, rule files and phrase ids.
    pub name: &'static str,
    /// The four digits of the code; a prefix such as `KBS` is put before them for show.
    pub code: u16,
    /// Numeric code of the streaming protocol.
    pub stream_code: u16,
    /// HTTP status towards the client, if the fault can be answered to one.
    pub http_status: Option<u16>,
    /// Who usually causes it.
    pub origin: Origin,
    /// What else it usually affects.
    pub scope: Scope,
    /// May the same target be tried again?
    pub same: Same,
    /// May another target succeed?
    pub other: Other,
    /// May the user try later?
    pub later: Later,
    /// Does it count against the target's health?
    pub health: Health,
    /// When this kind is chosen, in one sentence.
    pub meaning: &'static str,
}

macro_rules! kinds {
    ($($variant:ident = $name:literal, $code:literal, $stream:literal, $http:expr,
       $origin:ident, $scope:ident, $same:ident, $other:ident, $later:ident, $health:ident, $meaning:literal;)+) => {
        /// What kind of failure a [`Fault`](super::Fault) is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Kind {
            $(#[doc = $meaning] $variant,)+
        }

        /// The table, in the order of the codes' families.
        pub static TABLE: &[Row] = &[$(Kind::$variant.row(),)+];

        impl Kind {
            /// Every kind, in table order.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The row of this kind.
            #[must_use]
            pub const fn row(self) -> Row {
                match self {
                    $(Self::$variant => Row {
                        kind: Self::$variant, name: $name, code: $code, stream_code: $stream,
                        http_status: $http, origin: Origin::$origin, scope: Scope::$scope,
                        same: Same::$same, other: Other::$other, later: Later::$later,
                        health: Health::$health, meaning: $meaning,
                    },)+
                }
            }
        }
    };
}

kinds! {
//  variant               name                     code  stream  HTTP       origin     scope     same          other           later      health    meaning
    ConnectionFailed     = "connection_failed",     1001, 1001, Some(502), Transport, Network,  Yes,          Yes,            Yes,       Yes,      "No connection to the provider: name, route, TLS, proxy, or a reset before any answer.";
    Timeout              = "timeout",               1002, 1002, Some(504), Transport, Provider, Yes,          Yes,            Yes,       Yes,      "A time limit passed, on either side.";
    Unavailable          = "unavailable",           1003, 5002, Some(503), Provider,  Provider, Yes,          Yes,            Yes,       Yes,      "The provider or a gateway before it is down, restarting or still loading the model.";
    ConnectionRefused    = "connection_refused",    1004, 1001, Some(502), Transport, Provider, Yes,          Yes,            Yes,       Yes,      "The connection to the provider was refused.";
    ConnectionClosed     = "connection_closed",     1005, 1003, Some(502), Transport, Provider, Yes,          Yes,            Yes,       Yes,      "The answer broke off before its end.";
    Unauthorized         = "unauthorized",          2001, 2001, Some(401), Provider,  Key,      No,           Yes,            No,        Yes,      "The key is missing, wrong or revoked.";
    TokenExpired         = "token_expired",         2002, 2002, Some(401), Provider,  Key,      AfterRefresh, Yes,            No,        No,       "A short-lived credential has run out and must be refreshed.";
    PermissionDenied     = "permission_denied",     2003, 2001, Some(403), Provider,  Account,  No,           Yes,            No,        ByScope,  "The credential is known, but this use of it is refused.";
    RateLimited          = "rate_limited",          3001, 4004, Some(429), Provider,  Account,  AfterWait,    Yes,            Yes,       No,       "Too much in a short window; it opens again by itself.";
    QuotaExceeded        = "quota_exceeded",        3002, 4004, Some(429), Provider,  Account,  No,           Yes,            AtReset,   Yes,      "The quota of a long window, or the money for it, is used up.";
    ContextBuildFailed   = "context_build_failed",  4001, 4001, Some(500), Koboshi,   Request,  No,           No,             No,        No,       "The context of a request could not be put together.";
    ContextTooLarge      = "context_too_large",     4002, 4002, Some(400), Client,    Request,  Trimmed,      LargerWindow,   No,        No,       "More tokens than the model or the tier takes.";
    TemplateNotFound     = "template_not_found",    4003, 4001, Some(500), Koboshi,   Request,  No,           No,             No,        No,       "A prompt template is missing.";
    InvalidRequest       = "invalid_request",       4004, 3001, Some(400), Client,    Request,  No,           CapabilityOnly, No,        No,       "The request itself is wrong.";
    ModelNotFound        = "model_not_found",       4005, 3001, Some(404), Client,    Model,    No,           Yes,            No,        No,       "The model is unknown, retired or not deployed there.";
    InvalidMessage       = "invalid_message",       4006, 3001, Some(400), Client,    Request,  No,           No,             No,        No,       "A message of the session protocol cannot be read.";
    MessageTooLarge      = "message_too_large",     4007, 3002, Some(413), Client,    Request,  No,           Yes,            No,        No,       "More bytes than the receiver takes.";
    ResponseInvalid      = "response_invalid",      5001, 4001, Some(502), Provider,  Request,  Yes,          Yes,            Yes,       Yes,      "An answer came, but it cannot be used.";
    ContentFiltered      = "content_filtered",      5002, 4001, Some(400), Provider,  Request,  No,           Yes,            No,        No,       "A content policy stopped the request or the answer.";
    Overloaded           = "overloaded",            5003, 5002, Some(503), Provider,  Model,    Yes,          Yes,            Yes,       Yes,      "The provider says that it lacks capacity.";
    ToolArgumentsInvalid = "tool_arguments_invalid", 5004, 4003, Some(502), Provider, Request,  Reask,        Yes,            Yes,       No,       "The model wrote a tool call whose arguments cannot be read.";
    AgentError           = "agent_error",           6001, 4001, Some(500), Process,   Request,  No,           No,             Yes,       No,       "The agent itself failed.";
    ToolFailed           = "tool_failed",           6002, 4003, None,      Tool,      Request,  ByCategory,   NotApplicable,  NotApplicable, No,   "A tool reported that its call failed.";
    ToolLoop             = "tool_loop",             6003, 4003, None,      Tool,      Request,  No,           No,             NextTurn,  No,       "The agent repeats a call without making progress.";
    CallDepthExceeded    = "call_depth_exceeded",   6004, 4003, None,      Tool,      Request,  No,           No,             NextTurn,  No,       "Too many tool calls in one user turn.";
    SpawnFailed          = "spawn_failed",          7001, 5001, None,      Process,   Request,  ByErrno,      NotApplicable,  NotApplicable, No,   "The agent process could not be started.";
    ProcessFailed        = "process_failed",        7002, 5001, None,      Process,   Request,  Backoff,      NotApplicable,  NotApplicable, No,   "The agent process ended in failure for a reason of its own.";
    CoolingDown          = "cooling_down",          7003, 5002, Some(503), Koboshi,   Account,  AtEnd,        Yes,            Yes,       No,       "The target is in cooldown until a known time.";
    Parked               = "parked",                7004, 5002, Some(503), Koboshi,   Account,  No,           Yes,            No,        No,       "Stopped until a person resumes it.";
    Internal             = "internal",              9001, 5001, Some(500), Koboshi,   Request,  No,           No,             Yes,       No,       "An unexpected error; a provider's own 500 keeps this kind with the flags of `unavailable`.";
    ConversationNotFound = "conversation_not_found", 9002, 3001, Some(404), Koboshi,  Request,  No,           No,             No,        No,       "The conversation is not known here.";
    MessageSaveFailed    = "message_save_failed",   9003, 5001, Some(500), Koboshi,   Request,  Yes,          NotApplicable,  Yes,       No,       "A message could not be stored.";
}

impl Kind {
    /// Stable name of the kind.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The code with a prefix, such as `KBS-3002`.
    #[must_use]
    pub fn code(self, prefix: &str) -> String {
        format!("{prefix}-{}", self.row().code)
    }

    /// The kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// The prefix that codes carry unless a front end wants its own.
pub const DEFAULT_PREFIX: &str = "KBS";

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_and_codes_are_unique() {
        let names: HashSet<_> = TABLE.iter().map(|row| row.name).collect();
        let codes: HashSet<_> = TABLE.iter().map(|row| row.code).collect();
        assert_eq!(names.len(), TABLE.len());
        assert_eq!(codes.len(), TABLE.len());
    }

    #[test]
    fn a_kind_finds_its_own_row_and_name() {
        for row in TABLE {
            assert_eq!(row.kind.row(), *row);
            assert_eq!(Kind::from_name(row.name), Some(row.kind));
        }
        assert_eq!(Kind::from_name("no_such_kind"), None);
    }

    #[test]
    fn codes_take_any_prefix() {
        assert_eq!(Kind::QuotaExceeded.code(DEFAULT_PREFIX), "KBS-3002");
        assert_eq!(Kind::QuotaExceeded.code("MIRA"), "MIRA-3002");
    }

    /// The digits of the chat-assistant design and the numbers of the streaming protocol are promises to
    /// clients that already exist.
    #[test]
    fn inherited_numbers_stay() {
        let inherited = [
            (Kind::ConnectionFailed, 1001),
            (Kind::Timeout, 1002),
            (Kind::Unavailable, 1003),
            (Kind::Unauthorized, 2001),
            (Kind::TokenExpired, 2002),
            (Kind::PermissionDenied, 2003),
            (Kind::RateLimited, 3001),
            (Kind::QuotaExceeded, 3002),
            (Kind::ContextBuildFailed, 4001),
            (Kind::ContextTooLarge, 4002),
            (Kind::TemplateNotFound, 4003),
            (Kind::ResponseInvalid, 5001),
            (Kind::ContentFiltered, 5002),
            (Kind::Overloaded, 5003),
            (Kind::Internal, 9001),
            (Kind::ConversationNotFound, 9002),
            (Kind::MessageSaveFailed, 9003),
        ];
        for (kind, code) in inherited {
            assert_eq!(kind.row().code, code, "{}", kind.name());
        }
        let stream: HashSet<u16> = TABLE.iter().map(|row| row.stream_code).collect();
        let protocol = [1001, 1002, 1003, 2001, 2002, 3001, 3002, 4001, 4002, 4003, 4004, 5001, 5002];
        for code in protocol {
            assert!(stream.contains(&code), "stream code {code} can be produced");
        }
        assert_eq!(stream.len(), protocol.len(), "no stream code beyond the protocol's");
    }
}

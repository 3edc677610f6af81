//! `sessions`: WebSocket conversations.

use super::super::{Field, Key, Range};
use super::build::{
    ANY_LENGTH, SOME_COUNT, SOME_LENGTH, UP_TO_A_DAY, at, count, count_at, flag, length, section, text, word,
    word_at,
};
use super::forms::NAME;
use crate::sessions::{OnDetach, SessionKeep};

pub(super) fn keys() -> Vec<Key> {
    vec![
        section("sessions", "WebSocket conversations that survive their connections (see sessions.md)"),
        text(
            "sessions.model",
            NAME,
            Field { get: |c, _| c.sessions.model.clone(), set: |c, _, model| c.sessions.model = model },
            "Route or model that answers when a chat names none",
        )
        .unset("the only route, if there is just one", "ルートが 1 つだけの場合は、そのルート"),
        word(
            "sessions.keep",
            SessionKeep::NAMES,
            word_at!(SessionKeep, sessions.keep),
            "`store` keeps transcripts in the store, so that they survive a restart; `memory` keeps them in this process only",
        ),
        length(
            "sessions.ttl",
            SOME_LENGTH,
            at!(sessions.ttl),
            "How long a session is kept after its last use",
        ),
        word(
            "sessions.on_detach",
            OnDetach::NAMES,
            word_at!(OnDetach, sessions.on_detach),
            "What happens to a running turn that no client reads: `continue` finishes it, which costs tokens, `cancel` stops it after 10 s",
        ),
        length(
            "sessions.detached_for",
            ANY_LENGTH,
            at!(sessions.detached_for),
            "How long a turn may run without a reader; it is cancelled then",
        ),
        flag(
            "sessions.plain",
            at!(sessions.plain),
            "Whether clients without `hello` are served: one anonymous session per connection, without resume",
        ),
        flag(
            "sessions.seed_errors",
            at!(sessions.seed_errors),
            "Whether `recoverable` is false when all attempts of a turn have failed; clients then close the connection",
        ),
        length(
            "sessions.heartbeat",
            UP_TO_A_DAY,
            at!(sessions.heartbeat),
            "Time between two pings of the server",
        ),
        length(
            "sessions.tool_timeout",
            UP_TO_A_DAY,
            at!(sessions.tool_timeout),
            "How long the result of a client's tool is waited for",
        ),
        length(
            "sessions.claim_grace",
            UP_TO_A_DAY,
            at!(sessions.claim_grace),
            "How long a tab that has claimed a tool may be away before the call is offered again or its result counts as unknown",
        ),
        count(
            "sessions.max_frame_bytes",
            Range::of(1024, 4 * 1024 * 1024),
            at!(sessions.max_frame_bytes),
            "Maximum size of a frame that a client sends, in bytes",
        ),
        count(
            "sessions.max_connections",
            SOME_COUNT,
            count_at!(sessions.max_connections),
            "Maximum number of connections to one session",
        ),
        count(
            "sessions.max_queued",
            Range::of(0, 100),
            count_at!(sessions.max_queued),
            "Maximum number of turns that wait behind the running one",
        ),
        length(
            "sessions.connection_lifetime",
            SOME_LENGTH,
            at!(sessions.connection_lifetime),
            "How long a connection lasts before its client is asked to reconnect",
        ),
        length(
            "sessions.ticket_ttl",
            UP_TO_A_DAY,
            at!(sessions.ticket_ttl),
            "How long a ticket can be used after it was issued",
        ),
    ]
}

//! Programs that take a status for something else than it says, known by the name that they give themselves.
//!
//! An error that no waiting mends must end them at once, and one that passes must not make them hammer. Each has statuses of its own for both,
//! seen in runs of the real programs: Codex asks thirty times after a 5xx without a time to wait and six times after most of 4xx, Gemini CLI ten
//! times after a 5xx, Claude Code eleven times after a 401. Libraries get the status that is meant: their exceptions are named by it.

use koboshi::fault::Kind;
use koboshi_wire::Dialect;
use koboshi_wire::http1::Fields;
use koboshi_wire::messages::error::OVERLOADED;

/// Codex is told to wait so many seconds where it is not known how long.
const A_WHILE: u64 = 5;

/// Gemini CLI comes back by itself after a wait of up to 300 seconds, and stops and shows the time where it is told a longer one.
const GEMINI_STOPS: u64 = 301;

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Program {
    /// A library, or a program that is not known.
    #[default]
    Other,
    Claude,
    Codex,
    Gemini,
}

/// How an error is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Seconds to wait, for the header `retry-after`.
    pub(crate) header: Option<u64>,
    /// Seconds to wait, for the error's body.
    pub(crate) body: Option<u64>,
}

/// What kind of error it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Situation {
    pub(crate) kind: Kind,
    /// It passes by itself.
    pub(crate) passes: bool,
    /// The program may ask once more by itself.
    pub(crate) again: bool,
    /// No target was asked: all are out of use.
    pub(crate) untried: bool,
}

impl Program {
    /// By its name.
    pub(crate) fn of(headers: &Fields) -> Self {
        let name = headers.text(http::header::USER_AGENT).unwrap_or_default();
        let is = |known: &str| name.get(..known.len()).is_some_and(|start| start.eq_ignore_ascii_case(known));
        if is("codex") {
            Self::Codex
        } else if is("claude-cli/") {
            Self::Claude
        } else if is("geminicli") {
            Self::Gemini
        } else {
            Self::Other
        }
    }

    /// The answer that makes it do what is meant.
    pub(crate) fn reply(self, dialect: Dialect, usual: Reply, situation: Situation) -> Reply {
        let Situation { kind, passes, again, untried } = situation;
        let Reply { status, header, body } = usual;
        let with = |status| Reply { status, ..usual };
        let reply = match self {
            Self::Codex if dialect.has_usage_limit_status() && kind == Kind::CoolingDown && !again => {
                with(429)
            }
            Self::Codex if !passes && (matches!(status, 401..=403 | 413) || status >= 500) => with(400),
            Self::Codex if status >= 500 => Reply { status: 503, header: header.or(Some(A_WHILE)), body },
            // It reads how long it is to wait only in a 429.
            Self::Gemini if passes && untried && status >= 500 => with(429),
            Self::Gemini if !passes && status >= 500 => with(400),
            Self::Claude if status == 401 => with(403),
            // As Anthropic's own API says it; Claude Code would retry it whatever the headers say.
            Self::Other if dialect.has_overloaded_status() && kind == Kind::Overloaded => with(OVERLOADED),
            _ => usual,
        };
        let about_waiting = body.is_some() || matches!(reply.status, 429 | 503);
        if self == Self::Gemini && !again && about_waiting {
            return Reply { body: Some(body.unwrap_or(0).max(GEMINI_STOPS)), ..reply };
        }
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_stops_where_nothing_helps_and_waits_where_it_passes() {
        let usual = |status| Reply { status, header: None, body: None };
        let stopping = |status| Reply { body: Some(GEMINI_STOPS), ..usual(status) };
        for (program, kind, status, later, wanted) in [
            (Program::Codex, Kind::Unauthorized, 502, false, usual(400)),
            (Program::Codex, Kind::Unauthorized, 401, false, usual(400)),
            (Program::Codex, Kind::MessageTooLarge, 413, false, usual(400)),
            (Program::Codex, Kind::InvalidRequest, 404, false, usual(404)),
            (Program::Codex, Kind::Unavailable, 502, true, Reply { header: Some(A_WHILE), ..usual(503) }),
            (Program::Codex, Kind::RateLimited, 429, true, usual(429)),
            (Program::Gemini, Kind::Unauthorized, 502, false, usual(400)),
            (Program::Gemini, Kind::Unauthorized, 401, false, usual(401)),
            (Program::Gemini, Kind::Unavailable, 503, true, stopping(503)),
            (Program::Claude, Kind::Unauthorized, 401, false, usual(403)),
            (Program::Claude, Kind::Unauthorized, 502, false, usual(502)),
            (Program::Claude, Kind::Overloaded, 503, true, usual(503)),
            (Program::Other, Kind::Overloaded, 503, true, usual(529)),
            (Program::Other, Kind::CoolingDown, 503, true, usual(503)),
            (Program::Other, Kind::Unauthorized, 401, false, usual(401)),
            (Program::Other, Kind::Unauthorized, 502, false, usual(502)),
        ] {
            let dialect = Dialect::Messages;
            let situation = Situation { kind, passes: later, again: false, untried: false };
            let reply = program.reply(dialect, usual(status), situation);
            assert_eq!(reply, wanted, "{program:?} {kind:?} {status}");
        }
    }

    #[test]
    fn a_target_that_is_out_of_use_is_a_limit_to_gemini_cli_and_a_503_to_libraries() {
        let cooldown_keys = Situation { kind: Kind::Unavailable, passes: true, again: false, untried: true };
        let usual = Reply { status: 503, header: None, body: Some(20) };
        let cli = Program::Gemini.reply(Dialect::Gemini, usual, cooldown_keys);
        assert_eq!((cli.status, cli.body), (429, Some(GEMINI_STOPS)));
        assert_eq!(Program::Other.reply(Dialect::Gemini, usual, cooldown_keys), usual, "the true wait");
        let again = Situation { again: true, ..cooldown_keys };
        assert_eq!(Program::Gemini.reply(Dialect::Gemini, usual, again).body, Some(20), "it may come back");
    }
}

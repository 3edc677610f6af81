//! Agent programs that need other statuses than libraries, recognised by their user agent.
//!
//! A permanent error must end them at once, and a temporary one must not make them hammer. Each has statuses of its own for both,
//! observed in runs of the real programs: Codex asks thirty times after a 5xx without a time to wait and six times after most of 4xx, Gemini CLI
//! ten times after a 5xx, Claude Code eleven times after a 401. Libraries get the true status: their exceptions are named by it.

use koboshi::fault::Kind;
use koboshi_wire::Dialect;
use koboshi_wire::http1::Fields;
use koboshi_wire::messages::error::OVERLOADED;

/// How many seconds Codex is to wait where the time is unknown.
const CODEX_DEFAULT_WAIT: u64 = 5;

/// Gemini CLI retries by itself after a wait of up to 300 seconds, and stops and shows the time for a longer one.
const GEMINI_MIN_FINAL_WAIT: u64 = 301;

/// The client program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Program {
    /// A library, or an unknown program.
    #[default]
    Other,
    Claude,
    Codex,
    Gemini,
}

/// The status and waits of an error.
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
    /// The program may retry once by itself.
    pub(crate) again: bool,
    /// No target was asked: all are out of use.
    pub(crate) untried: bool,
}

impl Program {
    /// The program with this user agent.
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

    /// The answer that makes the program do what is intended.
    pub(crate) fn reply(self, dialect: Dialect, usual: Reply, situation: Situation) -> Reply {
        let Situation { kind, passes, again, untried } = situation;
        let Reply { status, header, body } = usual;
        let with = |status| Reply { status, ..usual };
        let reply = match self {
            Self::Codex if dialect.has_usage_limit_status() && kind == Kind::CoolingDown && !again => {
                with(429)
            }
            Self::Codex if !passes && (matches!(status, 401..=403 | 413) || status >= 500) => with(400),
            Self::Codex if status >= 500 => {
                Reply { status: 503, header: header.or(Some(CODEX_DEFAULT_WAIT)), body }
            }
            // It reads the time to wait only in a 429.
            Self::Gemini if passes && untried && status >= 500 => with(429),
            Self::Gemini if !passes && status >= 500 => with(400),
            Self::Claude if status == 401 => with(403),
            // As Anthropic's own API answers; Claude Code would retry it whatever the headers say.
            Self::Other if dialect.has_overloaded_status() && kind == Kind::Overloaded => with(OVERLOADED),
            _ => usual,
        };
        let about_waiting = body.is_some() || matches!(reply.status, 429 | 503);
        if self == Self::Gemini && !again && about_waiting {
            return Reply { body: Some(body.unwrap_or(0).max(GEMINI_MIN_FINAL_WAIT)), ..reply };
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
        let stopping = |status| Reply { body: Some(GEMINI_MIN_FINAL_WAIT), ..usual(status) };
        for (program, kind, status, later, wanted) in [
            (Program::Codex, Kind::Unauthorized, 502, false, usual(400)),
            (Program::Codex, Kind::Unauthorized, 401, false, usual(400)),
            (Program::Codex, Kind::MessageTooLarge, 413, false, usual(400)),
            (Program::Codex, Kind::InvalidRequest, 404, false, usual(404)),
            (
                Program::Codex,
                Kind::Unavailable,
                502,
                true,
                Reply { header: Some(CODEX_DEFAULT_WAIT), ..usual(503) },
            ),
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
        let out_of_use = Situation { kind: Kind::Unavailable, passes: true, again: false, untried: true };
        let usual = Reply { status: 503, header: None, body: Some(20) };
        let cli = Program::Gemini.reply(Dialect::Gemini, usual, out_of_use);
        assert_eq!((cli.status, cli.body), (429, Some(GEMINI_MIN_FINAL_WAIT)));
        assert_eq!(Program::Other.reply(Dialect::Gemini, usual, out_of_use), usual, "the true wait");
        let again = Situation { again: true, ..out_of_use };
        assert_eq!(Program::Gemini.reply(Dialect::Gemini, usual, again).body, Some(20), "it may come back");
    }
}

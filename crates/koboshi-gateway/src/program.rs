//! Programs that take a status for something else than it says, known by the name that they give themselves.
//!
//! An error that no waiting mends must end them at once, and one that passes must not make them hammer. Each has statuses of its own for both,
//! seen in runs of the real programs: Codex asks thirty times after a 5xx without a time to wait and six times after most of 4xx, Gemini CLI ten
//! times after a 5xx, Claude Code eleven times after a 401. Libraries get the status that is meant: their exceptions are named by it.

use koboshi::fault::Kind;
use koboshi_wire::Dialect;
use koboshi_wire::http1::Fields;

/// Codex is told to wait so many seconds where nobody knows how long.
const A_WHILE: u64 = 5;

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
    /// Seconds, for the header.
    pub(crate) wait: Option<u64>,
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

    /// The answer that makes it do what is meant. `later` says that the fault passes, `again` that the program may ask once more.
    pub(crate) fn reply(self, dialect: Dialect, kind: Kind, usual: Reply, later: bool, again: bool) -> Reply {
        let Reply { status, wait } = usual;
        let with = |status| Reply { status, wait };
        match (self, dialect, kind) {
            // That everybody rests is a 503 by the table; Gemini's programs read how long they are to wait only in a 429, and Codex stops and
            // tells the time only at one.
            (_, Dialect::Gemini, Kind::CoolingDown) => with(429),
            (_, Dialect::Responses, Kind::CoolingDown) if !again => with(429),
            (Self::Codex, ..) if !later && (matches!(status, 401..=403 | 413) || status >= 500) => with(400),
            (Self::Codex, ..) if status >= 500 => Reply { status: 503, wait: wait.or(Some(A_WHILE)) },
            (Self::Gemini, ..) if !later && status >= 500 => with(400),
            (Self::Claude, ..) if status == 401 => with(403),
            _ => usual,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_stops_where_nothing_helps_and_waits_where_it_passes() {
        let usual = |status| Reply { status, wait: None };
        for (program, kind, status, later, wanted) in [
            (Program::Codex, Kind::Unauthorized, 502, false, usual(400)),
            (Program::Codex, Kind::Unauthorized, 401, false, usual(400)),
            (Program::Codex, Kind::MessageTooLarge, 413, false, usual(400)),
            (Program::Codex, Kind::InvalidRequest, 404, false, usual(404)),
            (Program::Codex, Kind::Unavailable, 502, true, Reply { status: 503, wait: Some(A_WHILE) }),
            (Program::Codex, Kind::RateLimited, 429, true, usual(429)),
            (Program::Gemini, Kind::Unauthorized, 502, false, usual(400)),
            (Program::Gemini, Kind::Unauthorized, 401, false, usual(401)),
            (Program::Gemini, Kind::Unavailable, 503, true, usual(503)),
            (Program::Claude, Kind::Unauthorized, 401, false, usual(403)),
            (Program::Claude, Kind::Unauthorized, 502, false, usual(502)),
            (Program::Other, Kind::Unauthorized, 401, false, usual(401)),
            (Program::Other, Kind::Unauthorized, 502, false, usual(502)),
        ] {
            let dialect = Dialect::Messages;
            let reply = program.reply(dialect, kind, usual(status), later, false);
            assert_eq!(reply, wanted, "{program:?} {kind:?} {status}");
        }
    }
}

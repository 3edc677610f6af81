//! The names that the simulated provider knows, as one table.
//!
//! Reading a name, the page `docs/sim.md` and the list of models are made from it or checked against it: a name or a
//! parameter that is not here does not exist. What a name *does* is in [`fall`](crate::fall), which asks for the
//! parameters by the names given here.

use std::borrow::Cow;

/// A name of a model, and what the provider does under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Name {
    /// The name, without `sim/`. `STATUS` in it stands for three digits.
    pub name: &'static str,
    /// A model that can be asked for, without `sim/`.
    pub example: &'static str,
    /// What it does, in a sentence.
    pub does: &'static str,
    /// The parameters that only this name has; [`COMMON`] has those of all names.
    pub params: &'static [Param],
}

/// A parameter, written as in a query: `name?param=value&…`. Values are taken as they stand, nothing is unescaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What holds where it is not given.
    pub default: &'static str,
    /// What it means, in a sentence.
    pub does: &'static str,
}

/// The parameters of every name. Lengths of time have a unit (`250ms`, `20s`, `2m`), counts have none.
pub const COMMON: &[Param] = &[
    param("latency", "0s", "The pause before the answer begins."),
    param("gap", "0s", "The pause between two chunks of a stream."),
    param("chunks", "about 40", "How many pieces of text the answer has; the words stay the same."),
    param("say", "0", "This many pieces of text come before a tool call."),
    param(
        "tools",
        "yes",
        "`no`: no tool call is made up, and it answers in words; calls that the request forces or the prompt scripts are made.",
    ),
    param(
        "prefill",
        "continue",
        "`refuse`: a conversation that ends with the assistant's words is answered with 400.",
    ),
    param("p", "1", "The share of calls that fall; the others are `ok`."),
    param("seed", "0", "Which of the calls those are."),
    param("times", "always", "Only the first calls fall, up to this number."),
];

/// Every name.
#[must_use]
pub fn names() -> &'static [Name] {
    NAMES
}

/// The names that are about tool calls: a client that asks for one wants calls.
const ABOUT_CALLS: [&str; 2] = ["broken-tool-args", "cut-tool"];

/// The same model without calls of its own making, unless its name says what it does about them: `tools=…`, or a name that is
/// about calls. For a place where a real agent may be asking, and would run what was made up.
///
/// ```
/// use koboshi_sim::without_made_up_calls;
///
/// assert_eq!(without_made_up_calls("ok"), "ok?tools=no");
/// assert_eq!(without_made_up_calls("cut?after=3"), "cut?after=3&tools=no");
/// assert_eq!(without_made_up_calls("ok?tools=yes"), "ok?tools=yes");
/// assert_eq!(without_made_up_calls("cut-tool"), "cut-tool");
/// ```
#[must_use]
pub fn without_made_up_calls(model: &str) -> Cow<'_, str> {
    let (name, query) = model.split_once('?').unwrap_or((model, ""));
    let says = query.split('&').any(|pair| pair.split('=').next() == Some("tools"));
    if says || ABOUT_CALLS.contains(&name) {
        return Cow::Borrowed(model);
    }
    let joint = if query.is_empty() { if model.ends_with('?') { "" } else { "?" } } else { "&" };
    Cow::Owned(format!("{model}{joint}tools=no"))
}

const fn param(name: &'static str, default: &'static str, does: &'static str) -> Param {
    Param { name, default, does }
}

const fn frames(default: &'static str) -> Param {
    param("after", default, "After this many frames of a stream; the first one has the role and no text.")
}

const BYTES: Param =
    param("bytes", "0", "And after this many bytes of the next frame, or of a body that is no stream.");
const WAIT: Param = param("retry_after", "none", "The wait that is stated: seconds, a length, or `none`.");

const NAMES: &[Name] = &[
    Name { name: "ok", example: "ok", does: "Answers.", params: &[] },
    Name {
        name: "fail-500",
        example: "fail-500?times=1",
        does: "500: the provider's own error.",
        params: &[WAIT],
    },
    Name { name: "fail-503", example: "fail-503", does: "503: not available.", params: &[WAIT] },
    Name { name: "fail-STATUS", example: "fail-502", does: "Any status from 400 to 599.", params: &[WAIT] },
    Name {
        name: "rate-429",
        example: "rate-429?retry_after=2",
        does: "429: too many requests in a minute.",
        params: &[param(
            "retry_after",
            "1",
            "The wait that is stated in headers and text: seconds, a length, or `none`.",
        )],
    },
    Name {
        name: "quota",
        example: "quota",
        does: "429: the requests of the day are used up.",
        params: &[param("retry_after", "6h", "When they are renewed: seconds, a length, or `none`.")],
    },
    Name {
        name: "billing",
        example: "billing",
        does: "429 `insufficient_quota`: no money left.",
        params: &[],
    },
    Name { name: "overloaded", example: "overloaded", does: "529: no capacity.", params: &[WAIT] },
    Name { name: "auth-401", example: "auth-401", does: "401: the key is wrong.", params: &[] },
    Name {
        name: "context",
        example: "context?limit=8000",
        does: "400 `context_length_exceeded`.",
        params: &[param("limit", "always", "Only where the conversation has more tokens than this.")],
    },
    Name {
        name: "filter",
        example: "filter?after=3",
        does: "The answer ends with the reason `content_filter`.",
        params: &[frames("3")],
    },
    Name {
        name: "filter-400",
        example: "filter-400",
        does: "400: the prompt is against the policy.",
        params: &[],
    },
    Name { name: "reset", example: "reset", does: "The connection dies before any answer.", params: &[] },
    Name { name: "silence", example: "silence", does: "No answer ever comes.", params: &[] },
    Name {
        name: "slow-first",
        example: "slow-first?after=20s",
        does: "The first content comes late.",
        params: &[
            param("after", "20s", "How late."),
            param("head", "early", "`late`: the head of the answer comes late too."),
        ],
    },
    Name {
        name: "stall",
        example: "stall?after=3",
        does: "A stream falls silent and stays open.",
        params: &[frames("3"), BYTES],
    },
    Name {
        name: "cut",
        example: "cut?after=40",
        does: "The connection dies in the middle.",
        params: &[frames("20"), BYTES],
    },
    Name {
        name: "cut-tool",
        example: "cut-tool",
        does: "The connection dies inside the arguments of a tool call, or in the middle if none is made.",
        params: &[param("after", "half", "After this many pieces of the arguments.")],
    },
    Name {
        name: "fin",
        example: "fin?after=3",
        does: "The body ends cleanly, but too early: no finish reason, no `[DONE]`.",
        params: &[frames("3"), BYTES],
    },
    Name {
        name: "bad-chunk",
        example: "bad-chunk?after=3",
        does: "One frame is broken JSON, and the text in it is lost.",
        params: &[frames("3"), param("extra", "no", "`yes`: the broken frame comes between whole ones.")],
    },
    Name {
        name: "no-done",
        example: "no-done",
        does: "A whole stream without `[DONE]`.",
        params: &[param("open", "no", "`yes`: the connection stays open.")],
    },
    Name {
        name: "in-band-error",
        example: "in-band-error?after=1",
        does: "An error object inside a 200.",
        params: &[frames("1")],
    },
    Name {
        name: "broken-tool-args",
        example: "broken-tool-args?form=python",
        does: "The arguments of tool calls are no JSON; those of a re-ask are good.",
        params: &[
            param(
                "form",
                "trailing-comma",
                "`trailing-comma`, `unquoted`, `truncated`, `python` or `prose`.",
            ),
            param("always", "no", "`yes`: in every answer, not only in the first of a conversation."),
        ],
    },
    Name {
        name: "loop",
        example: "loop",
        does: "The last tool call is made again with the same arguments, until it is refused.",
        params: &[param("stubborn", "no", "`yes`: also after it was refused.")],
    },
    Name { name: "empty", example: "empty", does: "200 with nothing in it.", params: &[] },
    Name { name: "html", example: "html", does: "200 with an HTML page.", params: &[] },
    Name {
        name: "half",
        example: "half",
        does: "The connection dies in the middle of the body.",
        params: &[param("clean", "no", "`yes`: half a body, and a clean end.")],
    },
    Name {
        name: "flap",
        example: "flap?down=30s&up=30s",
        does: "Down, then up, then down again.",
        params: &[
            param("down", "5", "How long it falls: calls, or a length of time."),
            param("up", "5", "How long it is well: the same unit."),
            param("way", "fail-503", "How it falls: another name, without parameters."),
        ],
    },
    Name {
        name: "chaos",
        example: "chaos?seed=1&p=0.3",
        does: "Another fall for every call, drawn from the seed.",
        params: &[param("ways", "all", "Only these names, with commas between them.")],
    },
];

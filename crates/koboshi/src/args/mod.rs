//! The arguments of a tool call: valid, repaired where exactly one reading exists, or refused with the reason.
//!
//! The files, in the order in which they run:
//!
//! ```text
//!   policy      limits, and how the model's answer ended
//!   strict      scans the text as RFC 8259 has it; keys notices one that comes twice
//!   schema      compiles the tool's schema once and asks it: dialect translates Gemini's and OpenAPI's schemas,
//!               demand says what it wants at one place. A strict object that satisfies it is valid: done
//!   find        looks for the object in what else the model wrote
//!     outside     text beside the object that may be a member of it
//!     markup      arguments written as tags
//!   reader      reads one object in other notations than JSON's, token by token
//!     lexis       blanks, comments, quotation marks, brackets, separators
//!     member      the key and the mark before its value
//!     strings     a string: where it ends; body reads its inside, choice decides between several ends
//!     bare        a value without quotation marks; number reads numbers in other notations
//!     ending      a text that ends before its object does
//!   tape        what the reader read, as a flat list
//!   settle      from the tape to arguments: keys that come twice, then the schema
//!     wrap        takes off an encoded string, a list of one, an envelope
//!     coerce      other types where the schema leaves one choice
//!   verdict     valid, repaired with the changes, or refused with the defect and its place
//!
//!   search      what no reader understands: the fewest edits that make it an object which the schema takes
//!     automaton   JSON as an automaton that goes on from any place
//!
//!   feed        the same for arguments that arrive in pieces
//!   hint        the schema as one line for the model, after a refusal
//! ```
#![doc = include_str!("../docs/args.md")]

mod automaton;
mod bare;
mod body;
mod choice;
mod coerce;
mod demand;
mod dialect;
mod ending;
mod feed;
mod find;
mod hint;
mod keys;
mod lexis;
mod markup;
mod member;
mod number;
mod outside;
mod policy;
mod reader;
mod schema;
mod search;
mod settle;
mod strict;
mod strings;
mod tape;
mod verdict;
mod wrap;

use serde_json::Value;

pub use feed::{Feed, Progress};
pub use hint::MAX_HINT_CHARS;
pub use policy::{ArgsPolicy, Finish, MAX_DEPTH};
pub use schema::{MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, SchemaError, Schemas, ToolSchema};
pub use verdict::{
    Change, ChangeKind, Defect, MAX_EXCERPT_BYTES, MAX_MISSES, Miss, Position, Refusal, Verdict,
};

use search::Outcome;
use settle::{Arguments, Case};
use strict::{ScanResult, Top};
use verdict::Stop;

/// What is to be done with the arguments of a call.
///
/// Without a schema, only the notation is judged, and what depends on the schema is refused.
pub fn check(text: &str, schema: Option<&ToolSchema>, finish: Finish, policy: &ArgsPolicy) -> Verdict {
    match judge(text, schema, finish, policy) {
        Ok(None) => Verdict::Valid,
        Ok(Some(Arguments { json, changes })) => Verdict::Repaired { json, changes },
        Err(stop) => Verdict::Refused(stop.refuse(text)),
    }
}

fn judge(
    text: &str,
    schema: Option<&ToolSchema>,
    finish: Finish,
    policy: &ArgsPolicy,
) -> Result<Option<Arguments>, Stop> {
    if text.len() > policy.bytes() {
        return Err(too_long(policy));
    }
    let strict = strict::scan(text, policy.depth());
    let whole = strict.is_ok();
    let failure = match strict {
        Ok(ScanResult { top: Top::Object, duplicate: None }) => match unmet(text, schema) {
            None => return Ok(None),
            Some(failure) => failure,
        },
        Ok(ScanResult { duplicate: Some(at), .. }) => {
            Stop::new(Defect::DuplicateKey, at, "this key comes twice in one object")
        }
        Ok(_) => Stop::new(Defect::NotAnObject, 0, "the arguments of a call must be one JSON object"),
        Err(failure) => failure,
    };
    if !whole && finish == Finish::Cut {
        let why = "the output limit ended the call in its middle: send less, or send it in parts";
        return Err(Stop::new(Defect::CutByLimit, text.len(), why));
    }
    if !policy.repair || failure.defect == Defect::TooDeep {
        return Err(failure);
    }
    let case = Case { schema, max_depth: policy.depth(), level: 0 };
    if whole {
        return find::settle(text, case).map(Some).map_err(|stop| stop_of_whole(stop, failure));
    }
    mend(text, case).map(Some)
}

/// What the readers of notations say, else the fewest edits that make it readable.
fn mend(text: &str, case: Case<'_>) -> Result<Arguments, Stop> {
    match find::settle(text, case) {
        // An escaped quotation mark makes any text readable: where one mark elsewhere explains it too, there are two readings.
        Ok(read) if read.changes.iter().any(|change| change.what == ChangeKind::QuotesEscaped) => {
            match search::run(text, case, false) {
                Outcome::One(other) if !is_same(&read.json, &other.json) => {
                    let at = other.changes.first().map_or(0, |change| change.span.start);
                    let why = "quotation marks inside a text, or another mark in place of this one";
                    Err(Stop::new(Defect::Ambiguous, at, why))
                }
                _ => Ok(read),
            }
        }
        Err(stop) if is_notation(stop.defect) => {
            match search::run(text, case, stop.defect != Defect::Ambiguous) {
                Outcome::One(arguments) => Ok(arguments),
                Outcome::Two(ambiguous) => Err(ambiguous),
                Outcome::None => Err(stop),
            }
        }
        settled => settled,
    }
}

/// Whether a text was refused for its notation, and not for what it says.
const fn is_notation(defect: Defect) -> bool {
    matches!(
        defect,
        Defect::Unreadable | Defect::Cut | Defect::Ambiguous | Defect::MissingValue | Defect::Schema
    )
}

/// Whether two texts of JSON say the same.
fn is_same(one: &str, other: &str) -> bool {
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    value(one) == value(other)
}

/// For strict JSON the schema's own complaint says most.
fn stop_of_whole(stop: Stop, failure: Stop) -> Stop {
    let is_vague = stop.misses.is_empty() && stop.defect != Defect::OtherTool;
    if failure.defect == Defect::Schema && is_vague { failure } else { stop }
}

fn too_long(policy: &ArgsPolicy) -> Stop {
    Stop::new(Defect::TooLong, policy.bytes(), "the arguments are longer than allowed")
}

/// What a strict object lacks of the schema.
fn unmet(text: &str, schema: Option<&ToolSchema>) -> Option<Stop> {
    let schema = schema?;
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        // Numbers that no float holds, or one level more than that library reads.
        Err(_) => match settle::strict_value(text) {
            Some(value) => value,
            None => {
                return Some(Stop::new(Defect::Unreadable, 0, "this cannot be checked against the schema"));
            }
        },
    };
    if schema.is_satisfied_by(&value) {
        return None;
    }
    Some(unsatisfied(schema, &value, 0))
}

fn unsatisfied(schema: &ToolSchema, value: &Value, at: usize) -> Stop {
    let why = "the arguments do not satisfy the tool's schema";
    Stop { misses: schema.misses(value), ..Stop::new(Defect::Schema, at, why) }
}

/// The pieces of several calls that were glued together, `{…}{…}`; only if each of them is valid on its own.
///
/// White space, commas and line breaks may stand between them. One call alone is one piece. What to do with the pieces
/// is for the caller to say: nothing here knows whether the model meant them all.
///
/// # Errors
/// The refusal of the first piece that is not valid.
pub fn split_calls<'a>(
    text: &'a str,
    schema: Option<&ToolSchema>,
    policy: &ArgsPolicy,
) -> Result<Vec<&'a str>, Refusal> {
    feed::split(text, schema, policy).map_err(|stop| stop.refuse(text))
}

#[cfg(test)]
mod tests;

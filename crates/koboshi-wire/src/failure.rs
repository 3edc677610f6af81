//! An error for a client, in no dialect: each dialect writes it in its own envelope.

use koboshi::fault::Kind;
use serde_json::Value;

/// What went wrong, for a client.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'a> {
    /// What it is. Dialects choose their own words by it.
    pub kind: Kind,
    /// The HTTP status it goes out with, or would have gone out with had the stream not begun.
    pub status: u16,
    /// A sentence for a person.
    pub message: &'a str,
    /// A stable code of ours, for dialects that have room for one.
    pub code: Option<&'a str>,
    /// The field it is about.
    pub param: Option<&'a str>,
    /// Id of the request.
    pub request_id: Option<&'a str>,
    /// Another try is worth it after this many seconds.
    pub retry_after: Option<u64>,
    /// The same as a time, in seconds since 1970: for clients that show it.
    pub resets_at: Option<i64>,
    /// The client must not retry by itself before then, but show the error to its user.
    pub is_final: bool,
    /// Koboshi's own object.
    pub koboshi: Option<&'a Value>,
}

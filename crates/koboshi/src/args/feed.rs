//! Arguments that arrive in pieces: how much is held, whether the object is complete, and the verdict at the end.
//!
//! Each piece is scanned once when it arrives, by a small machine that only counts brackets outside strings, and once by
//! [`check`](super::check) at the end. So pieces of any size give the same verdict as the whole, and cost little more.
//! A call must not be acted on before its verdict; `complete` only says that no further piece is needed.

use super::policy::{ArgsPolicy, Finish};
use super::schema::ToolSchema;
use super::strict::special;
use super::verdict::{Defect, Stop, Verdict};
use super::{ScanResult, Top, check, strict, too_long, unmet};

/// How far a call has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The object that the text began with has ended. Only what begins as JSON is ever known to be complete.
    pub complete: bool,
    /// Bytes that are held.
    pub buffered: usize,
}

/// The arguments of one call, as they arrive.
#[derive(Debug)]
pub struct Feed {
    policy: ArgsPolicy,
    text: String,
    outline: Outline,
    too_long: bool,
}

impl Feed {
    /// Nothing yet. What is beyond `max_bytes` of the policy is not kept, and the call will be refused.
    #[must_use]
    pub fn new(policy: ArgsPolicy) -> Self {
        Self { policy, text: String::new(), outline: Outline::default(), too_long: false }
    }

    /// One more piece.
    pub fn push(&mut self, piece: &str) -> Progress {
        if self.too_long || piece.len() > self.policy.bytes().saturating_sub(self.text.len()) {
            self.too_long = true;
        } else {
            self.text.push_str(piece);
            self.outline.follow(piece.as_bytes());
        }
        self.progress()
    }

    /// How far it has come.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress { complete: self.outline.complete && !self.too_long, buffered: self.text.len() }
    }

    /// What has arrived, as far as it was kept.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The verdict on everything that has arrived.
    pub fn finish(&self, schema: Option<&ToolSchema>, finish: Finish) -> Verdict {
        if self.too_long {
            return Verdict::Refused(too_long(&self.policy).refuse(&self.text));
        }
        check(&self.text, schema, finish, &self.policy)
    }
}

/// Counts brackets outside strings.
#[derive(Debug, Default)]
struct Outline {
    depth: usize,
    began: bool,
    in_string: bool,
    escaped: bool,
    complete: bool,
    /// It began as something else than an object.
    other: bool,
}

impl Outline {
    fn follow(&mut self, piece: &[u8]) {
        let mut at = 0;
        while let Some(byte) = piece.get(at).copied() {
            if self.other {
                return;
            }
            if self.escaped {
                self.escaped = false;
                at += 1;
                continue;
            }
            if self.in_string {
                at = special(piece, at);
                match piece.get(at) {
                    Some(b'"') => self.in_string = false,
                    Some(b'\\') => self.escaped = true,
                    _ => {}
                }
                at += 1;
                continue;
            }
            self.outside(byte);
            at += 1;
        }
    }

    fn outside(&mut self, byte: u8) {
        match byte {
            b' ' | b'\n' | b'\t' | b'\r' => {}
            // Something after the end: a second object, or prose.
            _ if self.complete => self.other = true,
            b'{' => {
                self.began = true;
                self.depth += 1;
            }
            _ if !self.began => self.other = true,
            b'[' => self.depth += 1,
            b'"' => self.in_string = true,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.complete = self.depth == 0;
            }
            _ => {}
        }
        if self.other {
            self.complete = false;
        }
    }
}

/// The pieces of glued calls, each valid.
pub(super) fn split<'a>(
    text: &'a str,
    schema: Option<&ToolSchema>,
    policy: &ArgsPolicy,
) -> Result<Vec<&'a str>, Stop> {
    if text.len() > policy.bytes() {
        return Err(too_long(policy));
    }
    let mut pieces = Vec::new();
    let mut from = 0;
    loop {
        let rest = text.get(from..).unwrap_or_default();
        from += rest.len() - rest.trim_start_matches([' ', '\n', '\r', '\t', ',', ';']).len();
        let rest = text.get(from..).unwrap_or_default();
        if rest.is_empty() {
            break;
        }
        let piece = first_object(rest)
            .ok_or_else(|| Stop::new(Defect::Unreadable, from, "a JSON object is expected here"))?;
        let moved = |stop: Stop| Stop { at: stop.at + from, ..stop };
        match strict::scan(piece, policy.depth()).map_err(moved)? {
            ScanResult { top: Top::Object, duplicate: None } => {}
            ScanResult { duplicate, .. } => {
                let at = from + duplicate.unwrap_or_default();
                return Err(Stop::new(Defect::DuplicateKey, at, "this key comes twice in one object"));
            }
        }
        if let Some(failure) = unmet(piece, schema) {
            return Err(moved(failure));
        }
        pieces.push(piece);
        from += piece.len();
    }
    if pieces.is_empty() {
        return Err(Stop::new(Defect::Empty, 0, "there is no text"));
    }
    Ok(pieces)
}

/// Up to the bracket that closes the first one.
fn first_object(text: &str) -> Option<&str> {
    let mut outline = Outline::default();
    let bytes = text.as_bytes();
    let mut at = 0;
    while !outline.complete && !outline.other {
        let end = if outline.in_string && !outline.escaped { special(bytes, at) + 1 } else { at + 1 };
        outline.follow(bytes.get(at..end)?);
        at = end;
    }
    outline.complete.then(|| text.get(..at)).flatten()
}

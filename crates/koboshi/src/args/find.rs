//! Finds the arguments in what the model wrote: after prose, inside a fence, between special tokens, in quotation
//! marks.
//!
//! What stands outside the object is left out only if it is clearly outside. Anything there that looks like a member, a
//! second object or an unfinished one leads to a refusal: taking the inner half of a broken object for the whole would
//! run a tool with the wrong arguments.

use std::ops::Range;

use super::body::{self, Body, unescape};
use super::choice::member_in;
use super::lexis::{Mark, Quote, bare_key_end, blank_end, mark};
use super::markup;
use super::outside::bare_member;
use super::reader::{ReadObject, Reader};
use super::schema::ToolSchema;
use super::settle::{Arguments, Case, TapeValue};
use super::strict;
use super::verdict::{Change, ChangeKind, Defect, Stop};
use super::wrap::{encoded, envelope, names_this_tool, noted, settle_any};

/// At most this many encodings inside each other are taken off.
const MAX_ENCODINGS: usize = 8;

/// At this many levels quotation marks may be other than JSON's. Each of them is read twice.
const MAX_ODD_QUOTE_LEVELS: usize = 2;

/// Of at most this many objects in a row, one may be the right one.
const MAX_OBJECTS: usize = 16;

/// Blocks in which models think aloud.
const THOUGHTS: &[&str] =
    &["think", "thinking", "thought", "reasoning", "reflection", "scratchpad", "analysis"];

/// Arguments from a text that is not valid as it stands.
pub(super) fn settle(text: &str, case: Case<'_>) -> Result<Arguments, Stop> {
    if case.level > MAX_ENCODINGS {
        return Err(Stop::new(Defect::NotAnObject, 0, "encoded in strings too many times"));
    }
    let start = blank_end(text, 0).0;
    let body =
        text.get(start..).unwrap_or_default().trim_end_matches(|c: char| blank_end(&c.to_string(), 0).0 > 0);
    let span = start..start + body.len();
    if matches!(body, "" | "\"\"" | "''" | "null" | "None") {
        return no_arguments(span, case);
    }
    if let Some(settled) = in_quotes(body, span.clone(), case) {
        return settled;
    }
    if let Some(plain) = with_escaped_quotes(body) {
        return encoded(&plain, span, case);
    }
    if markup::has_parameters(body) {
        return markup::settle(text, case);
    }
    let found = Search::new(text, case).run()?;
    choose(text, found, case)
}

/// No text stands for no arguments, where the tool takes none.
fn no_arguments(span: Range<usize>, case: Case<'_>) -> Result<Arguments, Stop> {
    let none = serde_json::json!({});
    if case.schema.is_some_and(|schema| schema.is_satisfied_by(&none)) {
        let changes = vec![Change { what: ChangeKind::EmptyRead, span }];
        return Ok(Arguments { json: "{}".to_owned(), changes });
    }
    Err(Stop::new(Defect::Empty, span.start, "the call has no arguments, and it is not known to need none"))
}

/// The whole text is one string: the arguments may be encoded in it.
fn in_quotes(body: &str, span: Range<usize>, case: Case<'_>) -> Option<Result<Arguments, Stop>> {
    let (quote, length) = Quote::at(body, 0)?;
    let last = body.chars().next_back()?;
    let (closing, _) = Quote::at(body, body.len() - last.len_utf8())?;
    if closing != quote || body.len() < 2 * length || body.starts_with("```") {
        return None;
    }
    let inside = body.get(length..body.len() - last.len_utf8())?;
    if quote == Quote::Straight && strict::scan(body, 1).is_ok() {
        let plain = unescape(inside);
        // A text that holds no object is no argument: say so, and not what is wrong with it.
        if !plain.contains(['{', '<', '"']) && !matches!(plain.trim(), "" | "null" | "None") {
            return Some(Err(Stop::new(
                Defect::NotAnObject,
                span.start,
                "the arguments are a text, not an object",
            )));
        }
        return Some(encoded(&plain, span, case));
    }
    if case.level >= MAX_ODD_QUOTE_LEVELS {
        return None;
    }
    let raw = encoded(inside, span.clone(), case);
    if !inside.contains('\\') {
        return Some(raw);
    }
    // Are the backslashes those of the string, or those of strings inside it?
    let plain = match body::read(inside, 0, quote == Quote::Tick) {
        Ok(Body::Plain) => Some(unescape(inside).into_owned()),
        Ok(Body::Made(text, _)) => Some(text),
        Err(_) => None,
    };
    let decoded = plain.map(|plain| encoded(&plain, span.clone(), case));
    Some(match (raw, decoded) {
        (Ok(raw), Some(Ok(decoded))) if raw.json != decoded.json => {
            Err(Stop::new(Defect::Ambiguous, span.start, "the backslashes can be read in two ways"))
        }
        (Err(_), Some(decoded)) => decoded,
        (raw, _) => raw,
    })
}

/// `{\"a\": 1}`: the inside of a string without its quotation marks.
fn with_escaped_quotes(body: &str) -> Option<String> {
    let inside = body.strip_prefix('{')?;
    let first = blank_end(inside, 0).0;
    let escaped = inside.get(first..)?.starts_with("\\\"");
    let plain = escaped && matches!(body::read(body, 0, false), Ok(Body::Plain));
    plain.then(|| unescape(body).into_owned())
}

fn choose(text: &str, mut found: Vec<ReadObject>, case: Case<'_>) -> Result<Arguments, Stop> {
    let settle = |read: ReadObject| {
        settle_any(TapeValue { tape: &read.tape, root: 0, source: text }, read.changes, case)
    };
    if found.len() <= 1 {
        let why = "the arguments of a call must be one JSON object";
        let only = found.pop().ok_or(Stop::new(Defect::NotAnObject, 0, why))?;
        return settle(only);
    }
    let second = found.get(1).and_then(|read| read.tape.get(0)).map_or(0, |item| item.start);
    let several = || Stop::new(Defect::SeveralObjects, second, "several objects: one call has one");
    let Some(schema) = case.schema else { return Err(several()) };
    // A tool that takes no arguments is called without any, however often the text says "none".
    let empty = |read: &ReadObject| read.tape.len() == 2;
    if schema.takes_nothing() && found.iter().all(empty) {
        found.truncate(1);
    }
    let mut fitting = None;
    for read in found {
        let place = TapeValue { tape: &read.tape, root: 0, source: text };
        let span = place.span();
        let meant = is_meant_for(place, schema);
        match settle(read) {
            Ok(settled) => {
                if fitting.replace((settled, span)).is_some() {
                    return Err(several());
                }
            }
            // A call of its own that is broken: running the others would lose it.
            Err(_) if meant => return Err(several()),
            Err(_) => {}
        }
    }
    let (settled, span) = fitting.ok_or_else(several)?;
    Ok(noted(settled, ChangeKind::OthersDropped, span))
}

/// Whether an object looks like arguments of this tool, or like a whole call.
fn is_meant_for(place: TapeValue<'_>, schema: &ToolSchema) -> bool {
    let declared = |key| schema.declares(&place.at(key).text());
    place.tape.keys(place.root).any(declared) || envelope(place).is_some()
}

/// Walks over what is outside.
struct Search<'a> {
    text: &'a str,
    case: Case<'a>,
    at: usize,
    found: Vec<ReadObject>,
    /// What was left out, in pieces.
    outside: Vec<Range<usize>>,
    /// Thoughts that were left out: whatever they hold is no part of the call.
    thoughts: Vec<Range<usize>>,
    words_before: bool,
    closers: Vec<Range<usize>>,
}

impl<'a> Search<'a> {
    fn new(text: &'a str, case: Case<'a>) -> Self {
        Self {
            text,
            case,
            at: 0,
            found: Vec::new(),
            outside: Vec::new(),
            thoughts: Vec::new(),
            words_before: false,
            closers: Vec::new(),
        }
    }

    fn run(mut self) -> Result<Vec<ReadObject>, Stop> {
        while self.at < self.text.len() {
            self.step()?;
        }
        self.nothing_belongs_inside()?;
        let mut outside: Vec<Change> = Vec::new();
        for (what, spans) in [
            (ChangeKind::OutsideDropped, std::mem::take(&mut self.outside)),
            (ChangeKind::OutsideDropped, std::mem::take(&mut self.thoughts)),
            (ChangeKind::CloserDropped, std::mem::take(&mut self.closers)),
        ] {
            outside.extend(spans.into_iter().map(|span| Change { what, span }));
        }
        for read in &mut self.found {
            read.changes.extend(outside.iter().cloned());
            read.changes.sort_by_key(|change| (change.span.start, change.span.end));
        }
        Ok(self.found)
    }

    fn step(&mut self) -> Result<(), Stop> {
        let (end, plain) = blank_end(self.text, self.at);
        if end > self.at {
            let goes_on = self.outside.last().is_some_and(|last| last.end == self.at);
            if !plain || goes_on {
                self.leave_out(end);
            }
            self.at = end;
            return Ok(());
        }
        let rest = self.text.get(self.at..).unwrap_or_default();
        match mark(self.text, self.at).map(|(found, length, _)| (found, length)) {
            Some((Mark::OpenObject, _)) => return self.object(),
            Some((Mark::OpenArray, 1)) if self.is_token() => {
                let length = rest.find(']').map_or(1, |end| end + 1);
                self.leave_out(self.at + length);
                return Ok(());
            }
            Some((Mark::OpenArray, length)) if self.is_list(length) => return self.object(),
            Some((Mark::CloseObject | Mark::CloseArray, length)) => {
                // Closers follow their object at once; after other text they belong to something that was not understood.
                let end = self.found.last().map(|read| read.end);
                let late = end.is_none_or(|end| self.outside.last().is_some_and(|outside| outside.end > end));
                if self.words_before || late {
                    let why = "this bracket closes nothing";
                    return Err(Stop::new(Defect::Ambiguous, self.at, why));
                }
                self.closers.push(self.at..self.at + length);
                self.at += length;
                return Ok(());
            }
            _ => {}
        }
        if rest.starts_with("```") {
            let word = rest.get(3..).unwrap_or_default();
            let info =
                word.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
            self.leave_out(self.at + 3 + info.count());
            return Ok(());
        }
        if rest.starts_with('<') && self.tag(rest)? {
            return Ok(());
        }
        if self.found.is_empty() && !self.words_before && self.call()? {
            return Ok(());
        }
        let length = rest.find(|c: char| !(c.is_alphanumeric() || c == ' ')).filter(|length| *length > 0);
        let length = length.or_else(|| rest.chars().next().map(char::len_utf8)).unwrap_or(rest.len());
        self.words_before |= self.found.is_empty();
        self.leave_out(self.at + length);
        Ok(())
    }

    fn leave_out(&mut self, end: usize) {
        match self.outside.last_mut() {
            Some(last) if last.end == self.at => last.end = end,
            _ => self.outside.push(self.at..end),
        }
        self.at = end;
    }

    /// A list counts at the very beginning, or if it holds an object. `[1]` is a footnote.
    fn is_list(&self, length: usize) -> bool {
        let after = blank_end(self.text, self.at + length).0;
        let holds_object = matches!(mark(self.text, after), Some((Mark::OpenObject, ..)));
        holds_object || (self.found.is_empty() && !self.words_before)
    }

    /// `[TOOL_CALLS]` and the like.
    fn is_token(&self) -> bool {
        let rest = self.text.get(self.at + 1..).unwrap_or_default();
        let inside = rest.split(']').next().unwrap_or_default();
        !inside.is_empty()
            && inside.len() < 32
            && inside.bytes().all(|b| b.is_ascii_uppercase() || matches!(b, b'_' | b'/'))
    }

    fn object(&mut self) -> Result<(), Stop> {
        if self.words_before && self.is_placeholder() {
            self.leave_out(self.at + 1);
            return Ok(());
        }
        let before = self.text.get(..self.at).unwrap_or_default().trim_end();
        let called = before.strip_suffix('(').and_then(|name| name.chars().next_back());
        if called.is_some_and(|letter| letter.is_alphanumeric() || letter == '_') {
            let why = "arguments without their names: write one JSON object";
            return Err(Stop::new(Defect::Unreadable, self.at, why));
        }
        if self.found.len() >= MAX_OBJECTS {
            return Err(Stop::new(Defect::SeveralObjects, self.at, "several objects: one call has one"));
        }
        let read = Reader::new(self.text, self.at, self.case.schema, self.case.max_depth).read()?;
        self.at = read.end;
        self.found.push(read);
        Ok(())
    }

    /// `{name}` in prose.
    fn is_placeholder(&self) -> bool {
        let name = self.at + 1;
        let end = bare_key_end(self.text, name);
        end > name && self.text.as_bytes().get(end) == Some(&b'}')
    }

    /// A tag or special token; whether it was one.
    fn tag(&mut self, rest: &str) -> Result<bool, Stop> {
        for thought in THOUGHTS {
            let closes = rest.strip_prefix("</").and_then(|rest| rest.strip_prefix(thought));
            if closes.is_some_and(|rest| rest.starts_with('>')) && !self.found.is_empty() {
                let why = "was this object thought, or is it the call?";
                return Err(Stop::new(Defect::Ambiguous, self.at, why));
            }
            let opens = rest.get(1..).and_then(|rest| rest.strip_prefix(thought));
            if opens.is_some_and(|rest| rest.starts_with('>')) {
                let close = format!("</{thought}>");
                let Some(end) = rest.find(&close) else {
                    return Err(Stop::new(Defect::Cut, self.at, "the thoughts before the call do not end"));
                };
                let end = self.at + end + close.len();
                self.thoughts.push(self.at..end);
                self.at = end;
                return Ok(true);
            }
        }
        let near = rest.get(..rest.floor_char_boundary(128)).unwrap_or_default();
        let after = near.as_bytes().get(1..).unwrap_or_default();
        let Some(end) = memchr::memchr2(b'>', b'<', after).map(|offset| offset + 1) else { return Ok(false) };
        let inside = near.get(1..end).unwrap_or_default();
        if inside.is_empty() || near.as_bytes().get(end) == Some(&b'<') || inside.contains(['{', '\n']) {
            return Ok(false);
        }
        self.leave_out(self.at + end + 1);
        Ok(true)
    }

    /// `name(key=1)` as the whole text; whether it was one.
    fn call(&mut self) -> Result<bool, Stop> {
        let end = bare_key_end(self.text, self.at);
        if end == self.at || self.text.as_bytes().get(end) != Some(&b'(') {
            return Ok(false);
        }
        let span = self.at..end;
        names_this_tool(self.text.get(span.clone()).unwrap_or_default(), span.start, self.case)?;
        let mut reader = Reader::new(self.text, end + 1, None, self.case.max_depth);
        reader.note(ChangeKind::CallRead, span);
        reader.begin_call()?;
        let read = reader.read()?;
        self.at = read.end;
        self.found.push(read);
        Ok(true)
    }

    /// Left-out text must not look as if it were part of the object.
    fn nothing_belongs_inside(&self) -> Result<(), Stop> {
        let why = "something like a member stands outside the object";
        for span in &self.outside {
            let piece = self.text.get(span.clone()).unwrap_or_default();
            let quoted = member_in(piece).map(|place| span.start + place);
            if let Some(place) = quoted.or_else(|| bare_member(self.text, span, self.case.schema)) {
                return Err(Stop::new(Defect::Ambiguous, place, why));
            }
        }
        Ok(())
    }
}

//! Cuts what a provider repeats of a request out of its error: a prompt is private to its author, and an error is kept in
//! logs and journals.
//!
//! Validators quote what they refuse (`Invalid value: '…'`) or put it into a field of its own (`"input": …`, as FastAPI does). Quotes of more
//! than 64 letters and such fields become `…`; names, values and ids are shorter. The sentence around them is the provider's own
//! and stays, as does a whole field that is one.
//!
//! One pass: behind a piece that was cut the reader continues, and a quote that is not closed is not looked for twice.
//!
//! Where the prompt itself is known, what an error repeats of it is cut without any quotes, too ([`without_prompt`]).

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// A quote may have this many letters.
const MAX_QUOTE_CHARS: usize = 64;

/// Fields that hold what was sent.
const SENT: [&str; 8] =
    ["input", "inputs", "input_value", "prompt", "prompts", "instructions", "system_prompt", "messages"];

/// This many bytes in a row that a prompt has too are not there by chance: names and values are shorter.
const MIN_REPEATED: usize = 32;
/// How much of a prompt's beginning, and of its end, is compared.
const MAX_COMPARED: usize = 32 * 1024;

/// The text without what it repeats of this prompt, word for word: at least 32 bytes of it, from the first or the last 32 KiB.
///
/// ```
/// use koboshi::redact::without_prompt;
/// let prompt = "My password is the name of my first dog, and then the year";
/// let error = "cannot parse: My password is the name of my first dog: line 1";
/// assert_eq!(without_prompt(error, prompt), "cannot parse: …: line 1");
/// ```
#[must_use]
pub fn without_prompt<'t>(text: &'t str, prompt: &str) -> Cow<'t, str> {
    // Each part of the text of that length, and whether the prompt has it: one pass over each.
    let mut parts: HashMap<&[u8], bool> =
        text.as_bytes().windows(MIN_REPEATED).map(|part| (part, false)).collect();
    let bytes = prompt.as_bytes();
    let begin = bytes.get(..MAX_COMPARED).unwrap_or(bytes);
    let end = bytes.get(bytes.len().saturating_sub(MAX_COMPARED).max(begin.len())..).unwrap_or_default();
    for compared in [begin, end] {
        for part in compared.windows(MIN_REPEATED) {
            if let Some(is_repeated) = parts.get_mut(part) {
                *is_repeated = true;
            }
        }
    }
    let mut repeated: Vec<Range<usize>> = Vec::new();
    for (at, part) in text.as_bytes().windows(MIN_REPEATED).enumerate() {
        if !parts.get(part).copied().unwrap_or_default() {
            continue;
        }
        match repeated.last_mut() {
            // What stands between two pieces and is shorter than either was changed on the way: a line end, a quote.
            Some(last)
                if at < last.end + MIN_REPEATED
                    && is_of_one_text(text.as_bytes().get(last.end..at).unwrap_or_default()) =>
            {
                last.end = at + MIN_REPEATED;
            }
            _ => repeated.push(at..at + MIN_REPEATED),
        }
    }
    if repeated.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut out, mut copied) = (String::new(), 0);
    for piece in repeated {
        out.push_str(text.get(copied..text.floor_char_boundary(piece.start)).unwrap_or_default());
        out.push('…');
        copied = text.ceil_char_boundary(piece.end);
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// Whether no text of a JSON object ends within these bytes.
fn is_of_one_text(bytes: &[u8]) -> bool {
    let mut before = 0;
    !bytes.iter().any(|byte| {
        let is_escaped = std::mem::replace(&mut before, *byte) == b'\\';
        *byte == b'"' && !is_escaped
    })
}

/// The text without what it repeats of a request at length.
#[must_use]
pub fn without_echoes(text: &str) -> Cow<'_, str> {
    let mut reader = Reader { text, unclosed: [false; 6] };
    let mut out = String::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(found) = text.get(at..).and_then(|rest| rest.find(['"', '\'', '`'])) {
        let quote = at + found;
        match reader.echo_at(quote) {
            Some(echo) => {
                out.push_str(text.get(copied..echo.start).unwrap_or_default());
                out.push('…');
                (at, copied) = (echo.end, echo.end);
            }
            None => at = quote + 1,
        }
        // The closing quote of a piece opens nothing.
        at += usize::from(
            copied == at
                && copied > 0
                && text.get(at..).is_some_and(|rest| rest.starts_with(['"', '\'', '`'])),
        );
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

struct Reader<'t> {
    text: &'t str,
    /// Quotes of these kinds are not closed any more.
    unclosed: [bool; 6],
}

impl Reader<'_> {
    /// What is to be cut, if something begins with the quote that stands here.
    fn echo_at(&mut self, quote: usize) -> Option<Range<usize>> {
        if let Some(value) = self.sent_value(quote) {
            return value.filter(|value| self.is_long(value));
        }
        if !self.opens(quote) {
            return None;
        }
        let content = self.content(quote);
        content.filter(|content| self.is_long(content))
    }

    /// Whether a quote stands where one opens, in a sentence. The value of a field is a sentence itself.
    fn opens(&self, quote: usize) -> bool {
        let before = self.before(quote).trim_end_matches('\\');
        let last = before.chars().next_back();
        let stands_apart =
            last.is_some_and(|c| c.is_whitespace() || matches!(c, '(' | '<' | ':' | '=' | '：' | '「'));
        let joined = before.trim_end();
        let is_value = joined.strip_suffix(':').is_some_and(|name| name.trim_end().ends_with(['"', '\'']));
        stands_apart && !is_value && !joined.is_empty() && !joined.ends_with(['[', ',', '{'])
    }

    /// The value of a field that holds what was sent, if the quote that stands here begins its name. The inner one: if there is anything to cut.
    fn sent_value(&mut self, quote: usize) -> Option<Option<Range<usize>>> {
        let name_start = quote + 1;
        let rest = self.text.get(name_start..)?;
        let name = SENT.into_iter().find(|name| {
            rest.strip_prefix(name).is_some_and(|rest| rest.trim_start_matches('\\').starts_with(['"', '\'']))
        })?;
        let after = rest.get(name.len()..)?.trim_start_matches('\\').get(1..)?;
        let value = after.trim_start().strip_prefix(':')?.trim_start();
        let start = self.text.len() - value.len();
        let escapes = value.len() - value.trim_start_matches('\\').len();
        match value.as_bytes().get(escapes) {
            Some(b'"' | b'\'') if name != "messages" => Some(self.content(start + escapes)),
            // Some servers list what is wrong as messages.
            Some(b'{' | b'[') if name == "messages" && !begins_with_a_role(value) => Some(None),
            Some(b'{' | b'[') => Some(Some(start..start + bracketed(value))),
            _ => Some(None),
        }
    }

    /// What stands between the quote here and the one that closes it; up to the end where none does and something must have been cut off.
    fn content(&mut self, quote: usize) -> Option<Range<usize>> {
        let sign = self.text.as_bytes().get(quote).copied()?;
        let escaped = self.is_escaped(quote);
        let kind = usize::from(escaped) * 3 + [b'"', b'\'', b'`'].iter().position(|known| *known == sign)?;
        let start = quote + 1;
        let mut at = start;
        while !self.unclosed.get(kind).copied().unwrap_or(true)
            && let Some(found) = self.text.get(at..).and_then(|rest| rest.find(char::from(sign)))
        {
            at += found;
            let next = self.text.get(at + 1..).and_then(|rest| rest.chars().next());
            if self.is_escaped(at) == escaped && next.is_none_or(|next| !next.is_alphanumeric()) {
                return Some(start..at - usize::from(escaped));
            }
            at += 1;
        }
        if let Some(unclosed) = self.unclosed.get_mut(kind) {
            *unclosed = true;
        }
        let is_named = self.before(quote).trim_end_matches(['\\', ' ']).ends_with([':', '=', '：']);
        is_named.then_some(start..self.text.len())
    }

    fn is_escaped(&self, at: usize) -> bool {
        self.before(at).ends_with('\\')
    }

    fn before(&self, at: usize) -> &str {
        self.text.get(..at).unwrap_or_default()
    }

    fn is_long(&self, part: &Range<usize>) -> bool {
        self.text.get(part.clone()).is_some_and(|part| part.chars().nth(MAX_QUOTE_CHARS).is_some())
    }
}

/// Whether this is a conversation.
fn begins_with_a_role(value: &str) -> bool {
    value.get(..value.floor_char_boundary(MAX_QUOTE_CHARS)).is_some_and(|begin| begin.contains("role"))
}

/// The length of a list or an object; all of the text where it does not end.
fn bracketed(text: &str) -> usize {
    let (mut depth, mut within) = (0_usize, None);
    let mut before = 0;
    for (at, byte) in text.bytes().enumerate() {
        match (within, byte) {
            (Some(quote), _) if byte == quote && before != b'\\' => within = None,
            (None, b'"') => within = Some(byte),
            (None, b'{' | b'[') => depth += 1,
            (None, b'}' | b']') => depth -= usize::from(depth > 0),
            _ => {}
        }
        before = if before == b'\\' { 0 } else { byte };
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str =
        "Please tell nobody, but Alice's password is written on the back of the old clock, don't look there";

    #[test]
    fn what_is_repeated_at_length_is_cut() {
        for (text, cut) in [
            (
                "Invalid value: '@'. Supported values are: 'a' and 'b'.",
                "Invalid value: '…'. Supported values are: 'a' and 'b'.",
            ),
            ("Could not parse \"@\" as JSON", "Could not parse \"…\" as JSON"),
            ("the prompt `@` is refused", "the prompt `…` is refused"),
            (
                "[type=string_type, input_value='@', input_type=str]",
                "[type=string_type, input_value='…', input_type=str]",
            ),
            (
                r#"{"detail":[{"msg":"Field required","input":"@","loc":["body"]}]}"#,
                r#"{"detail":[{"msg":"Field required","input":"…","loc":["body"]}]}"#,
            ),
            (
                r#"{"msg":"Field required","input":{"model":"m","messages":[{"role":"user","content":"@"}]},"n":1}"#,
                r#"{"msg":"Field required","input":…,"n":1}"#,
            ),
            ("{'messages': [{'role': 'user', 'content': '@'}], 'n': 1}", "{'messages': …, 'n': 1}"),
            (r#"{\"input\": \"@\", \"n\": 1}"#, r#"{\"input\": \"…\", \"n\": 1}"#),
            (r#"{"input":"@"#, r#"{"input":"…"#),
            ("Invalid value: '@", "Invalid value: '…"),
            ("値が不正です：「'@'」", "値が不正です：「'…'」"),
        ] {
            let shown = without_echoes(&text.replace('@', PROMPT)).into_owned();
            assert_eq!(shown, cut);
            assert_eq!(without_echoes(&shown), shown);
        }
    }

    #[test]
    fn what_a_provider_says_itself_stays() {
        for text in [
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","type":"invalid_request_error"}}"#,
            "We couldn't find the model that you asked for, and it doesn't look as if it had ever existed; didn't you mean another?",
            "Invalid value: 'assistent'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.",
            r#"{"messages":["The first thing that is wrong with this request is rather long to explain in one sentence"]}"#,
            "\"The whole answer is one text in quotes, as a server without objects would send it to its clients\"",
            "5' 10\" is no size that anybody could know here, and neither is the other one that was given before it",
            "'",
            "\"",
            "input",
            "\"input\":",
            "\"input\":\"",
            "",
        ] {
            assert_eq!(without_echoes(text), text);
        }
    }

    #[test]
    fn what_is_repeated_of_a_known_prompt_is_cut_without_quotes() {
        let prompt = format!("{}{PROMPT}{}", "first-".repeat(200), "\nlast".repeat(200));
        for (text, cut) in [
            ("Parsing failed: @", "Parsing failed: …"),
            ("Parsing failed: @ (line 1)", "Parsing failed: … (line 1)"),
            // As a server shows it that escapes what it repeats.
            (
                r"bad: Please tell nobody, but Alice's password is written\non the back of the old clock, don't look: too long",
                "bad: …: too long",
            ),
            ("@@", "…"),
            (r#"{"a":"@","b":["@"]}"#, r#"{"a":"…","b":["…"]}"#),
            ("Please tell nobody", "Please tell nobody"),
            (
                "This model's maximum context length is 8192 tokens.",
                "This model's maximum context length is 8192 tokens.",
            ),
            ("", ""),
        ] {
            assert_eq!(without_prompt(&text.replace('@', PROMPT), &prompt), cut);
        }
        let japanese = "私の暗証番号は誰にも言わないでください。八八一二です。";
        assert_eq!(without_prompt(&format!("失敗：{japanese}（一行目）"), japanese), "失敗：…（一行目）");
        assert_eq!(without_prompt("anything", ""), "anything");
        let long = format!("{}{PROMPT}{}", "x".repeat(MAX_COMPARED), "y".repeat(MAX_COMPARED - 50));
        assert_eq!(
            without_prompt(&format!("bad: {}", &PROMPT[50..]), &long),
            "bad: …",
            "its end is compared"
        );
    }

    #[test]
    fn any_text_is_read_once() {
        for piece in [
            "'", " '", ": \"", "\\\"", "\"input\":", "\"input\":{", "\"input\":[\"", "\"messages\":[", " 'a",
            "` `", "'input': '",
        ] {
            let text = piece.repeat(100_000 / piece.len());
            let _ = without_echoes(&text);
        }
    }
}

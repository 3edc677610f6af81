//! Reads what follows a head, and judges whether it is a secret.
//!
//! Plain code, because quoting nests (`{\"password\": \"a\\\"b\"}` inside a JSON string) and because the
//! judgement needs words: `password: required` and `token: 4096` are no secrets. A judgement may only get
//! *more* suspicious as a value grows longer; that keeps a second pass over cut text from finding more.

use std::ops::Range;

use super::rules::{Rule, Secret};

/// How a value was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Quoted,
    /// After `=`, as in a URL or an environment file.
    Assigned,
    /// After a colon or a space: perhaps prose.
    Bare,
}

/// A value, as a range of the text it was read from.
struct Value {
    range: Range<usize>,
    style: Style,
}

/// The range of the secret that a match of `rule` at `found` stands for, if it is one.
pub(super) fn locate(rule: &Rule, text: &str, found: Range<usize>, marked: bool) -> Option<Range<usize>> {
    let head = text.get(found.clone())?;
    let rest = text.get(found.end..)?;
    let shift = |range: Range<usize>| found.end + range.start..found.end + range.end;
    match rule.take {
        Secret::Nothing => None,
        Secret::Match => Some(found),
        Secret::MatchUnlessWord => is_short_key(head.get(3..)?).then_some(found),
        Secret::KeyBlock => Some(found.start..found.end + key_block(rest)),
        Secret::UserInfo => user_info(rest).map(shift),
        Secret::Cookies => cookies(rest).map(shift),
        Secret::InSentence => {
            let shortest = if rule.label == "password" { 6 } else { 16 };
            credentials(rest).filter(|range| is_secret_word(rest, range, shortest)).map(shift)
        }
        Secret::Bearer => credentials(rest).filter(|range| judge_bare(rest, range)).map(shift),
        Secret::Authorization => {
            let value = read(head, rest, false)?;
            let inner = rest.get(value.range.start..)?;
            let offset = value.range.start + scheme(inner);
            let end = if value.style == Style::Quoted {
                value.range.end
            } else {
                offset + bare(rest.get(offset..)?, false)
            };
            let range = offset..end.max(offset);
            let word = rest.get(range.clone())?;
            (offset > value.range.start || !is_plain(word)).then_some(shift(range))
        }
        Secret::Value
        | Secret::EnvValue
        | Secret::KeyValue
        | Secret::TokenValue
        | Secret::CredentialValue => {
            if is_reference(rule.take, rest) {
                return None;
            }
            let value = read(head, rest, rule.take == Secret::EnvValue)?;
            if value.style == Style::Quoted
                && is_name(rest.get(value.range.clone())?, rest.get(value.range.end..)?)
            {
                // `credentials: "password": …` announces the next name, not a value.
                return None;
            }
            judge(rule.take, rest, &value, marked).then(|| shift(value.range))
        }
    }
}

/// Whether a quoted string is the name of the next value: one of the names that announce a secret, its closing
/// quote, then a colon or an equals sign. Only whole known names count: they can hold no mark, so a second pass
/// judges them alike.
fn is_name(text: &str, after: &str) -> bool {
    const NAMES: [&str; 10] = [
        "password", "passwd", "secret", "token", "key", "apikey", "accesstoken", "refreshtoken",
        "clientsecret", "authorization",
    ];
    let plain: String = text
        .bytes()
        .take(20)
        .filter(|b| !matches!(b, b'_' | b'-'))
        .map(|b| char::from(b.to_ascii_lowercase()))
        .collect();
    let closed = after.trim_start_matches(['\\', '"', '\'', '`']);
    NAMES.contains(&plain.as_str())
        && text.len() < 20
        && closed.len() < after.len()
        && closed.trim_start_matches(' ').starts_with([':', '='])
}

/// Reads the value that `rest` begins with. `wide` lets a bare value run to the next space.
fn read(head: &str, rest: &str, wide: bool) -> Option<Value> {
    let listed = usize::from(rest.starts_with('['));
    let wrapper = wrapper(rest.get(listed..)?);
    let start = listed + wrapper;
    let inner = rest.get(start..)?;
    let escapes = inner.bytes().take_while(|byte| *byte == b'\\').count();
    if let Some(quote @ (b'"' | b'\'' | b'`')) = inner.as_bytes().get(escapes).copied() {
        let begin = start + escapes + 1;
        let content = rest.get(begin..)?;
        let length = if listed == 1 { list(content) } else { quoted(content, quote, escapes) };
        return Some(Value { range: begin..begin + length, style: Style::Quoted });
    }
    if head.trim_end().ends_with(',') {
        // `("token", 5)`: only a quoted string after a comma is a value of that name.
        return None;
    }
    let assigned = head.ends_with('=') || head.ends_with("%3D") || head.ends_with("%3d");
    let style = if assigned { Style::Assigned } else { Style::Bare };
    Some(Value { range: 0..bare(rest, wide), style })
}

/// Length of what may stand before a quote: `b`, `Some(`, `SecretStr(`.
fn wrapper(rest: &str) -> usize {
    let letters = rest.bytes().take(17).take_while(u8::is_ascii_alphabetic).count();
    let after = rest.as_bytes().get(letters).copied();
    let (length, opens) = match after {
        Some(b'(') if (1..17).contains(&letters) => (letters + 1, rest.as_bytes().get(letters + 1).copied()),
        _ if letters == 1 => (1, after),
        _ => (0, None),
    };
    if matches!(opens, Some(b'"' | b'\'' | b'\\')) { length } else { 0 }
}

/// Length of a quoted string that was opened with `escapes` backslashes before its quote.
///
/// Each level of nesting doubles the backslashes and adds one, so at a level that opens with `k` a quote
/// closes the string where the run before it, modulo `2(k + 1)`, is `k` or less (less: an outer string ends).
fn quoted(content: &str, quote: u8, escapes: usize) -> usize {
    let period = 2 * (escapes + 1);
    let mut run = 0_usize;
    for (at, byte) in content.bytes().enumerate() {
        match byte {
            b'\\' => run += 1,
            b'\n' | b'\r' => return at,
            _ if byte == quote && run % period <= escapes => return at - (run % period),
            _ => run = 0,
        }
    }
    content.len()
}

/// Length of the rest of a list of strings: all of them are secret, up to the last quote.
fn list(content: &str) -> usize {
    let end = content.find([']', '\n', '\r']).unwrap_or(content.len());
    content.get(..end).unwrap_or_default().trim_end_matches(['"', '\'', '\\', ' ']).len()
}

/// Length of a bare value.
fn bare(rest: &str, wide: bool) -> usize {
    let ends = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, '"' | '\'' | '`' | '<' | '>' | '\\' | '、' | '。' | '」' | '）' | '，' | '；')
            || (!wide && matches!(c, ',' | ';' | '&' | '(' | ')' | '{' | '}' | '[' | ']' | '|'))
    };
    let value = rest.get(..rest.find(ends).unwrap_or(rest.len())).unwrap_or_default();
    // The end of a sentence is not part of the value.
    if wide { value.len() } else { value.trim_end_matches(['.', ':']).len() }
}

/// Length of the name of an authorization scheme and the space after it, zero if there is none.
fn scheme(rest: &str) -> usize {
    let known = ["bearer", "basic", "digest", "token", "apikey", "api-key", "negotiate", "aws4-hmac-sha256"];
    let word = rest.bytes().take(20).position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(0);
    let named = rest.get(..word).is_some_and(|word| known.iter().any(|name| word.eq_ignore_ascii_case(name)));
    if !named {
        return 0;
    }
    word + rest.bytes().skip(word).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// The credentials after a scheme.
fn credentials(rest: &str) -> Option<Range<usize>> {
    let length =
        rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || b"._~+/=-*|:".contains(byte)).count();
    let length = rest.get(..length)?.trim_end_matches(['.', ':']).len();
    (length > 0).then_some(0..length)
}

/// The cookies of a header.
fn cookies(rest: &str) -> Option<Range<usize>> {
    let open = rest.bytes().take(12).take_while(|byte| b"\\\"'[ ".contains(byte)).count();
    let content = rest.get(open..)?;
    let named = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.$!%-".contains(byte);
    let name = content.bytes().take(64).take_while(named).count();
    // `cookie: disabled` is a setting; a cookie is a pair.
    if name == 0 || content.as_bytes().get(name) != Some(&b'=') {
        return None;
    }
    let listed = rest.get(..open)?.contains('[');
    let ends: &[char] = if listed { &[']', '\n', '\r'] } else { &['"', '\'', '\n', '\r'] };
    let length = content.find(ends).unwrap_or(content.len());
    let length = content.get(..length)?.trim_end_matches(['"', '\'', '\\', ' ']).len();
    Some(open..open + length)
}

/// The user and password of an address, without the `@`.
fn user_info(rest: &str) -> Option<Range<usize>> {
    let ends =
        |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '`' | '<' | '>' | '\\');
    let authority = rest.get(..rest.find(ends).unwrap_or(rest.len()))?;
    let length = authority.rfind('@')?;
    let user = authority.get(..length)?;
    (user.contains(':') || looks_secret(user)).then_some(0..length)
}

/// Length of a private key block after its first line.
fn key_block(rest: &str) -> usize {
    const MAX_BLOCK: usize = 8 * 1024;
    const END: &str = "-----END";
    let mut window = rest.len().min(MAX_BLOCK);
    while !rest.is_char_boundary(window) {
        window -= 1;
    }
    let near = rest.get(..window).unwrap_or_default();
    if let Some(end) = near.find(END) {
        let after = end + END.len();
        let line = near.get(after..).unwrap_or_default();
        let words = line.bytes().take_while(|b| b.is_ascii_uppercase() || *b == b' ').count();
        if !line.get(..words).is_some_and(|words| words.contains("PRIVATE KEY")) {
            return after;
        }
        let dashes = line.bytes().skip(words).take_while(|byte| *byte == b'-').count();
        return after + words + dashes;
    }
    // Cut off: everything that could still be part of the block, or of a key right behind it.
    rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || b"+/=\\ \t\r\n-_.*".contains(b)).count()
}

/// Whether a value only says where the secret is. Decided from how it begins, before its end is looked for:
/// what is left alone here is searched again, and must not be walked to its end each time.
fn is_reference(take: Secret, rest: &str) -> bool {
    let begin = rest.trim_start_matches(['"', '\'', '\\']);
    begin.starts_with("${")
        || begin.starts_with("{{")
        || match take {
            Secret::TokenValue => begin.starts_with("http"),
            Secret::CredentialValue => begin.starts_with("http") || begin.starts_with(['/', '~', '.']),
            Secret::KeyValue => begin.starts_with("--"),
            _ => false,
        }
}

fn judge(take: Secret, rest: &str, value: &Value, marked: bool) -> bool {
    let Some(text) = rest.get(value.range.clone()) else { return false };
    if text.is_empty() || is_plain(text) {
        return false;
    }
    let bare = value.style == Style::Bare;
    match take {
        Secret::KeyValue if bare => looks_secret(text),
        Secret::TokenValue | Secret::CredentialValue => {
            let number = text.len() < 10 && text.bytes().all(|b| b.is_ascii_digit() || b"._%".contains(&b));
            // A short quoted one may be a piece of language: `"token": "the"`.
            let enough = match value.style {
                Style::Assigned => true,
                Style::Quoted => text.len() >= 6 && !text.contains(char::is_whitespace),
                Style::Bare => false,
            };
            !number && (enough || looks_secret(text))
        }
        _ if bare => !is_prose(text, rest.get(value.range.end..).unwrap_or_default(), marked),
        _ => true,
    }
}

fn judge_bare(rest: &str, range: &Range<usize>) -> bool {
    rest.get(range.clone()).is_some_and(|text| !is_plain(text) && looks_secret(text))
}

/// Whether a word of a sentence can only be a secret: letters and digits mixed, and no name of a variable (`OPENAI_API_KEY_2`).
fn is_secret_word(rest: &str, range: &Range<usize>, shortest: usize) -> bool {
    let Some(text) = rest.get(range.clone()) else { return false };
    let is_variable =
        text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_') && text.contains('_');
    text.len() >= shortest
        && text.bytes().any(|b| b.is_ascii_digit())
        && text.bytes().any(|b| b.is_ascii_alphabetic())
        && !is_variable
}

/// A word with more words after it. A mark after the text counts as a word: it stands for one.
fn is_prose(word: &str, after: &str, marked: bool) -> bool {
    let next = after.trim_start_matches([' ', '\t']);
    let goes_on = if next.is_empty() { marked } else { !next.starts_with(['\n', '\r']) };
    word.chars().all(char::is_alphabetic) && next.len() < after.len() && goes_on
}

/// Letters and digits mixed, or simply long.
fn looks_secret(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let letters = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    text.len() >= 20 || digits >= 10 || (digits > 0 && letters && text.len() >= 6)
}

/// Whether what follows `sk-` is a key, be it a made-up one, and not the rest of a name.
fn is_short_key(text: &str) -> bool {
    const EXAMPLE_PREFIXES: [&str; 12] =
        ["test", "live", "fake", "dummy", "demo", "your", "my", "xxx", "key", "secret", "abc", "example"];
    text.len() >= 20
        || EXAMPLE_PREFIXES.iter().any(|word| text.starts_with(word))
        || (text.bytes().any(|b| b.is_ascii_digit() || b.is_ascii_uppercase() || b == b'*')
            && !text.starts_with("learn"))
}

/// Words that stand where a secret would, and masks.
fn is_plain(text: &str) -> bool {
    const WORDS: &str = "a an and any base64 basic bearer could digest empty env expected expired failed false format \
        hidden include incorrect invalid is jwt missing must n/a nil no none not null oauth oauth2 omit \
        optional required same-origin set sha256 string the this true undefined unset utf8 value was \
        yes your";
    text.chars().all(|c| matches!(c, '*' | '•' | '…' | '.' | '-' | '_'))
        || WORDS.split(' ').any(|word| text.eq_ignore_ascii_case(word))
}

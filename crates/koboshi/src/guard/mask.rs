//! What two messages of one failure differ in, taken out.
//!
//! The same failure is reported with another path, id, port, time or name each time. A mask replaces those by `<*>` and
//! plain numbers by `<n>`, so that equal causes become equal texts. What *is* the identity stays: HTTP status, errno,
//! exit code, SQLSTATE, JSON-RPC code, signal, the codes of compilers, the class of an exception. One regex finds all
//! masks from left to right, the codes that stay among them and first, so nothing is masked twice and the time is
//! linear.
//!
//! Two depths. [`Depth::Names`] masks quoted names, paths and echoes of the arguments too: three missing modules are
//! one text. [`Depth::Volatile`] leaves them and plain numbers: after something was changed, another name or another
//! value is another failure. A line that moved is not: edits move lines.
//!
//! *Not here*: which lines of an output are compared (`failure_text`), and what equal texts mean (`rows`).

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex_automata::Input;
use regex_automata::meta::Regex;

/// Why a piece of text was masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Mask {
    /// A date or a clock time.
    Time,
    /// A UUID, a request id, an address in memory, a long hash.
    Id,
    /// The path of a URL; its host stays.
    Url,
    /// An IP address or a port.
    Address,
    /// A mail address.
    Mail,
    /// A path or a file name.
    Path,
    /// A version.
    Version,
    /// A size with its unit.
    Size,
    /// A length of time.
    Duration,
    /// A line and column.
    Place,
    /// A quoted name.
    Name,
    /// What the call's own arguments said.
    Echo,
    /// A plain number.
    Number,
}

impl Mask {
    /// Every mask, in the order in which they are tried.
    pub const ALL: &[Self] = &[
        Self::Time,
        Self::Id,
        Self::Url,
        Self::Mail,
        Self::Address,
        Self::Path,
        Self::Version,
        Self::Size,
        Self::Duration,
        Self::Place,
        Self::Name,
        Self::Echo,
        Self::Number,
    ];

    /// Stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Id => "id",
            Self::Url => "url",
            Self::Address => "address",
            Self::Mail => "mail",
            Self::Path => "path",
            Self::Version => "version",
            Self::Size => "size",
            Self::Duration => "duration",
            Self::Place => "place",
            Self::Name => "name",
            Self::Echo => "echo",
            Self::Number => "number",
        }
    }

    /// What does not change by itself: [`Depth::Volatile`] leaves it alone.
    fn is_lasting(self) -> bool {
        matches!(
            self,
            Self::Url | Self::Mail | Self::Path | Self::Name | Self::Echo | Self::Version | Self::Number
        )
    }
}

/// How deep to mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Only what changes by itself.
    Volatile,
    /// Names too.
    Names,
}

/// A masked text and what was masked in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct MaskedText {
    pub(super) text: String,
    pub(super) masks: BTreeSet<Mask>,
}

/// Codes stay. A code is a number (or `0x…`) right after a word that announces one, or a status with its phrase.
const KEEP: &str = concat!(
    r"(?i:\bhttp/[0-9.]+ +[0-9]{3}\b)",
    r"|(?i:\b(?:http|status|status_?code|errno|os error|winerror|exit code|exit status|exited with|exited with code",
    r"|return code|returncode|code|error|err|signal|sqlstate|hresult|ora|curl)\b[ :=#\[(-]{0,3}-?(?:0x[0-9a-f]+|[0-9][0-9a-z]{0,5})\b)",
    r"|\b[1-5][0-9]{2} [A-Z][A-Za-z]+",
    r"|-32[0-9]{3}\b",
);

/// In the order in which they are tried at one place.
const PATTERNS: &[(Mask, &str)] = &[
    (
        Mask::Time,
        r"\b[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?)?(?:Z\b| ?[+-][0-9]{2}:?[0-9]{2}\b)?|\b[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?\b",
    ),
    (
        Mask::Id,
        r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b|(?i:\b(?:request|trace|correlation|session|span)[ _-]?id)[ :=#]{1,3}[\w.-]+|\b(?:req|call|msg|run|toolu|chatcmpl|evt|trace|sess)[-_][A-Za-z0-9_-]{6,}|\b0x[0-9a-fA-F]+\b|\b(?:[0-9]+[a-f]|[a-f]+[0-9])[0-9a-f]{5,}\b|\b(?i:pid)[ :=#]{1,2}[0-9]+|\([0-9]+\) panicked\b|\(node:[0-9]+\)|\btmp[A-Za-z0-9_]{4,}",
    ),
    (Mask::Url, r#"\b[a-z][a-z0-9+.-]{1,20}://[^\s"'<>)\]`]+"#),
    (Mask::Mail, r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    (
        Mask::Address,
        r"\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]+)?\b|\[?::1?\]?:[0-9]+\b|\blocalhost:[0-9]+\b",
    ),
    (
        Mask::Path,
        r#"\b[A-Za-z]:\\[^\s"'<>|*?]+|(?:~|\.{1,2}|[\w@.+-]+)?(?:/[\w@.+%~=-]+)+/?|\b[\w-]+(?:\.[\w-]+)*\.(?:py|pyc|ipynb|js|mjs|cjs|jsx|ts|tsx|rs|go|java|kt|c|h|cc|cpp|hpp|cs|rb|php|swift|md|txt|rst|json|jsonl|yaml|yml|toml|ini|cfg|conf|env|csv|tsv|xls|xlsx|doc|docx|pdf|png|jpg|jpeg|gif|svg|webp|html|htm|css|scss|sh|bat|ps1|sql|db|sqlite|parquet|xml|lock|log|so|dll|dylib|ttf|otf|woff|zip|gz|tar|tgz|whl|jar|bin|exe|vue|proto|tf|tmp|bak)\b"#,
    ),
    (Mask::Version, r"\bv?[0-9]+\.[0-9]+(?:\.[0-9]+)+[\w.+-]*|\bv[0-9]+\.[0-9]+\b"),
    (Mask::Size, r"\b[0-9]+(?:[.,][0-9]+)* ?(?:[kKMGT]i?B|[bB]ytes?|[KMG])\b"),
    (
        Mask::Duration,
        r"\b[0-9]+(?:[.,][0-9]+)* ?(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|days?)\b|[0-9]+ ?(?:ミリ秒|秒|分|時間)",
    ),
    (
        Mask::Place,
        r"(?i:\b(?:lines?|ln|columns?|col|row|offset|position|pos|char|character)[ :#=]{1,2}[0-9]+(?:[:,-][0-9]+)*)|:[0-9]+:[0-9]+\b|:[0-9]+\b|\([0-9]+,[0-9]+\)",
    ),
    // The mark alone; where the quoted text ends is found by plain code. Counting three hundred characters of each kind of
    // quotation would make the automaton a hundred times as large, and every search slower.
    (Mask::Name, "['\"`“‘「«]"),
    (Mask::Number, r"-?\b[0-9]+(?:[.,][0-9]+)*\b"),
];

/// A quoted text of more words is a sentence, not a name.
const NAME_WORDS: usize = 5;
const NAME_CHARS: usize = 80;
/// What is not closed after this many characters is no quotation.
const QUOTED_CHARS: usize = 300;

/// The codes that stay, then the masks. A match says which of them it is, without the cost of groups. None cannot happen
/// with the constant patterns (a test compiles them); then nothing is masked.
static ANY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let masks = PATTERNS.iter().map(|(_, pattern)| *pattern);
    let all: Vec<&str> = std::iter::once(KEEP).chain(masks).collect();
    Regex::new_many(&all).ok()
});

/// Finds and replaces. All of them share one compiled form.
#[derive(Debug, Clone, Copy)]
pub(super) struct Masker {
    any: Option<&'static Regex>,
}

impl Masker {
    /// The first one compiles the patterns.
    pub(super) fn new() -> Self {
        Self { any: ANY.as_ref() }
    }

    /// The masked text in lower case with single spaces. `echoes` are what the call's arguments said.
    pub(super) fn mask(&self, text: &str, echoes: &[String], depth: Depth) -> MaskedText {
        let mut masked = MaskedText::default();
        let heard: String;
        let text = if depth == Depth::Names {
            heard = without_echoes(text, echoes, &mut masked.masks);
            &heard
        } else {
            text
        };
        let mut out = String::with_capacity(text.len());
        self.push(text, depth, true, &mut out, &mut masked.masks);
        masked.text = tidy(&out);
        masked
    }

    fn push(&self, text: &str, depth: Depth, quotes: bool, out: &mut String, masks: &mut BTreeSet<Mask>) {
        let Some(any) = self.any else {
            out.push_str(text);
            return;
        };
        let mut at = 0;
        while let Some(found) = any.find(Input::new(text).range(at..)) {
            out.push_str(text.get(at..found.start()).unwrap_or_default());
            let mut end = found.end();
            let whole = text.get(found.range()).unwrap_or_default();
            match mask_of(found.pattern().as_usize()) {
                None => out.push_str(whole),
                Some(Mask::Name) => match quotation(text, found.start()) {
                    Some(closed) => {
                        let (content, is_name) = quoted(text, found.start(), closed);
                        end = closed;
                        if is_name && quotes && depth == Depth::Names {
                            masks.insert(Mask::Name);
                            out.push_str(if content.trim().is_empty() { " " } else { "<*>" });
                        } else {
                            self.push(content, depth, false, out, masks);
                        }
                    }
                    // An apostrophe, or a mark without its partner: continue behind it.
                    None => out.push_str(whole),
                },
                Some(mask) if mask.is_lasting() && depth == Depth::Volatile => out.push_str(whole),
                Some(mask) => {
                    masks.insert(mask);
                    push_mask(mask, whole, out);
                }
            }
            // No pattern matches nothing; and if one did, the text would still be passed over.
            at = text.ceil_char_boundary(end.max(at + 1));
        }
        out.push_str(text.get(at..).unwrap_or_default());
    }
}

/// None for a code that stays.
fn mask_of(pattern: usize) -> Option<Mask> {
    pattern.checked_sub(1).and_then(|at| PATTERNS.get(at)).map(|(mask, _)| *mask)
}

/// Where the quotation that begins here ends; none if it does not, or if its mark is an apostrophe.
fn quotation(text: &str, start: usize) -> Option<usize> {
    let (before, rest) = text.split_at_checked(start)?;
    let mark = rest.chars().next()?;
    let closing = match mark {
        '“' => '”',
        '‘' => '’',
        '「' => '」',
        '«' => '»',
        mark => mark,
    };
    let content = rest.get(mark.len_utf8()..)?;
    let (length, found) =
        content.char_indices().take(QUOTED_CHARS + 1).find(|(_, c)| *c == closing || *c == '\n')?;
    let end = start + mark.len_utf8() + length + found.len_utf8();
    let joins = |c: char| c.is_alphanumeric();
    let is_apostrophe = mark == '\''
        && (before.ends_with(joins) || text.get(end..).is_some_and(|after| after.starts_with(joins)));
    (found == closing && length > 0 && !is_apostrophe).then_some(end)
}

fn push_mask(mask: Mask, text: &str, out: &mut String) {
    match mask {
        Mask::Number => out.push_str("<n>"),
        Mask::Url => {
            // The host says which service it was.
            let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            out.push_str(host.rsplit('@').next().unwrap_or_default());
        }
        _ => out.push_str("<*>"),
    }
}

/// What stands in quotes, and whether it is a name.
fn quoted(text: &str, start: usize, end: usize) -> (&str, bool) {
    let before = text.get(..start).unwrap_or_default();
    let after = text.get(end..).unwrap_or_default();
    let whole = text.get(start..end).unwrap_or_default();
    let mut inside = whole.chars();
    let mark = inside.next();
    inside.next_back();
    let content = inside.as_str();
    // In a piece of JSON every text is quoted, also the sentence that says what is wrong.
    let structure = mark == Some('"')
        && (before.trim_end().ends_with(['{', ',', '[']) && before.contains(['{', '['])
            || before.trim_end().ends_with("\":")
            || after.trim_start().starts_with(':') && before.contains('{'));
    let is_name = !structure
        && content.chars().count() <= NAME_CHARS
        && content.split_whitespace().count() <= NAME_WORDS;
    (content, is_name)
}

/// The text without what the arguments said; whole words only, longest first.
fn without_echoes(text: &str, echoes: &[String], masks: &mut BTreeSet<Mask>) -> String {
    let mut text = text.to_owned();
    for echo in echoes {
        if !text.contains(echo.as_str()) {
            continue;
        }
        let mut out = String::with_capacity(text.len());
        let mut copied = 0;
        for (start, found) in text.match_indices(echo.as_str()) {
            let end = start + found.len();
            let word = |c: char| c.is_alphanumeric() || c == '_';
            let inside = echo.starts_with(word)
                && text.get(..start).is_some_and(|before| before.ends_with(word))
                || echo.ends_with(word) && text.get(end..).is_some_and(|after| after.starts_with(word));
            if inside {
                continue;
            }
            masks.insert(Mask::Echo);
            out.push_str(text.get(copied..start).unwrap_or_default());
            out.push_str("<*>");
            copied = end;
        }
        out.push_str(text.get(copied..).unwrap_or_default());
        text = out;
    }
    text
}

/// Lower case, single spaces, no marks around a mask, no mask twice in a row.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let c = match c {
            '"' | '\'' | '`' | '“' | '”' | '‘' | '’' | '{' | '}' | '[' | ']' => ' ',
            c if c.is_control() || c.is_whitespace() => ' ',
            c => c,
        };
        if c == ' ' {
            if !out.is_empty() && !out.ends_with(' ') {
                out.push(' ');
            }
        } else {
            out.extend(c.to_lowercase());
        }
        while out.ends_with("<*> <*>") || out.ends_with("<*><*>") {
            let joined = out.len() - if out.ends_with(" <*>") { 4 } else { 3 };
            out.truncate(joined);
        }
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(text: &str) -> String {
        Masker::new().mask(text, &[], Depth::Names).text
    }

    #[test]
    fn the_patterns_compile() {
        assert!(std::ptr::eq(Masker::new().any.unwrap(), Masker::new().any.unwrap()), "once for all");
        assert!(PATTERNS.iter().all(|(_, pattern)| !regex::Regex::new(pattern).unwrap().is_match("")));
        assert_eq!(PATTERNS.len() + 1, Mask::ALL.len(), "an echo needs no pattern");
    }

    #[test]
    fn what_differs_between_two_reports_is_masked() {
        for (one, other) in [
            ("No module named 'pandas'", "No module named 'numpy'"),
            ("address already in use :::3000", "address already in use :::3001"),
            (
                "internal error (request id 0b0c7a1e-5a0d-4f0e-9a35-2f1f0e1f7f10)",
                "internal error (request id abc-9)",
            ),
            ("connect ECONNREFUSED 127.0.0.1:5432", "connect ECONNREFUSED 10.0.0.7:80"),
            ("File \"/srv/app/a.py\", line 3", "File \"/tmp/b.py\", line 77"),
            ("cannot open C:\\Users\\a\\x.txt", "cannot open D:\\b.txt"),
            ("segfault at 0x7ffe12 after 12 ms", "segfault at 0xdeadbeef after 3.5 s"),
            ("needs 12 MB, 4 left", "needs 13 MB, 9 left"),
            ("2026-11-15T12:00:00Z boom", "2026-11-16 01:02:03.5 boom"),
            ("フォント「Noto Sans」がありません", "フォント「IPA ゴシック」がありません"),
        ] {
            assert_eq!(masked(one), masked(other));
        }
    }

    #[test]
    fn what_is_the_identity_stays() {
        for (one, other) in [
            ("HTTP 404", "HTTP 500"),
            ("HTTP/1.1 404 Not Found", "HTTP/1.1 500 Internal Server Error"),
            ("401 Unauthorized", "403 Forbidden"),
            ("[Errno 2] x", "[Errno 13] x"),
            ("(os error 2)", "(os error 13)"),
            ("exit code 1", "exit code 127"),
            ("exited with code: 2", "exited with code: 3"),
            ("SQLSTATE[42P01]", "SQLSTATE[28000]"),
            ("ERROR 1045 (28000)", "ERROR 1146 (42S02)"),
            ("error[E0308]: x", "error[E0425]: x"),
            ("error TS2322: x", "error TS2345: x"),
            ("killed by signal 9", "killed by signal 15"),
            ("ValueError: x", "TypeError: x"),
            ("MCP error -32602: x", "MCP error -32603: x"),
            ("{\"code\":-32601}", "{\"code\":-32000}"),
            ("curl: (6) x", "curl: (7) x"),
            ("failed with 0x80070005: error 0x80070005", "failed with 0x80070005: error 0x80004005"),
            ("{\"error\":\"email is required\"}", "{\"error\":\"email is not valid\"}"),
        ] {
            assert_ne!(masked(one), masked(other));
        }
    }

    #[test]
    fn apostrophes_are_no_quotes() {
        assert_eq!(masked("can't open, won't try"), "can t open, won t try");
        assert_eq!(masked("don't open 'a b'"), "don t open <*>");
    }

    #[test]
    fn what_is_never_closed_or_too_long_is_no_quotation() {
        assert_eq!(masked("open 'a and go on"), "open a and go on");
        assert_eq!(masked("open \"\" and 'b'"), "open and <*>");
        assert_eq!(masked("open 'a\nb' now"), "open a b now");
        let name = "x".repeat(QUOTED_CHARS);
        assert_eq!(masked(&format!("'{name}' 'y'")), format!("{name} <*>"), "too long for a name");
        assert_eq!(masked(&format!("'{name}x' 5")), format!("{name}x <n>"));
    }

    #[test]
    fn echoes_are_whole_words() {
        let mask = |text: &str, echo: &str| Masker::new().mask(text, &[echo.to_owned()], Depth::Names).text;
        assert_eq!(mask("no table orders", "orders"), "no table <*>");
        assert_eq!(mask("no table reorders", "orders"), "no table reorders");
    }

    #[test]
    fn names_stay_where_only_the_volatile_is_masked() {
        let volatile = |text: &str| Masker::new().mask(text, &[], Depth::Volatile).text;
        assert_ne!(volatile("No module named 'a'"), volatile("No module named 'b'"));
        assert_eq!(volatile("x 'a' at 12:00:01"), volatile("x 'a' at 12:00:02"));
    }
}

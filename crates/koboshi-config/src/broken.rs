//! YAML that cannot be parsed: the library's message, and what it most often means.

use crate::check::Problem;
use crate::source::Source;
use crate::tree::{self, Spot};
use crate::words::{Words, words};
use crate::{spacing, wide};

/// What the library says of a tab.
const TAB: &str = "tab";

/// How many lines behind the parser's place may be the one with the tab.
const TAB_LINES: u64 = 100;

/// The place of the first tab of a line's indentation.
fn tab_of(source: &Source<'_>, line: u64) -> Option<Spot> {
    let blank = |c: &char| c.is_whitespace();
    let at = source.line(line).chars().take_while(blank).position(|c| c == '\t')?;
    let column = u64::try_from(at).unwrap_or_default().saturating_add(1);
    Some(Spot { line, column, start: None, chars: 1 })
}

/// Messages of the library about broken YAML, what they most often mean, and what to do.
const BROKEN: &[(&str, Words, Words)] = &[
    (TAB, TABS.0, TABS.1),
    (
        "did not find expected key",
        words("the indentation does not fit the lines above", "インデントが上の行と合っていません"),
        words(
            "keys of one section, and the `-` of one list, begin in the same column; a quote that is not closed above does this too",
            "同じセクションの設定項目、同じリストの `-` は同じ桁から始めてください。上の行で引用符が閉じていない場合もこうなります",
        ),
    ),
    (
        "indentation",
        words(
            "the indentation does not fit, or a quote above is not closed",
            "インデントが合っていないか、上の行で引用符が閉じていません",
        ),
        words(
            "close the quote, or begin the keys of one section in the same column",
            "引用符を閉じるか、同じセクションの設定項目を同じ桁から始めてください",
        ),
    ),
    (
        SECOND_COLON,
        words("a second `: ` in one line", "1 行に `: ` が 2 つあります"),
        words(
            "put a value that holds `: ` in quotes, or the second key in a line of its own",
            "`: ` を含む値は引用符で囲むか、2 つ目の設定項目を別の行に書いてください",
        ),
    ),
    (
        "while parsing a flow",
        words(
            "a comma or a closing bracket is missing, or a text with `{` or `[` stands in brackets without quotes",
            "カンマか閉じかっこが足りないか、`{` や `[` を含む文字列がかっこの中に引用符なしで書かれています",
        ),
        words(
            "put it in quotes, as in `[\"openai/{model}\", \"${NAME}\"]`, or write one `- part` in each line",
            "`[\"openai/{model}\", \"${NAME}\"]` のように引用符で囲むか、1 行に 1 つずつ `- 値` と書いてください",
        ),
    ),
    (
        "unclosed",
        words("a bracket or quote is not closed", "かっこか引用符が閉じていません"),
        words("close it, or put the whole value in quotes", "閉じるか、値全体を引用符で囲んでください"),
    ),
    (
        "multiple yaml documents",
        words("a second document begins here", "ここから 2 つ目のドキュメントが始まっています"),
        words(
            "one file holds one config: take the `---` line above out",
            "1 つのファイルに書ける設定は 1 つです。上の `---` の行を削除してください",
        ),
    ),
    (
        "unexpected character",
        words("a character that cannot begin a value", "値の先頭に使えない文字です"),
        words("put the value in quotes", "値を引用符で囲んでください"),
    ),
    (
        UNKNOWN_ANCHOR,
        words(
            "an alias (`*name`) without its anchor (`&name`)",
            "エイリアス（`*name`）に対応するアンカー（`&name`）がありません",
        ),
        words("put a value that begins with `*` in quotes", "`*` で始まる値は引用符で囲んでください"),
    ),
    ("budget", TOO_MUCH, RIGHT_FILE),
    ("limit", TOO_MUCH, RIGHT_FILE),
];
const TABS: (Words, Words) = (
    words("a tab is used as indentation", "インデントにタブが使われています"),
    words(
        "YAML is indented with spaces: replace the tab",
        "YAML のインデントは空白で書きます。タブを置き換えてください",
    ),
);
const TOO_MUCH: Words = words(
    "too deep, too many values or too many aliases for a config",
    "設定ファイルとしては深すぎるか、値やエイリアスが多すぎます",
);
const RIGHT_FILE: Words = words("is this the right file?", "ファイルは正しいですか？");

/// The library's message about a second `: ` in a line, and about a line that is indented further than the one above allows.
const SECOND_COLON: &str = "mapping values are not allowed";
const INDENTED: (Words, Words) = (
    words("this line is indented further than the one above allows", "この行のインデントが深すぎます"),
    words(
        "keys of one section begin in the same column; a key that has keys of its own has no value beside it",
        "同じセクションの設定項目は同じ桁から始めてください。下に設定項目を持つ行には、値を書けません",
    ),
);

/// What the library says of `*name`, and of a name that begins with `*`.
const UNKNOWN_ANCHOR: &str = "unknown anchor";
const STAR_NAME: (Words, Words) = (
    words("a name that begins with `*` stands without quotes", "`*` で始まる名前が引用符で囲まれていません"),
    words("put the name in quotes, as in `\"*\":`", "`\"*\":` のように、名前を引用符で囲んでください"),
);

/// Whether the alias at a column is the name of a key: a colon follows its word.
fn is_star_name(line: &str, column: u64) -> bool {
    let skip = usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX);
    let behind: String = line.chars().skip(skip).skip_while(|c| !c.is_whitespace() && *c != ':').collect();
    behind.trim_start().starts_with(':')
}

/// Whether a line contains one key at most.
fn has_one_colon(line: &str) -> bool {
    let line = line.split_once(" #").map_or(line, |(before, _)| before).trim_end();
    line.matches(": ").count() + usize::from(line.ends_with(':')) <= 1
}

/// The parser takes what follows a full-width colon for a text, and fails only in the next line.
fn wide_colon(line: &str) -> Option<(usize, Words, Words)> {
    let message = words(
        "a full-width colon (`：`) stands behind this key",
        "設定項目名の後に全角コロン（`：`）があります",
    );
    let hint =
        words("write an ASCII colon (`:`) and a space", "半角コロン（`:`）と半角スペースを書いてください");
    wide::colon(line).map(|at| (at, message, hint))
}

/// The problem of broken YAML. The library's own words are not shown: they may quote the file.
pub(crate) fn broken_yaml(source: &Source<'_>, broken: &tree::BrokenYaml) -> Problem {
    let said = broken.message.to_lowercase();
    let known = BROKEN.iter().find(|(part, _, _)| said.contains(part));
    let (message, hint) = match known {
        Some((SECOND_COLON, ..)) if broken.spot.is_some_and(|spot| has_one_colon(source.line(spot.line))) => {
            INDENTED
        }
        Some((UNKNOWN_ANCHOR, ..))
            if broken.spot.is_some_and(|spot| is_star_name(source.line(spot.line), spot.column)) =>
        {
            STAR_NAME
        }
        Some((_, message, hint)) => (*message, *hint),
        None => (
            words("this is not YAML", "YAML として読めません"),
            words(
                "quotes, brackets and indentation are what most often goes wrong",
                "引用符、かっこ、インデントの誤りが最も多い原因です",
            ),
        ),
    };
    let nearby = |find: fn(&str) -> Option<(usize, Words, Words)>| {
        let line = broken.spot?.line;
        [line, source.line_above(line)].into_iter().find_map(|line| {
            let (at, message, hint) = find(source.line(line))?;
            let column = u64::try_from(at).unwrap_or_default().saturating_add(1);
            Some((Spot { line, column, start: None, chars: 1 }, message, hint))
        })
    };
    if let Some((spot, message, hint)) = nearby(wide_colon).or_else(|| nearby(spacing::of_line)) {
        return source.problem(spot, "", message, Some(hint.into()));
    }
    if let Some(tab) = broken.spot.and_then(|spot| {
        // Where the parser speaks of a tab, it names the value before it, which can stand some lines above.
        let is_told = known.is_some_and(|(part, ..)| *part == TAB);
        let last = if is_told { spot.line.saturating_add(TAB_LINES) } else { spot.line };
        (spot.line..=last).find_map(|line| tab_of(source, line))
    }) {
        return source.problem(tab, "", TABS.0, Some(TABS.1.into()));
    }
    match broken.spot {
        Some(spot) => source.problem(spot, "", message, Some(hint.into())),
        None => Problem::of_file(source.name, message, Some(hint.into())),
    }
}

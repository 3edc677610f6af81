//! What can be wrong in a rule file, in the words of both languages.

use serde_saphyr::Location;

use super::lexicon::{LexiconError, MAX_CLAUSES};
use super::rulefile::{Line, RuleError, error_at, nearest};
use super::ruleset::CATEGORIES;

pub(super) fn used_twice(file: &str, id: &Line) -> RuleError {
    let name = &id.value;
    error_at(
        file,
        id.referenced,
        format!("rule id `{name}` is used twice in this file"),
        format!("ルールの id `{name}` がこのファイルで 2 回使われています"),
    )
}

/// `parts` are those of which one would make the rule a rule.
pub(super) fn holds_always(file: &str, id: &Line, parts: &[&str]) -> RuleError {
    let (name, quoted) = (&id.value, |joint: &str| {
        parts.iter().map(|part| format!("`{part}`")).collect::<Vec<_>>().join(joint)
    });
    let en = match parts {
        [first, second, third] => format!("`{first}`, `{second}` or `{third}`"),
        _ => quoted(" or "),
    };
    let one_of = if parts.len() > 1 { "のいずれか" } else { "" };
    error_at(
        file,
        id.referenced,
        format!("rule `{name}` would hold always: give it {en}"),
        format!("ルール `{name}` は常に当てはまります。{} {one_of}を書いてください", quoted("、")),
    )
}

pub(super) fn new_category(file: &str, category: &Line) -> RuleError {
    let name = &category.value;
    let (en, ja) = nearest(name, CATEGORIES.iter().copied()).map_or((String::new(), String::new()), |near| {
        (format!(" (did you mean `{near}`?)"), format!("（`{near}` のことですか？）"))
    });
    error_at(
        file,
        category.referenced,
        format!(
            "category `{name}` is new{en}: give the rule a `message` and a `suggestion` with `en` and `ja`"
        ),
        format!(
            "カテゴリー `{name}` は新しいものです{ja}。`message` と `suggestion` を `en` と `ja` で書いてください"
        ),
    )
}

pub(super) fn bad_pattern(file: &str, line: &Line, reason: &str) -> RuleError {
    error_at(
        file,
        line.referenced,
        format!("bad regular expression: {reason}"),
        format!("正規表現が正しくありません: {reason}"),
    )
}

pub(super) fn star_inside(file: &str, line: &Line, term: &str) -> RuleError {
    error_at(
        file,
        line.referenced,
        format!(
            "term `{term}`: a star stands only at the beginning or the end of a term; use /…/ for the rest"
        ),
        format!("語句 `{term}`: `*` は語句の先頭か末尾だけに書けます。それ以外は /…/ を使ってください"),
    )
}

pub(super) fn never_occurs(file: &str, line: &Line, term: &str, right: &str) -> RuleError {
    error_at(
        file,
        line.referenced,
        format!("term `{term}` can never occur: write it in plain form, `{right}`"),
        format!("語句 `{term}` は一致することがありません。`{right}` と書いてください"),
    )
}

pub(super) fn circle(file: &str, line: &Line, concept: &str) -> RuleError {
    error_at(
        file,
        line.referenced,
        format!("concept `{concept}` refers to itself"),
        format!("コンセプト `{concept}` が自分自身を参照しています"),
    )
}

pub(super) fn too_many(file: &str, location: Location) -> RuleError {
    error_at(
        file,
        location,
        format!("too many different lines: {MAX_CLAUSES} are the most"),
        format!("異なる条件の行が多すぎます（最大 {MAX_CLAUSES} 行）"),
    )
}

pub(super) fn no_status(file: &str, line: &Line, part: &str) -> RuleError {
    error_at(
        file,
        line.referenced,
        format!("`{part}` is no status: write `429`, `4xx`, `500-504` or `none`"),
        format!(
            "`{part}` はステータスではありません。`429`、`4xx`、`500-504`、`none` のように書いてください"
        ),
    )
}

/// A name that is none of those there are.
pub(super) fn unknown<'a>(
    file: &str,
    line: &Line,
    what: &str,
    names: impl Iterator<Item = &'a str>,
) -> RuleError {
    let (hint, hint_ja) = nearest(&line.value, names).map_or((String::new(), String::new()), |near| {
        (format!(", did you mean `{near}`?"), format!("。`{near}` のことですか？"))
    });
    let ja = format!("`{}` という {what} はありません{hint_ja}", line.value);
    error_at(file, line.referenced, format!("unknown {what} `{}`{hint}", line.value), ja)
}

/// All rules together are more than can be searched for.
pub(super) fn too_large(error: LexiconError) -> RuleError {
    let ja = format!("ルールが大きすぎるか、複雑すぎます（{}）", error.0);
    error_at("rules", Location::UNKNOWN, error.0, ja)
}

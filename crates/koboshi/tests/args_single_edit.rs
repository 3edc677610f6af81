//! Every way to lose, double or exchange one mark of a valid document, against a search through all ways to undo it.
//!
//! The oracle makes every single edit of the broken text (one mark dropped, inserted or exchanged, at each place) and keeps those that are strict JSON which the
//! schema takes. Where they all say one value, that is the reading, and a repair is due; where they say two, a refusal. A repair that is none of them is harmful, and so
//! is a repair where there are two. 20 documents with all their defects here; `KOBOSHI_DOCUMENTS=2000` for more, `KOBOSHI_SEED` for others.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::collections::BTreeMap;

use crate::args_kit::{Exact, exact};
use koboshi::args::{ArgsPolicy, Finish, ToolSchema, Verdict, check};
use serde_json::{Map, Value, json};

/// A small generator of numbers: the same documents every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % below.max(1)
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }
}

const PATHS: &[&str] = &["src/main.rs", "/tmp/out.txt", "C:\\data\\in.csv", "docs/read me.md", "."];
const TEXTS: &[&str] = &[
    "hello", "find the error in line 12, then stop", "SELECT a, b FROM t WHERE c = 'x';", "Tokyo, Japan",
    "if (a[0] == {}) { return b; }", "it's done", "日本語の説明、確認済み", "", "echo \"hi\" > out",
    "key: value", "first line\nsecond line", "https://example.com/?a=1&b=2", "100", "true", "a-b_c.d",
];
const CHOICES: &[&str] = &["fast", "slow", "none"];

/// A document of a tool, and the schema of that tool.
fn document(dice: &mut Dice) -> (Value, Value) {
    let mut members = Map::new();
    let mut properties = Map::new();
    let mut add = |name: &str, value: Value, schema: Value| {
        members.insert(name.to_owned(), value);
        properties.insert(name.to_owned(), schema);
    };
    for name in ["path", "text", "limit", "recursive", "tags", "options", "edits", "mode", "ratio"] {
        if dice.roll(2) == 0 {
            continue;
        }
        match name {
            "path" => add(name, json!(dice.pick(PATHS)), json!({"type": "string"})),
            "text" => add(name, json!(dice.pick(TEXTS)), json!({"type": "string"})),
            "limit" => add(name, json!(dice.roll(1000)), json!({"type": "integer"})),
            "recursive" => add(name, json!(dice.roll(2) == 0), json!({"type": "boolean"})),
            "mode" => add(name, json!(dice.pick(CHOICES)), json!({"enum": CHOICES})),
            "ratio" => add(name, json!(0.25), json!({"type": "number"})),
            "tags" => {
                let tags: Vec<_> = (0..dice.roll(4)).map(|_| dice.pick(TEXTS)).collect();
                add(name, json!(tags), json!({"type": "array", "items": {"type": "string"}}));
            }
            "options" => {
                let schema = json!({"type": "object", "properties": {"depth": {"type": "integer"}, "label": {"type": "string"}},
                    "required": ["depth", "label"], "additionalProperties": false});
                add(name, json!({"depth": dice.roll(9), "label": dice.pick(TEXTS)}), schema);
            }
            _ => {
                let edit = |dice: &mut Dice| json!({"old": dice.pick(TEXTS), "new": dice.pick(TEXTS), "line": dice.roll(99)});
                let edits: Vec<_> = (0..=dice.roll(2)).map(|_| edit(dice)).collect();
                let one = json!({"type": "object", "properties": {"old": {"type": "string"}, "new": {"type": "string"}, "line": {"type": "integer"}},
                    "required": ["old", "new", "line"], "additionalProperties": false});
                add(name, json!(edits), json!({"type": "array", "items": one}));
            }
        }
    }
    if members.is_empty() {
        return document(dice);
    }
    let required: Vec<_> = members.keys().cloned().collect();
    let schema = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    (Value::Object(members), schema)
}

/// As models print: without blanks, with one behind commas and colons, or over several lines.
fn print(value: &Value, dice: &mut Dice) -> String {
    match dice.roll(3) {
        0 => value.to_string(),
        1 => serde_json::to_string_pretty(value).unwrap(),
        _ => {
            let pretty = serde_json::to_string_pretty(value).unwrap();
            let joined: Vec<_> = pretty.lines().map(str::trim).collect();
            joined.join(" ").replace("{ ", "{").replace(" }", "}").replace("[ ", "[").replace(" ]", "]")
        }
    }
}

/// The places of quotation marks around strings, and of the marks outside strings.
fn marks(text: &str) -> Vec<usize> {
    let (bytes, mut found, mut inside, mut at) = (text.as_bytes(), Vec::new(), false, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if inside => at += 1,
            b'"' => {
                inside = !inside;
                found.push(at);
            }
            b',' | b':' | b'{' | b'}' | b'[' | b']' if !inside => found.push(at),
            _ => {}
        }
        at += 1;
    }
    found
}

/// What stands in place of a mark that was exchanged.
fn exchanges(mark: &str) -> &'static [&'static str] {
    match mark {
        "\"" => &["'", "`"],
        "," => &[";", ":", "."],
        ":" => &["=", ";", ","],
        "{" => &["[", "("],
        "}" => &["]", ")"],
        "[" => &["{", "("],
        _ => &["}", ")"],
    }
}

fn replaced(text: &str, at: usize, by: &str) -> String {
    format!("{}{by}{}", &text[..at], &text[at + 1..])
}

/// What happens to one mark.
struct SingleDefect {
    kind: String,
    at: usize,
    by: String,
}

/// All single defects of a text.
fn defects(text: &str) -> Vec<SingleDefect> {
    let mut all = Vec::new();
    for at in marks(text) {
        let mark = &text[at..=at];
        let mut add =
            |what: &str, by: String| all.push(SingleDefect { kind: format!("{what} {mark}"), at, by });
        add("dropped", String::new());
        add("doubled", mark.repeat(2));
        for other in exchanges(mark) {
            add("exchanged", (*other).to_owned());
        }
    }
    all
}

const MARKS: &[&str] = &["\"", ",", ":", "{", "}", "[", "]"];

/// Whether a quotation mark inserted here would have a blank on its inside: a mark stands beside its text.
fn is_beside_blank(text: &str, at: usize) -> bool {
    let before = &text[..at];
    let quotes = marks(before).into_iter().filter(|mark| before[*mark..].starts_with('"')).count();
    let inside = if quotes % 2 == 0 { text[at..].chars().next() } else { before.chars().next_back() };
    inside.is_some_and(char::is_whitespace)
}

/// Every value that one edit of the text gives: at most two of them.
fn readings(text: &str, schema: &ToolSchema) -> Vec<Exact> {
    let strict = ArgsPolicy::strict();
    let mut found: Vec<Exact> = Vec::new();
    let mut take = |candidate: &str| {
        if check(candidate, Some(schema), Finish::Done, &strict) == Verdict::Valid {
            let value = exact(candidate);
            if !found.contains(&value) {
                found.push(value);
            }
        }
        found.len() > 1
    };
    let mut places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    places.push(text.len());
    for &at in &places {
        let letter = text[at..].chars().next();
        let is_mark = letter.is_some_and(|letter| "\",:{}[]'`“;=.()".contains(letter));
        let rest = &text[at + letter.map_or(0, char::len_utf8)..];
        if is_mark && take(&format!("{}{rest}", &text[..at])) {
            return found;
        }
        for mark in MARKS {
            if *mark == "\"" && is_beside_blank(text, at) {
                continue;
            }
            if take(&format!("{}{mark}{}", &text[..at], &text[at..])) {
                return found;
            }
            // A separator is no quotation mark that was mistyped.
            let is_relative = *mark != "\"" || letter.is_some_and(|letter| "'`".contains(letter));
            if is_mark && is_relative && take(&format!("{}{mark}{rest}", &text[..at])) {
                return found;
            }
        }
    }
    found
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[derive(Debug, Default, Clone)]
struct Score {
    right: usize,
    missed: usize,
    harmful: usize,
    refused_two: usize,
    harmful_two: usize,
    unfound: usize,
}

#[test]
fn a_single_defect_is_repaired_where_one_edit_gives_one_value_and_refused_where_it_gives_two() {
    let documents: u64 = number("KOBOSHI_DOCUMENTS", 20);
    let mut dice = Dice(number("KOBOSHI_SEED", 0x9E37_79B9_7F4A_7C15));
    let mut scores: BTreeMap<String, Score> = BTreeMap::new();
    let mut shown: BTreeMap<(String, &str), Vec<String>> = BTreeMap::new();
    for _ in 0..documents {
        let (value, schema) = document(&mut dice);
        let schema = ToolSchema::parse(&schema.to_string()).unwrap();
        let text = print(&value, &mut dice);
        let policy = ArgsPolicy::default();
        assert_eq!(check(&text, Some(&schema), Finish::Done, &policy), Verdict::Valid, "{text}");
        for SingleDefect { kind, at, by } in defects(&text) {
            let broken = replaced(&text, at, &by);
            let verdict = check(&broken, Some(&schema), Finish::Done, &policy);
            if verdict == Verdict::Valid {
                continue;
            }
            let readings = readings(&broken, &schema);
            let score = scores.entry(kind.clone()).or_default();
            let repaired = match &verdict {
                Verdict::Repaired { json, .. } => Some(exact(json)),
                _ => None,
            };
            let (count, what) = match (readings.as_slice(), &repaired) {
                ([one], Some(got)) if one == got => (&mut score.right, "right"),
                ([_], Some(_)) => (&mut score.harmful, "harmful"),
                ([_], None) => (&mut score.missed, "missed"),
                ([], _) => (&mut score.unfound, "unfound"),
                (_, None) => (&mut score.refused_two, "refused"),
                (_, Some(_)) => (&mut score.harmful_two, "harmful of two"),
            };
            *count += 1;
            if !matches!(what, "right" | "refused") {
                let list = shown.entry((kind, what)).or_default();
                if list.len() < 3 {
                    list.push(format!("{broken}\n      -> {repaired:?}"));
                }
            }
        }
    }
    for ((kind, what), texts) in &shown {
        for text in texts {
            println!("{kind}, {what}:\n   {text}");
        }
    }
    let mut all = Score::default();
    for (kind, score) in &scores {
        println!("{kind:14} {score:?}");
        all.right += score.right;
        all.missed += score.missed;
        all.harmful += score.harmful;
        all.refused_two += score.refused_two;
        all.harmful_two += score.harmful_two;
    }
    println!("{all:?}");
    assert_eq!((all.harmful, all.harmful_two), (0, 0), "repairs that are no reading, or one of two");
    let due = all.right + all.missed;
    assert!(all.right * 100 >= due * 97, "{} of {due} repaired", all.right);
}

#[test]
fn two_defects_give_the_original_or_a_refusal() {
    let documents: u64 = number("KOBOSHI_DOCUMENTS", 300);
    let mut dice = Dice(number("KOBOSHI_SEED", 0x9E37_79B9_7F4A_7C15));
    let (mut original, mut third) = (0, Vec::new());
    let mut refusals: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for _ in 0..documents {
        let (value, schema) = document(&mut dice);
        let schema = ToolSchema::parse(&schema.to_string()).unwrap();
        let text = print(&value, &mut dice);
        for _ in 0..20 {
            let all = defects(&text);
            let (one, other) = (&all[dice.roll(all.len())], &all[dice.roll(all.len())]);
            if one.at == other.at {
                continue;
            }
            // The later one first: the place of the other one stays.
            let (first, second) = if one.at < other.at { (one, other) } else { (other, one) };
            let broken = replaced(&replaced(&text, second.at, &second.by), first.at, &first.by);
            match check(&broken, Some(&schema), Finish::Done, &ArgsPolicy::default()) {
                Verdict::Valid => {}
                Verdict::Repaired { json, .. } if exact(&json) == exact(&text) => original += 1,
                Verdict::Repaired { json, .. } => {
                    third.push(format!("{}, {}:\n   {broken}\n   {json}", first.kind, second.kind));
                }
                Verdict::Refused(refusal) => {
                    let reason = refusal.reason.split(':').next().unwrap_or_default();
                    let kind = format!("{} {reason}", refusal.defect);
                    refusals.entry(kind).or_insert((0, broken)).0 += 1;
                }
            }
        }
    }
    for (reason, (count, text)) in &refusals {
        println!("refused {count}: {reason}\n   {text}");
    }
    let refused: usize = refusals.values().map(|(count, _)| count).sum();
    println!("original {original}, refused {refused}, third value {}:\n{}", third.len(), third.join("\n"));
    // Two defects can look like another single one.
    let all = original + refused + third.len();
    assert!(third.len() * 1000 <= all * 3, "{} third values of {all}", third.len());
}

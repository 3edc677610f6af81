//! Valid arguments with one known defect: the original value or a refusal, never a third value.
//!
//! A third value is what runs a tool with arguments that the model did not write. 20,000 cases here; `KOBOSHI_CASES` for more, `KOBOSHI_SEED` for others.
//! A defect that leaves strict JSON behind which satisfies the schema cannot be noticed, and is not counted.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::collections::BTreeMap;

use crate::args_kit::exact;
use koboshi::args::{ArgsPolicy, Finish, ToolSchema, Verdict, check};
use serde_json::{Map, Value, json};

/// A small generator of numbers: the same cases every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % below.max(1)
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }

    fn likely(&mut self) -> bool {
        self.roll(3) > 0
    }
}

/// What strings are made of: everything that looks like structure.
const PIECES: &[&str] = &[
    "a", "word", " ", ", ", ": ", "\"", "'", "\"b\"", "{", "}", "[", "]", "\n", "\\", "\\d+", "\\n",
    "C:\\dir", "it's", "\"key\": ", "\"path\": \"x\"", "日本", "“curly”", "```", "//", "#", "...", "5",
    "true", "null", "\t", "def f():\n    return \"x\"", "echo \"hi\"", "(a, b)", "=", ";", "</parameter>",
    "\u{1}", "`", "«", "。", "$", "He said \"stop\", ", "https://example.com/?a=1&b=2", "_", "<b>",
    "/* c */", "+", "\"\"", "\"\"\"", "-",
];

const KEYS: &[&str] = &["path", "content", "n", "b", "key", "a", "items", "flag", "日", "to"];

fn text(dice: &mut Dice) -> String {
    (0..dice.roll(6)).map(|_| *dice.pick(PIECES)).collect()
}

fn value(dice: &mut Dice, depth: usize) -> Value {
    match dice.roll(if depth == 0 { 7 } else { 9 }) {
        0..=2 => Value::String(text(dice)),
        3 => json!(dice.roll(100_000)),
        4 => json!(-(i64::try_from(dice.roll(1000)).unwrap())),
        5 => json!(dice.roll(2) == 0),
        6 => [json!(1.5), Value::Null, json!(0), json!(1e21)][dice.roll(4)].clone(),
        7 => {
            let all_text = dice.likely();
            let element =
                |dice: &mut Dice| if all_text { Value::String(text(dice)) } else { value(dice, depth - 1) };
            Value::Array((0..dice.roll(4)).map(|_| element(dice)).collect())
        }
        _ => object(dice, depth - 1),
    }
}

fn object(dice: &mut Dice, depth: usize) -> Value {
    (0..=dice.roll(3))
        .map(|_| ((*dice.pick(KEYS)).to_owned(), value(dice, depth)))
        .collect::<Map<_, _>>()
        .into()
}

/// The schema that describes a value, open or closed, all its members declared.
fn schema_of(value: &Value, closed: bool) -> Value {
    match value {
        Value::Null => json!({"type": ["null", "string"]}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(number) if number.is_f64() => json!({"type": "number"}),
        Value::Number(_) => json!({"type": "integer"}),
        Value::String(_) => json!({"type": "string"}),
        Value::Array(elements) => match elements.first() {
            Some(first) if elements.iter().all(|e| schema_of(e, closed) == schema_of(first, closed)) => {
                json!({"type": "array", "items": schema_of(first, closed)})
            }
            _ => json!({"type": "array"}),
        },
        Value::Object(members) => {
            let properties: BTreeMap<_, _> = members.iter().map(|(k, v)| (k, schema_of(v, closed))).collect();
            let required: Vec<_> = members.keys().collect();
            let mut schema = json!({"type": "object", "properties": properties, "required": required});
            if closed {
                schema["additionalProperties"] = json!(false);
            }
            schema
        }
    }
}

fn print(value: &Value, dice: &mut Dice) -> String {
    match dice.roll(3) {
        0 => serde_json::to_string_pretty(value).unwrap(),
        1 => value.to_string(),
        // With a space after colons and commas, as most models write.
        _ => {
            let mut out = String::new();
            let (mut inside, mut escaped) = (false, false);
            for letter in value.to_string().chars() {
                out.push(letter);
                if !inside && matches!(letter, ':' | ',') {
                    out.push(' ');
                }
                if letter == '"' && !escaped {
                    inside = !inside;
                }
                escaped = letter == '\\' && !escaped;
            }
            out
        }
    }
}

/// Byte ranges of the strings, with their quotation marks.
fn strings(json: &str) -> Vec<std::ops::Range<usize>> {
    let (bytes, mut found, mut at) = (json.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        if bytes[at] == b'"' {
            let start = at;
            at += 1;
            while bytes[at] != b'"' {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            found.push(start..at + 1);
        }
        at += 1;
    }
    found
}

/// Places outside strings where one of these letters stands.
fn outside(json: &str, letters: &str) -> Vec<usize> {
    let strings = strings(json);
    let free = |at: &usize| !strings.iter().any(|span| span.contains(at));
    json.char_indices().filter(|(_, c)| letters.contains(*c)).map(|(at, _)| at).filter(free).collect()
}

fn is_key(json: &str, span: &std::ops::Range<usize>) -> bool {
    json[span.end..].trim_start().starts_with(':')
}

/// A string with quotation marks inside. Two at its beginning would read as a triple-quoted string.
fn inner_quotes(json: &str, dice: &mut Dice) -> Option<std::ops::Range<usize>> {
    let body = |span: &std::ops::Range<usize>| json[span.start + 1..span.end - 1].to_owned();
    let fits =
        |span: &std::ops::Range<usize>| body(span).contains("\\\"") && !body(span).starts_with("\\\"\\\"");
    let spans: Vec<_> = strings(json).into_iter().filter(fits).collect();
    (!spans.is_empty()).then(|| dice.pick(&spans).clone())
}

fn replaced(json: &str, span: std::ops::Range<usize>, by: &str) -> String {
    format!("{}{by}{}", &json[..span.start], &json[span.end..])
}

/// Rewrites every string by its body.
fn each_string(json: &str, mut rewrite: impl FnMut(&str, bool) -> String) -> String {
    let mut out = String::new();
    let mut from = 0;
    for span in strings(json) {
        out.push_str(&json[from..span.start]);
        out.push_str(&rewrite(&json[span.start + 1..span.end - 1], is_key(json, &span)));
        from = span.end;
    }
    out + &json[from..]
}

const DEFECTS: &[&str] = &[
    "trailing comma", "lost comma", "doubled comma", "single quotes", "single quotes unescaped", "bare keys",
    "python literals", "lost closer", "cut", "lost quote", "inner quotes", "one inner quote", "raw controls",
    "halved backslashes", "fence", "prose", "think", "glued", "same member twice", "other member twice",
    "encoded", "envelope", "curly quotes", "full width", "comment", "equals", "ellipsis", "odd blanks",
    "surplus closer", "list of one", "numbers as text", "text as numbers", "lost colon", "lost opener",
    "swapped closers", "call", "semicolons", "python repr", "lost value", "tags", "literal line breaks",
    "bare words",
];

/// The text with the defect; none where it cannot have it.
fn break_it(json: &str, value: &Value, defect: &str, dice: &mut Dice) -> Option<String> {
    let spans = strings(json);
    let at = |dice: &mut Dice, letters: &str| -> Option<usize> {
        let places = outside(json, letters);
        (!places.is_empty()).then(|| *dice.pick(&places))
    };
    Some(match defect {
        "trailing comma" => {
            let place = at(dice, "}]")?;
            let before = json[..place].trim_end();
            format!("{before},{}", &json[before.len()..])
        }
        "lost comma" => at(dice, ",").map(|place| replaced(json, place..place + 1, " "))?,
        "doubled comma" => at(dice, ",").map(|place| replaced(json, place..place + 1, ",,"))?,
        "single quotes" => {
            each_string(json, |body, _| format!("'{}'", body.replace("\\\"", "\"").replace('\'', "\\'")))
        }
        "single quotes unescaped" => each_string(json, |body, _| format!("'{}'", body.replace("\\\"", "\""))),
        "bare keys" => {
            each_string(json, |body, key| if key { body.to_owned() } else { format!("\"{body}\"") })
        }
        "python literals" => {
            let words = [("true", "True"), ("false", "False"), ("null", "None")];
            let mut out = String::new();
            let mut from = 0;
            let swap = |piece: &str| words.iter().fold(piece.to_owned(), |p, (a, b)| p.replace(a, b));
            for span in spans {
                out.push_str(&swap(&json[from..span.start]));
                out.push_str(&json[span.clone()]);
                from = span.end;
            }
            out + &swap(&json[from..])
        }
        "lost closer" => at(dice, "}]").map(|place| replaced(json, place..place + 1, ""))?,
        "lost opener" => at(dice, "{[").map(|place| replaced(json, place..place + 1, ""))?,
        "swapped closers" => {
            let place = at(dice, "}]")?;
            let other = if json[place..].starts_with('}') { "]" } else { "}" };
            replaced(json, place..place + 1, other)
        }
        "cut" => json[..json.floor_char_boundary(dice.roll(json.len()))].to_owned(),
        "lost quote" => {
            let span = dice.pick(&spans).clone();
            let place = if dice.roll(2) == 0 { span.start } else { span.end - 1 };
            replaced(json, place..place + 1, "")
        }
        "inner quotes" => {
            let span = inner_quotes(json, dice)?;
            let body = json[span.start + 1..span.end - 1].replace("\\\"", "\"");
            replaced(json, span, &format!("\"{body}\""))
        }
        "one inner quote" => {
            let span = inner_quotes(json, dice)?;
            let body = json[span.start + 1..span.end - 1].replacen("\\\"", "\"", 1);
            replaced(json, span, &format!("\"{body}\""))
        }
        "raw controls" => each_string(json, |body, _| {
            let plain: String = serde_json::from_str(&format!("\"{body}\"")).unwrap();
            format!("\"{}\"", plain.replace('\\', "\\\\").replace('"', "\\\""))
        }),
        "halved backslashes" => {
            let span = dice.pick(&spans).clone();
            let body = &json[span.start + 1..span.end - 1];
            // `\'` has a reading of its own, and a backslash before a quotation mark would lose both.
            if body.contains("\\'") || body.contains("\\\\\\\"") {
                return None;
            }
            replaced(json, span, &format!("\"{}\"", body.replace("\\\\", "\\")))
        }
        "fence" => format!("```json\n{json}\n```"),
        "prose" => format!("Sure, here is the call:\n\n{json}\n\nLet me know if that's fine."),
        "think" => format!("<think>I use {{\"path\": 1}} here.</think>\n{json}"),
        "glued" => format!("{json}{}", object(dice, 1)),
        "same member twice" | "other member twice" => {
            let (key, member) = value.as_object()?.iter().next()?;
            let other = if defect.starts_with("same") { member.clone() } else { json!("something else") };
            let open = json.find('{')? + 1;
            replaced(json, open..open, &format!("{}:{other},", json!(key)))
        }
        "encoded" => json!(json).to_string(),
        "envelope" => format!("{{\"name\": \"f\", \"arguments\": {json}}}"),
        "curly quotes" => each_string(json, |body, _| format!("“{body}”")),
        "full width" => {
            let pairs = [('{', "｛"), ('}', "｝"), (':', "："), (',', "，"), ('[', "［"), (']', "］")];
            let (from, to) = *dice.pick(&pairs);
            let places = outside(json, &from.to_string());
            let mut out = json.to_owned();
            for place in places.into_iter().rev() {
                out.replace_range(place..=place, to);
            }
            out
        }
        "comment" => {
            let note = *dice.pick(&["/* note, \"a\": 1 */", "// note\n", "# note }\n"]);
            at(dice, ",{[").map(|place| replaced(json, place + 1..place + 1, note))?
        }
        "equals" => at(dice, ":").map(|place| replaced(json, place..place + 1, "="))?,
        "semicolons" => at(dice, ",").map(|place| replaced(json, place..place + 1, ";"))?,
        "ellipsis" => at(dice, ",").map(|place| replaced(json, place..place + 1, ", ...,"))?,
        "odd blanks" => {
            let blank = *dice.pick(&["\u{a0}", "\u{feff}", "\u{3000}", "\u{200b}", "\\n", "\u{c}"]);
            at(dice, ":,{[").map(|place| replaced(json, place + 1..place + 1, blank))?
        }
        "literal line breaks" => json.replace('\n', "\\n"),
        "surplus closer" => format!("{json}{}", dice.pick(&["}", "]", "}}", ";"])),
        "list of one" => format!("[{json}]"),
        "numbers as text" => {
            let members = value.as_object()?;
            let texts = members.iter().map(|(key, member)| {
                let text =
                    if member.is_number() { Value::String(member.to_string()) } else { member.clone() };
                (key.clone(), text)
            });
            Value::Object(texts.collect()).to_string()
        }
        "text as numbers" => {
            let members = value.as_object()?;
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let bare =
                members.iter().map(|(key, member)| match member.as_str().filter(|text| digits(text)) {
                    Some(text) => format!("{}: {text}", json!(key)),
                    None => format!("{}: {member}", json!(key)),
                });
            format!("{{{}}}", bare.collect::<Vec<_>>().join(", "))
        }
        "lost colon" => at(dice, ":").map(|place| replaced(json, place..place + 1, " "))?,
        "lost value" => {
            // The last element of an array would leave a trailing comma, which is another defect.
            let member = |span: &&std::ops::Range<usize>| json[..span.start].trim_end().ends_with(':');
            let span = spans.iter().filter(member).max_by_key(|span| span.len())?.clone();
            replaced(json, span, "")
        }
        "call" => {
            let members = value.as_object()?;
            let named = members.iter().map(|(key, member)| format!("{key}={member}"));
            format!("f({})", named.collect::<Vec<_>>().join(", "))
        }
        "python repr" => each_string(json, |body, _| {
            let plain: String = serde_json::from_str(&format!("\"{body}\"")).unwrap();
            let quote = if plain.contains('\'') && !plain.contains('"') { '"' } else { '\'' };
            let plain = plain.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t");
            let plain = plain.replace('\u{1}', "\\x01");
            let plain = if quote == '\'' { plain.replace('\'', "\\'") } else { plain };
            format!("{quote}{plain}{quote}")
        }),
        "tags" => {
            let members = value.as_object()?;
            let tags = members.iter().map(|(key, member)| {
                let text = member.as_str().map_or_else(|| member.to_string(), str::to_owned);
                format!("<parameter={key}>{text}</parameter>")
            });
            format!("<function=f>{}</function>", tags.collect::<String>())
        }
        "bare words" => each_string(json, |body, key| {
            // Text that says `5` or `null` is another value without its quotation marks.
            let literal = serde_json::from_str::<Value>(body).is_ok();
            let wordy = !body.is_empty() && !literal && body.chars().all(char::is_alphanumeric);
            if wordy && !key { body.to_owned() } else { format!("\"{body}\"") }
        }),
        _ => unreachable!("{defect}"),
    })
}

/// Whether the first quotation mark inside some string is followed by structure. Such a string ends there by the label
/// rules, whatever its writer meant: about one of a million cases then reads as something else.
fn ends_early(json: &str) -> bool {
    strings(json).into_iter().any(|span| {
        let first = json[span].split_once("\\\"").map(|(_, rest)| rest.trim_start().to_owned());
        first.is_some_and(|rest| rest.starts_with([',', '}', ']', ';', '\\']))
    })
}

fn seed() -> u64 {
    std::env::var("KOBOSHI_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x9E37_79B9_7F4A_7C15)
}

fn count() -> usize {
    std::env::var("KOBOSHI_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(20_000)
}

#[test]
fn one_defect_gives_the_original_or_a_refusal_and_never_a_third_value() {
    let mut dice = Dice(seed());
    let policy = ArgsPolicy::default();
    let (mut tried, mut same) = (BTreeMap::new(), BTreeMap::new());
    let mut third = Vec::new();
    let (mut done, mut by_rule) = (0, 0);
    while done < count() {
        let value = object(&mut dice, 2);
        let schema = match dice.roll(4) {
            0 => None,
            closed => Some(ToolSchema::compile(&schema_of(&value, closed == 1)).unwrap()),
        };
        let json = print(&value, &mut dice);
        assert_eq!(check(&json, schema.as_ref(), Finish::Unknown, &policy), Verdict::Valid, "{json}");
        let original = exact(&json);
        for defect in DEFECTS {
            let Some(broken) = break_it(&json, &value, defect, &mut dice) else { continue };
            let verdict = check(&broken, schema.as_ref(), Finish::Unknown, &policy);
            if broken == json || verdict == Verdict::Valid {
                continue;
            }
            done += 1;
            *tried.entry(*defect).or_insert(0) += 1;
            match verdict.json(&broken) {
                None => {}
                Some(read) if exact(read) == original => *same.entry(*defect).or_insert(0) += 1,
                Some(_) if defect.contains("inner quote") && ends_early(&json) => by_rule += 1,
                Some(read) => third.push(format!("{defect}\n  {json}\n  {broken}\n  {read}\n  {schema:?}")),
            }
        }
    }
    let table: Vec<_> =
        tried.iter().map(|(d, n)| format!("{d}: {} of {n}", same.get(d).copied().unwrap_or(0))).collect();
    println!("{done} cases, {by_rule} ended early; read as the original:\n{}", table.join("\n"));
    assert!(by_rule <= 1 + done / 100_000, "{by_rule} strings ended early");
    let shown: Vec<_> = third.iter().take(20).cloned().collect();
    assert!(third.is_empty(), "{} third values of {done}:\n{}", third.len(), shown.join("\n"));
    for defect in ["trailing comma", "single quotes", "bare keys", "fence", "raw controls", "python literals"]
    {
        assert!(
            same[defect] * 10 > tried[defect] * 5,
            "{defect} is hardly ever repaired: {}",
            table.join("\n")
        );
    }
}

//! Arguments of tool calls: our `args` beside `jsonrepair-rs`, `llm_json`, `partial-json-fixer`, `jiter` and the `json-repair`
//! of Python.
//!
//! `cargo run --release --manifest-path bench/Cargo.toml --bin repairers`
//!
//! Four tables: speed on a valid and on two broken documents of 10 KB, with the outcome checked; right and harmful
//! answers on the corpus, every peer behind the same gate (an object that satisfies the schema); hostile texts, doubled;
//! and a document fed in small pieces. All stand in one run and take turns, so that a busy machine slows all alike;
//! figures are the best of the rounds. Python takes part if `python3` (or `KOBOSHI_PYTHON`) can import `json_repair`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::type_complexity,
    reason = "a bench"
)]

use std::hint::black_box;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use koboshi::args::{ArgsPolicy, Feed, Finish, ToolSchema, Verdict, check};
use serde_json::{Value, json};

const ROUNDS: usize = 400;

type Repair = fn(&str) -> Option<String>;

fn ours(text: &str) -> Option<String> {
    match check(text, None, Finish::Unknown, &ArgsPolicy::default()) {
        // The text itself is passed on: nothing is made.
        Verdict::Valid => Some(String::new()),
        Verdict::Repaired { json, .. } => Some(json),
        Verdict::Refused(_) => None,
    }
}

fn jsonrepair_rs(text: &str) -> Option<String> {
    jsonrepair_rs::jsonrepair(text).ok()
}

fn llm_json(text: &str) -> Option<String> {
    llm_json::repair_json(text, &llm_json::RepairOptions::default()).ok()
}

fn partial_json_fixer(text: &str) -> Option<String> {
    Some(partial_json_fixer::fix_json(text))
}

/// A strict parser: it says yes or no.
fn jiter(text: &str) -> Option<String> {
    black_box(jiter::JsonValue::parse(text.as_bytes(), false)).ok().map(|_| String::new())
}

const PEERS: &[(&str, Repair)] = &[
    ("koboshi", ours),
    ("jsonrepair-rs", jsonrepair_rs),
    ("llm_json", llm_json),
    ("partial-json-fixer", partial_json_fixer),
    ("jiter (strict)", jiter),
];

/// Like the arguments of a tool that edits files: code, paths, a few numbers.
fn document() -> Value {
    let edits: Vec<Value> = (0..48)
        .map(|n| {
            json!({
                "path": format!("src/module_{n}/reader.rs"),
                "line": n * 37, "column": 4, "replace_all": n % 3 == 0, "note": null,
                "old": format!("let value_{n} = format!(\"{{}}\", input);\n    total += {n};"),
                "new": format!("let value_{n} = input.to_owned(); // 変更 {n}\n    total += {}.5;", n * 2),
                "tags": ["edit", "rust", format!("t{n}")],
            })
        })
        .collect();
    json!({"task": "refactor", "edits": edits})
}

fn python_style(json: &str) -> String {
    let mut out = String::from("```json\n");
    let swap = |piece: &str| piece.replace("true", "True").replace("false", "False").replace("null", "None");
    let bytes = json.as_bytes();
    let (mut at, mut from) = (0, 0);
    while at < bytes.len() {
        if bytes[at] == b'"' {
            let start = at;
            at += 1;
            while bytes[at] != b'"' {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            out.push_str(&swap(&json[from..start]).replace(']', ",]"));
            let key = json[at + 1..].trim_start().starts_with(':');
            out.push_str(if key { &json[start + 1..at] } else { &json[start..=at] });
            from = at + 1;
        }
        at += 1;
    }
    out + &swap(&json[from..]) + "\n```"
}

fn best_of(mut work: impl FnMut()) -> Duration {
    (0..ROUNDS).map(|_| time(&mut work)).min().unwrap()
}

fn time(work: &mut impl FnMut()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn speeds() {
    let value = document();
    let valid = serde_json::to_string(&value).unwrap().replace("\":", "\": ").replace(",\"", ", \"");
    let value: Value = serde_json::from_str(&valid).unwrap();
    let comma = format!("{},}}", &valid[..valid.len() - 1]);
    let documents =
        [("valid", valid.clone()), ("one comma", comma), ("fence, python, commas", python_style(&valid))];
    println!("speed, documents of {} bytes, MB/s", valid.len());
    for (name, text) in &documents {
        let mut best = vec![Duration::MAX; PEERS.len()];
        for _ in 0..ROUNDS {
            for ((_, repair), best) in PEERS.iter().zip(&mut best) {
                *best = (*best).min(time(&mut || drop(black_box(repair(black_box(text))))));
            }
        }
        for ((peer, repair), best) in PEERS.iter().zip(best) {
            let outcome = match repair(text) {
                None => "refused",
                Some(json) if json.is_empty() => "accepted",
                Some(json) if serde_json::from_str::<Value>(&json).ok().as_ref() == Some(&value) => "right",
                Some(_) => "WRONG",
            };
            println!("  {name:24}{peer:22}{:7.0}  {outcome}", text.len() as f64 / best.as_secs_f64() / 1e6);
        }
        python_speed(name, text, &value);
    }
}

/// Times `json_repair.repair_json` inside Python, so that its start does not count.
const SCRIPT: &str = "
import sys, time, json
try:
    import json_repair
except ImportError:
    sys.exit(3)
text = sys.stdin.read()
best = 1e9
for _ in range(15):
    start = time.perf_counter()
    out = json_repair.repair_json(text)
    best = min(best, time.perf_counter() - start)
print(best)
print(out)
";

fn python(script: &str, input: &str) -> Option<String> {
    let program = std::env::var("KOBOSHI_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut command = Command::new(program);
    command.args(["-c", script]).env("PYTHONIOENCODING", "utf-8");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let mut stdin = child.stdin.take()?;
    stdin.write_all(input.as_bytes()).ok()?;
    drop(stdin);
    let output = child.wait_with_output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).ok()).flatten()
}

fn python_speed(name: &str, text: &str, value: &Value) {
    let Some(output) = python(SCRIPT, text) else {
        println!("  {name:24}{:22}      –  not installed", "json-repair (Python)");
        return;
    };
    let (seconds, json) = output.split_once('\n').unwrap();
    let right = serde_json::from_str::<Value>(json).ok().as_ref() == Some(value);
    let speed = text.len() as f64 / seconds.parse::<f64>().unwrap() / 1e6;
    println!(
        "  {name:24}{:22}{speed:7.1}  {}",
        "json-repair (Python)",
        if right { "right" } else { "WRONG" }
    );
}

struct Case {
    input: String,
    schema: Option<ToolSchema>,
    outcome: String,
    value: Value,
}

fn corpus() -> Vec<Case> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../corpus/tool-args.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| {
            let case: Value = serde_json::from_str(line).unwrap();
            let schema = &case["schema"];
            Case {
                input: case["input"].as_str().unwrap().to_owned(),
                schema: (!schema.is_null()).then(|| ToolSchema::compile(schema).unwrap()),
                outcome: case["expect"]["outcome"].as_str().unwrap().to_owned(),
                value: case["expect"]["value"].clone(),
            }
        })
        .collect()
}

/// Numbers by value: `5` and `5.0` are one number.
fn alike(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| alike(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, left)| right.get(key).is_some_and(|right| alike(left, right)))
        }
        _ => left == right,
    }
}

fn accuracy() {
    let cases = corpus();
    println!("\ncorpus, {} cases", cases.len());
    let score = |name: &str, answers: Vec<Option<Value>>| {
        let (mut right, mut harmful) = (0, 0);
        for (case, answer) in cases.iter().zip(answers) {
            match (case.outcome == "refuse", answer) {
                (true, None) => right += 1,
                (false, Some(value)) if alike(&value, &case.value) => right += 1,
                (false, None) => {}
                _ => harmful += 1,
            }
        }
        let share = f64::from(right) * 100.0 / cases.len() as f64;
        println!("  {name:22} right {right:4} ({share:5.1} %)  harmful {harmful:3}");
    };
    let gated = |case: &Case, json: Option<String>| {
        let value = json.and_then(|json| serde_json::from_str::<Value>(&json).ok()).filter(Value::is_object);
        value.filter(|value| case.schema.as_ref().is_none_or(|schema| schema.is_satisfied_by(value)))
    };
    let own = cases.iter().map(|case| {
        let verdict = check(&case.input, case.schema.as_ref(), Finish::Unknown, &ArgsPolicy::default());
        verdict.json(&case.input).and_then(|json| serde_json::from_str(json).ok())
    });
    score("koboshi", own.collect());
    // The depth floods abort the process in some peers: none of them gets more than 2,000 bytes.
    let short = |case: &Case| case.input.len() < 2000;
    for (name, repair) in &PEERS[1..] {
        let answers = cases.iter().map(|case| {
            let json = if *name == "jiter (strict)" {
                jiter(&case.input).map(|_| case.input.clone())
            } else {
                let input = case.input.clone();
                let repair = *repair;
                let quiet = std::panic::catch_unwind(move || repair(&input));
                short(case).then(|| quiet.ok().flatten()).flatten()
            };
            gated(case, json)
        });
        score(name, answers.collect());
    }
    let inputs: Vec<&str> =
        cases.iter().map(|case| if short(case) { case.input.as_str() } else { "" }).collect();
    let script = "
import sys, json, json_repair
for line in json.load(sys.stdin):
    try: print(json.dumps(json.dumps(json_repair.loads(line))))
    except Exception: print('null')
";
    if let Some(output) = python(script, &json!(inputs).to_string()) {
        let lines = output.lines().map(|line| serde_json::from_str::<Option<String>>(line).ok().flatten());
        score(
            "json-repair (Python)",
            cases.iter().zip(lines).map(|(case, json)| gated(case, json)).collect(),
        );
    }
}

fn hostile() {
    let shapes: &[(&str, fn(usize) -> String)] = &[
        ("[", |size| "[".repeat(size)),
        ("{", |size| "{".repeat(size)),
        ("\"", |size| "\"".repeat(size)),
        ("{\"a\":", |size| "{\"a\":".repeat(size / 5)),
        ("backslashes", |size| "\\".repeat(size)),
        ("backslashes in a string", |size| format!("{{\"a\": \"{}\"}}", "\\".repeat(size & !1))),
        ("odd backslashes", |size| format!("{{\"a\": \"{}\"}}", "\\".repeat(size | 1))),
        ("inner quotes", |size| format!("{{\"a\": \"{}\"}}", "x\"".repeat(size / 2))),
        ("inner quotes, commas", |size| format!("{{\"a\": \"x {}\"}}", "\"y\", ".repeat(size / 5))),
        ("inner quotes, members", |size| format!("{{\"a\": \"x \"y{}\"}}", "\", \"b\": \"".repeat(size / 9))),
        ("inner quotes, ends", |size| format!("{{\"a\": \"x {}\"}}", "\"} ".repeat(size / 3))),
        ("inner quotes, elements", |size| format!("{{\"a\": [\"x \"y{}\"]}}", "\", \"".repeat(size / 4))),
        ("many dirty strings", |size| format!("{{{}}}", "\"k\": \"x \"y\" z\", ".repeat(size / 17))),
        ("{}{}", |size| "{}".repeat(size / 2)),
        ("a:a:", |size| "a:a:".repeat(size / 4)),
        ("quotes before comments", |size| format!("{{\"a\": \"x{}", "\" // ".repeat(size / 5))),
        ("comments", |size| format!("{{{}\"a\":1}}", "/**/".repeat(size / 4))),
        ("curly ends", |size| format!("{{\"a\": \"x{}", "\" ”, ".repeat(size / 7))),
        ("triple quotes", |size| format!("{{\"a\": '''{}", "''' ".repeat(size / 4))),
        ("tags", |size| "<parameter=a>".repeat(size / 13)),
        ("<", |size| "<".repeat(size)),
        ("<think>", |size| "<think>".repeat(size / 7)),
        ("prose and quotes", |size| "word \"x\" ".repeat(size / 9)),
        ("keys", |size| {
            format!("{{{}}}", (0..size / 10).map(|n| format!("\"k{n:05}\":1")).collect::<Vec<_>>().join(","))
        }),
        ("one key", |size| format!("{{{}}}", "\"k\":1,".repeat(size / 6))),
        ("calls", |size| "f(a=".repeat(size / 4)),
        ("wide blanks", |size| format!("{{{}", "\u{3000}".repeat(size / 3))),
    ];
    let schema =
        ToolSchema::parse(r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}"#)
            .unwrap();
    println!("\nhostile texts, ms (ratio of the doubled text)");
    for (name, shape) in shapes {
        print!("  {name:26}");
        for size in [100_000, 1_000_000] {
            let once = shape(size);
            let twice = shape(2 * size);
            let run = |text: &str| {
                let judge = |schema| {
                    drop(black_box(check(black_box(text), schema, Finish::Unknown, &ArgsPolicy::default())))
                };
                time(&mut || {
                    judge(None);
                    judge(Some(&schema));
                })
            };
            // In turns, so that a busy moment slows both.
            let (mut one, mut two) = (Duration::MAX, Duration::MAX);
            for _ in 0..25 {
                one = one.min(run(&once));
                two = two.min(run(&twice));
            }
            let ratio = two.as_secs_f64() / one.as_secs_f64();
            print!("{:5} KB {:8.3} ({ratio:4.2})", size / 1000, one.as_secs_f64() * 1e3);
        }
        println!();
    }
}

fn pieces() {
    let line = "A line of text with \"quotes\" and 日本語.\n";
    let text = &json!({"path": "a.txt", "content": line.repeat(100_000 / (line.len() + 3))}).to_string();
    let policy = ArgsPolicy::default();
    let feed = |size: usize| {
        best_of(|| {
            let mut feed = Feed::new(policy);
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(rest.ceil_char_boundary(size.min(rest.len())));
                feed.push(piece);
                rest = after;
            }
            assert_eq!(black_box(feed.finish(None, Finish::Done)), Verdict::Valid);
        })
    };
    let (whole, small) = (feed(text.len()), feed(20));
    println!(
        "\n100 KB fed whole {:.3} ms, in pieces of 20 bytes {:.3} ms ({:.2} times)",
        whole.as_secs_f64() * 1e3,
        small.as_secs_f64() * 1e3,
        small.as_secs_f64() / whole.as_secs_f64()
    );
}

fn main() {
    speeds();
    accuracy();
    hostile();
    pieces();
}

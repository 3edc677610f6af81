//! The strict layer accepts and refuses exactly as RFC 8259 demands.
//!
//! Written as lists: what every reader of JSON must accept, what it must refuse, and what is left to it (which must
//! only be survived). Bytes that are no UTF-8 cannot be asked about: the arguments are a `&str`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use koboshi::args::{ArgsPolicy, Defect, Finish, Verdict, check};
use proptest::collection::vec;
use proptest::prelude::*;

/// Whether the text is JSON. Arguments must also be an object with each key once, which other defects tell.
fn is_json(text: &str) -> bool {
    match check(text, None, Finish::Unknown, &ArgsPolicy::strict()) {
        Verdict::Valid => true,
        Verdict::Repaired { .. } => panic!("repaired without being allowed to: {text:?}"),
        Verdict::Refused(refusal) => matches!(refusal.defect, Defect::NotAnObject | Defect::DuplicateKey),
    }
}

/// Values that must be accepted, alone, in an array, and as a member.
const VALUES: &[&str] = &[
    // Literals
    "true",
    "false",
    "null",
    // Numbers
    "0",
    "-0",
    "1",
    "-1",
    "10",
    "123456789",
    "-123456789012345678901234567890",
    "0.1",
    "-0.1",
    "10.01",
    "0e1",
    "0E1",
    "0e+1",
    "0e-1",
    "1e0",
    "1E22",
    "1e-2",
    "1E-2",
    "1e+2",
    "1E+2",
    "123.456e78",
    "123.456E-78",
    "20e1",
    "123e45",
    "-0.000000000000000000000000000000000000000000000000000000000000000000000000001",
    "1e400",
    "-1e999999999",
    "0.4e006699999999999999999999999999999999999999999999999999999999999999999999999999",
    "1.000000000000000005",
    // Strings
    r#""""#,
    r#"" ""#,
    r#""a""#,
    r#""asd ""#,
    r#""\"""#,
    r#""\\""#,
    r#""\/""#,
    r#""\b\f\n\r\t""#,
    r#""\\a""#,
    r#""\\n""#,
    r#""\u0012""#,
    r#""\u0060\u012a\u12AB""#,
    r#""\uD801\udc37""#,
    r#""\ud83d\ude39\ud83d\udc8d""#,
    r#""\uDBFF\uDFFF""#,
    r#""\uFFFF""#,
    r#""\uFDD0""#,
    r#""\u0000""#,
    r#""\u002c""#,
    r#""\u0022""#,
    r#""\u005C""#,
    r#""\u200B\u2064""#,
    r#""\uA66D""#,
    r#""new\u00A0line""#,
    r#""a/*b*/c/*d//e""#,
    r#""π""#,
    "\"\u{1bfff}\"",
    "\"\u{10ffff}\"",
    "\"\u{2028}\"",
    "\"\u{2029}\"",
    "\"\u{7f}\"",
    "\"\u{ffff}\"",
    "\"\u{feff}\"",
    "\"⍂㈴⍂\"",
    "\"日本語\"",
    r#""[\"a\",{}]""#,
    r#""\u0061\u30af\u30EA\u30b9""#,
    "\"\u{80}\"",
    // Arrays and objects
    "[]",
    "[ ]",
    "[1]",
    "[1 ]",
    "[ 1]",
    "[1,2]",
    "[1 , 2]",
    "[[]   ]",
    "[\"\"]",
    "[\"a\"]",
    "[null, 1, \"1\", {}]",
    "[1,null,null,null,2]",
    "[1\n]",
    "[\n1\r\n,\t2 ]",
    "[[[[[]]]]]",
    "[[],[],{}]",
    "[true,false]",
    "{}",
    "{ }",
    "{\"\":0}",
    "{\"a\":\"b\"}",
    "{\"a\":{}}",
    "{\"a\":[]}",
    "{\"a\":1,\"b\":2}",
    "{\"a\\u0000b\":0}",
    "{ \"min\": -1.0e+28, \"max\": 1.0e+28 }",
    "{\"title\":\"\\u041f\\u043e\"}",
    "{\n\"a\": \"b\"\n}",
    "{\"x\":[{\"id\": \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}], \"id\": \"xxxx\"}",
    "{\"a\":\t1\r}",
];

#[test]
fn what_must_be_accepted_is_accepted() {
    for value in VALUES {
        for text in [
            (*value).to_owned(),
            format!(" {value}"),
            format!("{value}\n"),
            format!("\t\r\n {value} \t"),
            format!("[{value}]"),
            format!("[{value},{value}]"),
            format!("{{\"k\":{value}}}"),
            format!("{{\"k\" : {value} , \"l\":[{value}]}}"),
        ] {
            assert!(is_json(&text), "{text:?}");
        }
    }
}

#[test]
fn a_key_that_comes_twice_is_json_and_yet_no_argument() {
    for text in [
        r#"{"a":1,"a":2}"#, r#"{"a":"b","a":"b"}"#, r#"{"a":1,"\u0061":2}"#, r#"{"x":{"b":1,"c":2,"b":1}}"#,
        r#"[{"a":1,"a":1}]"#, r#"{"":1,"":2}"#, r#"{"é":1,"\u00e9":1}"#,
        r#"{"a":{"k":1},"b":[{"k":1},{"k":1,"j":{},"k":2}]}"#,
    ] {
        let verdict = check(text, None, Finish::Unknown, &ArgsPolicy::strict());
        assert_eq!(verdict.refusal().map(|refusal| refusal.defect), Some(Defect::DuplicateKey), "{text}");
    }
    let many: Vec<String> = (0..40).map(|n| format!("\"key{n}\":{n}")).collect();
    assert_eq!(
        check(&format!("{{{}}}", many.join(",")), None, Finish::Unknown, &ArgsPolicy::strict()),
        Verdict::Valid
    );
    let twice = format!("{{{},\"key17\":0}}", many.join(","));
    let verdict = check(&twice, None, Finish::Unknown, &ArgsPolicy::strict());
    let refusal = verdict.refusal().unwrap();
    assert_eq!(
        (refusal.defect, refusal.position.byte),
        (Defect::DuplicateKey, twice.rfind("key17").unwrap())
    );
    // The same key in different objects is no such thing.
    let apart = r#"{"a":{"a":{"a":[{"a":1},{"a":2}]}},"b":{"a":1}}"#;
    assert_eq!(check(apart, None, Finish::Unknown, &ArgsPolicy::strict()), Verdict::Valid);
}

/// Texts that no reader of JSON may accept.
const NEVER: &[&str] = &[
    // Nothing, white space that is none, marks
    "", " ", "\n", "\u{feff}", "\u{feff}{}", "{}\u{feff}", "\u{2060}", "[\u{2060}]", "[\u{a0}]", "\u{c}[]",
    "[\u{c}]", "[\u{b}1]", "\u{85}[]", "\u{2028}[]", "[]\u{0}", "\u{0}", "[\u{0}]", "{\u{3000}}", "å", "é",
    "⍂", "*", "_", "<.>", "[<null>]", // Literals
    "nul", "tru", "fals", "True", "TRUE", "False", "None", "NULL", "Null", "nulll", "truefalse", "true1",
    "[nul]", "[tru]", "[fals]", "[True]", "undefined", "NaN", "-NaN", "[NaN]", "[nan]", "Infinity",
    "-Infinity", "+Infinity", "[Inf]", "[-inf]", "yes", "a", "[a", "[a]", "[a:b]", "[x, y]", "{a}", "t", "n",
    "f", // Numbers
    "+1", "++1234", "+Inf", "-", "--1", "-a", "-foo", "- 1", "01", "00", "-01", "-012", "012", "0123.5",
    "0x1", "0x42", "1a", "1_000", "1 000", "1,000.", ".1", ".-1", "-.1", ".2e-3", "1.", "-1.", "-2.", "2.e3",
    "2.e+3", "2.e-3", "0.e1", "0.3e", "0.3e+", "0e", "0e+", "0E", "0E+", "1e", "1e+", "1e-", "1eE2", "1.0e",
    "1.0e+", "1.0e-", "9.e+", "1ea", "1e1e1", "1e1.5", "1.2.3", "1..2", "1+2", "-1x",
    "1.8011670033376514H-308", "1.2a-3", "0.1.2", "1e٣", "１", "[１]", "0b1", "0o7", "1f", "1L", "1n", "1.e",
    "$1", "1%", "1/2", "+0", "-+1", // Strings
    "\"", "\"a", "[\"a", "[\"", "[\"a\"", "\"\\\"", "[\"\\\"]", "\"\\", "\"a\\", "\"\\u\"", "\"\\u1\"",
    "\"\\u12\"", "\"\\u123\"", "\"\\u123g\"", "\"\\u00A\"", "\"\\uqqqq\"", "\"\\uD834\\\"", "\"\\uD800\\u\"",
    "\"\\uD800\\u1\"", "\"\\uD800\\u1x\"", "\"\\x00\"", "\"\\x41\"", "\"\\a\"", "\"\\'\"", "\"\\v\"",
    "\"\\0\"", "\"\\e\"", "\"\\ \"", "\"\\\n\"", "\"\\é\"", "\"\\\u{1f300}\"", "\"\\U00000041\"", "\"\\U\"",
    "\"\\n", "\"\\u", "\"\n\"", "\"\t\"", "\"\r\"", "\"a\u{0}a\"", "\"\u{1f}\"", "\"\u{1}\"",
    "\"new\nline\"", "'a'", "'single quote'", "['a']", "`a`", "“a”", "\"a\"b\"", "\"\"x", "\"a\" \"b\"",
    "\\u0020\"asd\"", "\\n", "\"\"\"a\"\"\"", "r\"a\"", "abc", "asd\"", "[\\n]", "[é]", // Arrays
    "[", "]", "[]]", "[[]", "[}", "[1}", "[1", "[1,", "[,", "[,]", "[,1]", "[1,]", "[\"\",]", "[1,,]",
    "[1,,2]", "[,,]", "[,\"\"]", "[\"x\",,]", "[\"x\"]]", "[1 2]", "[1 true]", "[\"a\" \"b\"]", "[3[4]]",
    "[1:2]", "[\"a\":1]", "[1;2]", "[-", "[ , \"\"]", "[\n1\n,1", "[1,\n1\n,1", "[{}", "[{", "[{]", "[[[]",
    "[1]x", "[1],", "[],", "[1][2]", "[]#", "[1]//", "[]/*c*/", "[/*c*/]", "[...]", "[1, ...]", "[*]",
    "[1,\u{a0}2]", "(1)", "[(1,2)]", "[\"\u{0}", "[\"a\u{0}", // Objects
    "{", "}", "{]", "{}}", "{{}", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\"}", "{\"a\":}",
    "{\"a\" 1}", "{\"a\",1}", "{\"a\":1,}", "{,}", "{,\"a\":1}", "{\"a\":1,,}", "{\"a\":1,,\"b\":2}",
    "{\"a\":1 \"b\":2}", "{\"a\":1;\"b\":2}", "{\"a\":1:2}", "{\"a\"::1}", "{:1}", "{:\"b\"}", "{1:1}",
    "{9999E9999:1}", "{a:1}", "{a: \"b\"}", "{'a':1}", "{'a':'b'}", "{null:null,null:null}", "{true:1}",
    "{[1]:1}", "{{}:1}", "{\"a\":b}", "{\"a\":'b'}", "{\"a\":\"b\"", "{\"a\":\"a", "{\"a\":\"a\" 123}",
    "{\"a\": true} \"x\"", "{\"a\":\"b\"}#", "{\"a\":\"b\"}#{}", "{\"a\":\"b\"}/**/", "{\"a\":\"b\"}/**//",
    "{\"a\":\"b\"}//", "{\"a\":\"b\"}/", "{\"a\":/*comment*/\"b\"}", "{/**/}", "{}{}", "{} {}", "{},{}",
    "{},", "{};", "{}}", "{\"a\":[}", "{\"a\":1]", "{\"a\":[1}", "[{\"a\":1]}", "{\"a\"=1}", "{\"a\"=>1}",
    "{\"a\": 1 // c\n}", "{\"a\":\u{a0}1}", "{é}", "{\"é\":é}", "{🇨🇭}", "{\"x\", null}", "{\"x\"::\"b\"}",
    "{key: 'value'}", "{\"id\":0,}", "{\"id\":0,,,,,}", "{'a':0}", "{\"a\":\"b\",,\"c\":\"d\"}", "{\"a\" b}",
    "{\"a\":(1)}", "{\"a\":.}", "{\"a\":...}", "{...}", "```{}```", "```json\n{}\n```", "json {}", "{} ok",
    "f(a=1)", "<tool_call>{}</tool_call>", "{\\\"a\\\":1}", "{\"a\":{\"b\":1}", "{\"a\":[{\"b\":1}]",
    "{\\n\"a\":1}",
];

#[test]
fn what_must_be_refused_is_refused() {
    for text in NEVER {
        assert!(!is_json(text), "{text:?}");
        // A broken value breaks whatever holds it; some texts become another thing inside brackets.
        let opens =
            text.contains(['[', ']', '{', '}', '"', ',', ':']) || text.trim_matches([' ', '\n']).is_empty();
        if !opens {
            assert!(!is_json(&format!("[{text}]")), "[{text:?}]");
            assert!(!is_json(&format!("{{\"k\":{text}}}")), "{text:?} as a member");
        }
    }
}

/// Every beginning of a valid text is cut, and said to be so.
#[test]
fn every_beginning_is_refused() {
    let text = r#"{"key": ["a\n\u00e9\ud83d\ude39", -1.5e+10, true, false, null, {}, []], "k2": {"x": ""}}"#;
    assert!(is_json(text));
    for end in 0..text.len() {
        assert!(!is_json(&text[..end]), "{}", &text[..end]);
    }
}

#[test]
fn every_control_character_must_be_escaped_and_no_other() {
    for code in 0..=0x10_ffff_u32 {
        let Some(letter) = char::from_u32(code) else { continue };
        if code > 0x3000 && code % 251 != 0 {
            continue;
        }
        let plain = code >= 0x20 && letter != '"' && letter != '\\';
        assert_eq!(is_json(&format!("\"{letter}\"")), plain, "{code:x}");
        let escape = "\"\\/bfnrt".contains(letter);
        assert_eq!(is_json(&format!("\"\\{letter}\"")), escape, "\\ and {code:x}");
        let blank = " \n\r\t".contains(letter);
        assert_eq!(
            is_json(&format!("[1,{letter}2]")),
            blank || ('1'..='9').contains(&letter) || letter == '-',
            "{code:x}"
        );
    }
}

#[test]
fn the_depth_is_bounded_and_the_bound_is_exact() {
    let policy = ArgsPolicy::strict();
    let nested = |depth: usize| format!("{}{}{}", "{\"a\":".repeat(depth), 1, "}".repeat(depth));
    assert_eq!(check(&nested(128), None, Finish::Unknown, &policy), Verdict::Valid);
    for depth in [129, 500, 100_000] {
        let verdict = check(&nested(depth), None, Finish::Unknown, &policy);
        assert_eq!(verdict.refusal().map(|refusal| refusal.defect), Some(Defect::TooDeep));
        let repaired = check(&nested(depth), None, Finish::Unknown, &ArgsPolicy::default());
        assert_eq!(repaired.refusal().map(|refusal| refusal.defect), Some(Defect::TooDeep));
    }
}

/// What RFC 8259 leaves to the reader must only be survived; what we decided is listed here.
#[test]
fn what_is_left_to_us_is_survived_and_decided() {
    // No text holds half a surrogate pair.
    for text in [
        r#""\ud800""#, r#""\udc00""#, r#""\uD888\u1234""#, r#""\ud800\ud800""#, r#""\uDd1e\uD834""#,
        r#""\uD800\n""#, r#""\uDADA""#, r#""\uDFAA""#, r#""\ud800abc""#, r#""\uD8""#,
    ] {
        assert!(!is_json(text), "{text}");
    }
    // Numbers are text to us: none is too large or too small.
    for text in
        ["1e9999", "-1e9999", "1e-9999", "123456789012345678901234567890", "0.0000000000000000000001e-400"]
    {
        assert!(is_json(text), "{text}");
    }
    assert!(is_json(&format!("[{}]", "9".repeat(100_000))));
    for depth in [500, 100_000] {
        assert!(
            !is_json(&"[".repeat(depth)) && !is_json(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)))
        );
        assert!(!is_json(&"[{\"\":".repeat(depth)));
    }
}

/// Compared with the most widely used library, on texts that are nearly JSON.
#[test]
fn another_strict_reader_says_the_same() {
    const PIECES: &[&str] = &[
        "{", "}", "[", "]", ":", ",", "\"", "\"a\"", "\"b\":", "\"\\", "\\u00e9", "\\ud83d\\ude39", "\\n",
        "\\x", "0", "-", "1", ".5", "e+3", "E", "true", "false", "null", "nul", " ", "\n", "\t", "\u{b}",
        "あ", "\u{1}", "/", "'", "+", "{\"k\":1}", "[1,2]", "{\"a\":[],\"b\":{}}", "00", "12.50e-1",
    ];
    let config = ProptestConfig { cases: 30_000, failure_persistence: None, ..ProptestConfig::default() };
    let wordy = vec(prop::sample::select(PIECES), 0..10).prop_map(|pieces| pieces.concat());
    let sound = prop::sample::select(vec![
        r#"{"a": [1, -2.5e3, true, null], "b\n": {"c": "é\u00e9"}, "d": []}"#,
        r#"[{"x": "\\\"/"}, {"y": [[], {}]}, "text", 0.1]"#,
    ]);
    let edited = (sound, any::<usize>(), 0..3_usize, prop::sample::select(PIECES)).prop_map(
        |(text, at, length, piece)| {
            let from = text.floor_char_boundary(at % (text.len() + 1));
            let to = text.ceil_char_boundary((from + length).min(text.len()));
            format!("{}{piece}{}", &text[..from], &text[to..])
        },
    );
    proptest!(config, |(text in prop_oneof![wordy, edited])| {
        let theirs = match serde_json::from_str::<serde_json::Value>(&text) {
            Ok(_) => true,
            // They make floats of numbers, and stop at the first that is too large; we keep the text.
            Err(error) if error.to_string().starts_with("number out of range") => return Ok(()),
            Err(_) => false,
        };
        prop_assert_eq!(is_json(&text), theirs, "{:?}", text);
    });
}

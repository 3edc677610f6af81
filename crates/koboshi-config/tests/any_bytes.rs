//! Whatever the file holds: a config that the core accepts, or problems with their places. Never a panic.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use std::path::Path;

use koboshi_config::load;
use proptest::prelude::*;

const EXAMPLE: &str = include_str!("../../../examples/koboshi.yaml");

/// What people and editors put into files by mistake, and what parsers stumble over.
const PIECES: &[&str] = &[
    "\t", "\n", ": ", "- ", "\"", "'", "{", "}", "[", "]", "#", "&a ", "*a", "!!int ", "!x ", "|", ">-\n",
    "---\n", "...\n", "? ", "<<: *a\n", "%YAML 1.2\n", "\u{feff}", "\0", "\u{85}", "\u{2028}", "日本", "${",
    "${X}", "${X:-", "$${", "off", "~", ".inf", ".nan", "1e999", "-1", "99999999999999999999", "0x10",
    "1_000", "30", "1h", "9999999d", "true", "store:\n  redis: ", "breaker", "rules: [a]\n", "\r\n", "\r",
    "  ", "@", "`", "hunter2", "providers:\n  a: {kind: openai, keys: [", "routes: {'*': [sim/ok]}\n",
    "sim/{model}", "guard: {tools: {", "keys: {a: {sha256: ", "serve: {listen: 0.0.0.0:1}\n", "x/", "off}",
];

/// Entries under names of the user's choice.
const ENTRIES: &str = include_str!("../../../examples/mira.yaml");

/// Secrets beside other keys.
const SECRETS: &str = "providers:\n  a: {kind: openai, keys: [hunter2, \"${X}\"]}\nadmin:\n  sha256: 'hunter2'\nstore:\n  redis: hunter2\n";

fn holds(text: &str) -> Result<(), TestCaseError> {
    match load("folder/koboshi.yaml", text, &|name| (name == "X").then(|| "value".to_owned())) {
        Ok(config) => {
            prop_assert!(config.remedy.backoff.validate().is_ok());
            prop_assert!(config.breaker.validate().is_ok());
            prop_assert!(config.gate.validate().is_ok());
            prop_assert!(config.cooldown.validate().is_ok());
            prop_assert!(config.guard.policy.validate().is_ok());
            prop_assert!(config.serve.is_loopback() || !config.keys.is_empty());
            prop_assert!(config.routes.values().all(|route| (1..=16).contains(&route.chain.len())));
            let differences = koboshi_config::schema::differences(&config);
            // What stands in a key that is no secret is shown, whatever it is called.
            let is_secret = |path: &str| [".redis", ".keys", ".sha256"].iter().any(|end| path.ends_with(end));
            for one in differences.iter().filter(|one| is_secret(&one.path)) {
                prop_assert!(!format!("{one:?}").contains("hunter2"), "{one:?}");
            }
            prop_assert!(
                config.rules.iter().all(|path| path.is_absolute() || path.starts_with(Path::new("folder")))
            );
        }
        Err(problems) => {
            prop_assert!(problems.count() > 0 && !problems.is_unreadable());
            for problem in &problems {
                prop_assert!(!problem.message.is_empty());
                let place = problem.place;
                prop_assert!(
                    place.is_some_and(|place| place.line >= 1 && place.column >= 1),
                    "{problem} in {text:?}"
                );
            }
            let said = problems.to_string();
            // A secret that the file holds is shown by no problem of whatever else, as long as it is in its place.
            if text == SECRETS || text.starts_with(SECRETS) {
                prop_assert!(!said.contains("hunter2"), "{said}");
            }
            prop_assert!(!said.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{said:?}");
        }
    }
    Ok(())
}

/// The start of a character near a place of the text.
fn near(text: &str, place: usize) -> usize {
    text.floor_char_boundary(place % (text.len() + 1))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        holds(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn any_pieces(pieces in proptest::collection::vec(0..PIECES.len(), 0..40)) {
        holds(&pieces.into_iter().map(|piece| PIECES[piece]).collect::<String>())?;
    }

    #[test]
    fn any_edit_of_the_example(edits in proptest::collection::vec((any::<usize>(), 0_usize..40, 0..PIECES.len()), 1..5)) {
        let mut text = EXAMPLE.to_owned();
        for (place, length, piece) in edits {
            let start = near(&text, place);
            let end = text.floor_char_boundary((start + length).min(text.len()));
            text.replace_range(start..end, PIECES[piece]);
        }
        holds(&text)?;
    }

    #[test]
    fn any_pieces_after_secrets(pieces in proptest::collection::vec(0..PIECES.len(), 0..10)) {
        let rest = pieces.into_iter().map(|piece| PIECES[piece]).filter(|piece| *piece != "hunter2");
        holds(&format!("{SECRETS}{}", rest.collect::<String>()))?;
    }

    #[test]
    fn any_edit_of_entries(edits in proptest::collection::vec((any::<usize>(), 0_usize..20, 0..PIECES.len()), 1..5)) {
        let mut text = ENTRIES.replace("GEMINI_API_KEY", "X").replace("OPENAI_API_KEY", "X");
        for (place, length, piece) in edits {
            let start = near(&text, place);
            let end = text.floor_char_boundary((start + length).min(text.len()));
            text.replace_range(start..end, PIECES[piece]);
        }
        holds(&text)?;
    }

    #[test]
    fn any_value_of_any_key(key in 0..koboshi_config::schema::KEYS.len(), piece in 0..PIECES.len()) {
        let path = koboshi_config::schema::KEYS[key].path;
        let path = path.replace('*', if path.starts_with("models") { "n/n" } else { "n" });
        let (open, close) = (path.replace('.', ": {"), "}".repeat(path.matches('.').count()));
        holds(&format!("{open}: {}{close}", PIECES[piece]))?;
    }
}

/// The same for the ends of the example: what an editor leaves that is interrupted.
#[test]
fn every_beginning_of_the_example() {
    for end in (0..EXAMPLE.len()).step_by(7) {
        holds(&EXAMPLE[..EXAMPLE.floor_char_boundary(end)]).unwrap();
    }
}

//! Whatever LiteLLM's file holds: a config that can be used, or a refusal. Never a panic, never a key of the file.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use koboshi_config::config::Language;
use koboshi_config::litellm::translate;
use koboshi_config::load::{Environment, load_located};
use proptest::prelude::*;

const FILES: &[&str] = &[
    include_str!("../../koboshi-cli/tests/litellm/team.yaml"),
    include_str!("../../koboshi-cli/tests/litellm/local.yaml"),
    include_str!("../../koboshi-cli/tests/litellm/company.yaml"),
    "model_list:\n  - {model_name: v, litellm_params: {model: vertex_ai/gemini-2.5-pro, vertex_project: p-1, vertex_location: eu, vertex_credentials: os.environ/CREDENTIALS}}\n  - {model_name: w, litellm_params: {model: claude-3, api_base: 'https://h/v1/messages'}}\n",
];

/// What people and editors put into files by mistake, and what LiteLLM's files have.
const PIECES: &[&str] = &[
    "\n", ": ", "- ", "\"", "'", "{", "}", "[", "]", "#", "*", "~", "0", "-1", "1e9", "true", "null", "a b",
    "日本", "${X}", "os.environ/", "os.environ/X", "openai/", "azure/", "ollama/", "vertex_ai/", "model: ",
    "api_base: ", "api_version: ", "timeout: ", "https://h", "*/x", "fallbacks: ", "{model}", "\t",
    "order: ", "num_retries: ", "cooldown_time: ", "max_retries: ", "  ", "id: ",
];

const SECRET: &str = "Zq8Lw3vN0tYx1Kf6Rb2mD4x9";

fn value(name: &str) -> String {
    match name {
        name if name.ends_with("_BASE") || name.ends_with("_URL") => "https://llm.example",
        name if name.contains("PROJECT") => "my-project-1",
        name if name.contains("VERSION") => "2024-10-21",
        _ => "key-1",
    }
    .to_owned()
}

fn holds(text: &str, language: Language) -> Result<(), TestCaseError> {
    let translation = match translate("config.yaml", text, language) {
        Ok(translation) => translation,
        Err(problems) => {
            let said = format!("{problems} {problems:?}");
            prop_assert!(!said.contains(SECRET), "{said}");
            return Ok(());
        }
    };
    let said = format!("{} {:?}", translation.text, translation.notes);
    prop_assert!(!said.contains(SECRET), "{text}\n{said}");
    // A variable may stand for anything; where it is an address or a version it must be one.
    let lookup = |name: &str| translation.variables.contains(name).then(|| value(name));
    if let Err(problems) = load_located("koboshi.yaml", &translation.text, Environment::new(&lookup)) {
        let about_values = problems.iter().all(|one| one.message.contains("what the variable holds"));
        prop_assert!(about_values, "{text}\n{}\n{problems}", translation.text);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn any_edit_of_a_file_is_translated_into_a_good_one_or_refused(
        file in 0..FILES.len(),
        japanese in any::<bool>(),
        edits in proptest::collection::vec((any::<usize>(), 0_usize..15, 0..PIECES.len()), 0..6),
    ) {
        let mut text = FILES[file].replace("hunter2", SECRET);
        for (place, length, piece) in edits {
            let start = text.floor_char_boundary(place % (text.len() + 1));
            let end = text.floor_char_boundary((start + length).min(text.len()));
            let cut = &text[start..end];
            // The secret itself stays whole.
            if cut.chars().any(char::is_alphanumeric) && SECRET.contains(cut.trim()) {
                continue;
            }
            text.replace_range(start..end, PIECES[piece]);
        }
        holds(&text, if japanese { Language::Ja } else { Language::En })?;
    }
}

//! Files of models: what they mean together, and what is wrong with them.

use super::*;

fn with(text: &str) -> Result<Models, ModelError> {
    Models::with_user(&[ModelSource { name: "my.yaml", text }])
}

#[test]
fn each_fact_comes_from_the_first_entry_that_states_it() {
    let models = with(
        "models:\n- match: gpt-4o-mini*\n  images: false\n- match: gpt-4o*\n  images: true\n  context_window: 5\n",
    )
    .unwrap();
    let mini = models.facts("openai", "gpt-4o-mini");
    assert_eq!(
        (mini.images, mini.context_window, mini.max_output_tokens),
        (Some(false), Some(5), Some(16_384))
    );
    let from: Vec<_> = models
        .entries("openai", "gpt-4o-mini")
        .map(|entry| (entry.file.as_deref(), entry.line, entry.facts.stated().collect::<Vec<_>>()))
        .collect();
    assert_eq!(from[0], (Some("my.yaml"), 2, vec!["images"]));
    assert_eq!(from[1], (Some("my.yaml"), 4, vec!["context_window", "images"]));
    assert_eq!(from[2].0, None);
}

#[test]
fn a_later_file_goes_before_an_earlier_one() {
    let one = ModelSource { name: "1", text: "models: [{match: m, context_window: 1}]" };
    let two = ModelSource { name: "2", text: "models: [{match: m, context_window: 2}]" };
    assert_eq!(Models::with_user(&[one, two]).unwrap().facts("p", "m").context_window, Some(2));
}

#[test]
fn an_unknown_model_has_no_facts() {
    let models = Models::builtin().unwrap();
    assert_eq!(models.facts("p", "never-heard-of"), Facts::default());
    assert_eq!(models.facts("p", ""), Facts::default());
    assert_eq!(models.facts("p", "my-claudette"), Facts::default());
}

#[test]
fn every_built_in_entry_decides_something() {
    let models = Models::builtin().unwrap();
    assert!(models.entries.iter().all(|entry| entry.facts.stated().next().is_some()));
    assert!(models.entries.len() > 30);
}

#[test]
fn names_belong_to_their_vendors() {
    let models = Models::builtin().unwrap();
    let owners = |model: &str| -> Vec<String> {
        let vendors = models.vendors().map(|(vendor, _)| vendor);
        vendors.filter(|vendor| models.belongs_to(vendor, model)).map(str::to_owned).collect()
    };
    assert_eq!(owners("gpt-4o"), ["azure", "openai"]);
    assert_eq!(owners("claude-sonnet-4"), ["anthropic"]);
    assert_eq!(owners("gemini-3"), ["gemini", "vertex"]);
    assert!(owners("llama-3").is_empty() && owners("openai/gpt-4o").is_empty());
}

#[test]
fn what_is_wrong_with_a_file_has_its_place() {
    for (text, line, message) in [
        ("models:\n- match: m\n  contxt_window: 5\n", 3, "contxt_window"),
        ("models:\n- context_window: 5\n", 2, "`match` or `family`"),
        ("models:\n- match: m\n- match: a b\n", 3, "patterns"),
        ("models:\n- family: a-b\n", 2, "one word"),
        ("models:\n- family: a\n  version: newer\n", 2, "`from 4.1`"),
        ("models:\n- match: m\n  context_window: 0\n", 2, "at least 1"),
        ("models:\n- match: m\n  tools: maybe\n", 3, ""),
        ("models:\n- match: m\n  thinking: hard\n", 3, "hard"),
        ("models:\n- match: m\n  efforts: [low, much]\n", 3, "much"),
        ("models:\n- match: m\n  efforts: []\n", 3, ""),
        ("vendors:\n  a: x y\n", 2, "patterns"),
        ("models: [\n", 1, ""),
        ("other: 1\n", 1, "other"),
    ] {
        let error = with(text).unwrap_err();
        assert_eq!(error.file, "my.yaml", "{text}");
        assert!(error.line >= line && error.line <= line + 1, "{text}: {error}");
        assert!(error.message.contains(message), "{text}: {error}");
    }
    assert!(with("").is_ok() && with("# nothing\n").is_ok());
}

#[test]
fn a_version_may_be_written_as_a_number() {
    let models = with("models: [{family: house, version: 4.5, context_window: 7}]").unwrap();
    assert_eq!(models.facts("p", "house-4-5").context_window, Some(7));
    assert_eq!(models.facts("p", "house-4-6").context_window, None);
}

#[test]
fn a_price_is_found_by_name_and_a_users_own_goes_first() {
    let own = "prices: [{match: one/gpt-4o-mini, input: 1, output: 2}]";
    let models = Models::with_user(&[ModelSource { name: "own.yaml", text: own }]).unwrap();
    let price = |provider: &str, model: &str| models.price(provider, model);
    assert_eq!(price("one", "gpt-4o-mini"), crate::spend::Price::of(1.0, 2.0));
    let listed = crate::spend::Price::of(0.15, 0.6).and_then(|price| price.with_cache(Some(0.075), None));
    assert_eq!(price("two", "openai/gpt-4o-mini-2024-07-18"), listed);
    assert_eq!(price("one", "house-model"), None, "unknown is not free");
    assert_eq!(
        price("openai", "gpt-4o-mini-audio-preview"),
        None,
        "another model of a like name has another price"
    );
    let wrong = Models::with_user(&[ModelSource {
        name: "own.yaml",
        text: "prices: [{match: a, input: -1, output: 2}]",
    }]);
    assert!(wrong.unwrap_err().to_string().contains("a price is a number of dollars"));
}

/// A vendor writes `4-5`, relays write `4.5` and put the vendor before it: one model has one price, or a budget is escaped by a spelling.
#[test]
fn a_model_has_one_price_in_every_spelling() {
    let models = Models::builtin().unwrap();
    for spellings in [
        &[
            "claude-opus-4-5", "claude-opus-4.5", "anthropic/claude-opus-4.5",
            "us.anthropic.claude-opus-4-5-20251101-v1:0",
        ][..],
        &["claude-opus-4-1-20250805", "anthropic/claude-opus-4.1", "claude-opus-4", "claude-opus-4@20250514"],
        &[
            "claude-sonnet-4-5", "anthropic/claude-4.5-sonnet", "claude-sonnet-4-20250514",
            "claude-3-7-sonnet", "claude-3.5-sonnet",
        ],
        &["claude-haiku-4-5", "anthropic/claude-haiku-4.5:beta", "team-claude-haiku-4-5"],
        &["claude-3-5-haiku-20241022", "anthropic/claude-3.5-haiku"],
        &["claude-3-haiku-20240307", "anthropic/claude-3-haiku"],
        &["claude-3-opus-20240229", "anthropic/claude-3-opus"],
    ] {
        let first = models.price("p", spellings[0]);
        assert!(first.is_some(), "{}", spellings[0]);
        for name in spellings {
            assert_eq!(models.price("p", name), first, "{name}");
        }
    }
    let price = |model: &str| models.price("p", model);
    assert_ne!(price("claude-opus-4.5"), price("claude-opus-4.1"), "versions have prices of their own");
    for unknown in ["claude-opus-latest", "claude-opus-9", "claude-2.1", "my-claudette-4.5-opus"] {
        assert_eq!(price(unknown), None, "{unknown}");
    }
}

#[test]
fn a_users_price_names_its_models_as_facts_do() {
    let own = "prices: [{family: house, version: from 2, input: 1, output: 2}]";
    let models = with(own).unwrap();
    assert_eq!(models.price("p", "relay/house-2.5"), crate::spend::Price::of(1.0, 2.0));
    assert_eq!(models.price("p", "house-1"), None);
    for (text, message) in [
        ("prices: [{input: 1, output: 2}]", "`match` or `family`"),
        ("prices: [{family: a-b, input: 1, output: 2}]", "one word"),
        ("prices: [{family: a, version: new, input: 1, output: 2}]", "`from 4.1`"),
    ] {
        assert!(with(text).unwrap_err().message.contains(message), "{text}");
    }
}

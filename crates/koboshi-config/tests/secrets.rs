//! Secrets of a config are never shown, whatever the mistake is that it has.
//!
//! A secret is planted in every place where people put one by mistake. Then the file is damaged: names are misspelt, brackets lost,
//! lines joined, text put in between. Whatever `check` says then, in either language, no part of the secret is in it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use koboshi_config::config::Language;
use koboshi_config::load::{Environment, load_located};
use koboshi_config::schema::differences;
use proptest::prelude::*;

/// Keys as people have them: a password, hexadecimal digits, vendors' forms, base64, a phrase.
const SECRETS: &[&str] = &[
    "hunter2-admin-key", "5f2c9a7be01d4c55a0aa93e1b6f1d2aa", "sk-proj-Zq8Lw3vN0tYx1Kf6Rb2m",
    "AIzaSyD4x9QmZ7pW2kLr5vT8nB1cF6h", "q7Zp+0sLk/9dWv3xYb2NcA==", "correct-horse-9-battery",
];

/// Files with a place for a secret. What stands around it is what such files have.
const PLACES: &[&str] = &[
    "keys: @\n",
    "keys: [@]\n",
    "keys:\n  - @\n  - name: alice\n",
    "keys:\n  alice: @\n",
    "keys:\n  alice: [@]\n  bob: {sha256: '@'}\n",
    "keys:\n  alice: {key: @}\n",
    "keys:\n  alice:\n    sha256: @\n    tenant: research\n",
    "keys:\n  alice:\n    hash: '@'\n",
    "keys:\n  alice: |\n    @\n",
    "admin: @\n",
    "admin: [@, @]\n",
    "admin: {sha256: @}\n",
    "admin:\n  key: @\n",
    "admin:\n  password: \"@\"\n",
    "serve: {listen: 127.0.0.1:4141}\nadmin: {sha256: {value: @}}\n",
    "providers: @\n",
    "providers: [@]\n",
    "providers:\n  openai: @\n",
    "providers:\n  openai:\n    - @\n",
    "providers:\n  openai: {kind: openai, keys: @}\n",
    "providers:\n  openai: {kind: opnai, keys: ['@']}\n",
    "providers:\n  openai: {kind: openai, keys: [@, 5]}\n",
    "providers:\n  openai: {kind: openai, keys: [[@]]}\n",
    "providers:\n  openai: {kind: openai, keys: {first: @}}\n",
    "providers:\n  openai:\n    kind: openai\n    keys:\n      - @\n      - \"${NOT_SET}\"\n",
    "providers:\n  openai: {kind: openai, key: @}\n",
    "providers:\n  openai: {kind: openai, api_key: @, timeouts: {first: 5}}\n",
    "providers:\n  openai: {kind: openai, apiKey: '@'}\n",
    "providers:\n  openai:\n    kind: openai\n    Authorization: Bearer @\n",
    "providers:\n  openai: {kind: @}\n",
    "providers:\n  openai: {kind: openai, dialects: @}\n",
    "providers:\n  openai: {kind: openai, keys: ['${NOT_SET:-@}', '${NOT_SET}']}\n",
    "providers:\n  openai: {kind: openai, timeouts: @}\n",
    "providers:\n  openai: {kind: openai, timeouts: {connect: @}}\n",
    "providers:\n  openai: {kind: openai, keys: [${NOT_SET}]} # @\n",
    "store: @\n",
    "store: {redis: @}\n",
    "store: {redis: 'redis://:@@cache:6379/0', redsi: 1}\n",
    "store: {redis_password: @, path: x}\n",
    "store:\n  redis:\n    url: @\n",
    "providers: {mine: {kind: opnai, keys: [x]}}\nroutes:\n  small-2024: [mine/gpt4o-eastus2, @]\n  @: [mine/m]\n",
    "providers: {mine: {kind: opnai, keys: [x]}}\nroutes:\n  small: [mine/@, nowhere/m]\n",
    "routes:\n  small: [openai/@, sim/@, nowhere/m]\n",
    "routes:\n  small: {chain: [anthropic/@], commit: never}\n",
    "api_key: @\n",
    "key：@\n",
    "key:@\n",
    "keys：\n  alice：　@\n",
    "providers:\n  openai:\n    kind：openai\n    keys：「@」\n",
    "openai_api_key: '@'\nretry: {max_attemps: 3}\n",
    "token: [@]\nlog: {level: loud}\n",
    "general:\n  secrets: {one: @, two: [@]}\n",
    "retry:\n  max_attempts: 3\n  # @\n  jitter: some\n",
    "agents:\n  reviewer: {command: [claude, --token, '@', -p, hello]}\n",
    "agents:\n  reviewer: {command: [claude, '--api-key=@'], comand: 1}\n",
    "agents:\n  reviewer: {command: 'claude --password @'}\n",
    "agents:\n  reviewer: {command: [claude], env: ['TOKEN=@'], kindd: x}\n",
    "agents:\n  reviewer: {command: [claude], env: {TOKEN: @}}\n",
    "agents:\n  reviewer: {command: [claude], when: {mcp: {url: 'https://x.example/', token: '@'}, command: [is-due, -H, 'Authorization: Bearer @']}}\n",
    "accounts:\n  main: {env: ['OPENAI_API_KEY=@'], concurency: 1}\n",
    "accounts:\n  main: @\n",
    "notify:\n  channels:\n    ops: {kind: command, command: [send, --secret, '@']}\n",
    "notify:\n  channels:\n    ops: {kind: command, command: [send, 'PASS=@'], severty: x}\n",
    "notify:\n  channels:\n    ops: {kind: webhook, url: 'https://example.com/@', secret: '@'}\n",
    "notify:\n  channels:\n    ops: {kind: mail, server: 'mail.example.com:587', password: '@', from: x, to: [x]}\n",
    "notify:\n  channels:\n    ops: {kind: slack, webhook: '@', token: '@'}\n",
    "providers:\n  azure: {kind: azure, token_command: [az, --client-secret, '@'], base_url: 'https://x.example/'}\n",
    "trace: {otlp: 'https://collector.example/', headers: {authorization: 'Bearer @'}}\n",
    "- @\n",
    "@\n",
];

/// Keys of a file that can be used whose values hold secrets, whole or in part.
const HIDING: &[&str] =
    &[".keys", ".sha256", ".redis", ".url", ".secret", ".password", ".token", ".env", "command"];

/// What people and editors put into files by mistake.
const PIECES: &[&str] = &[
    "\t", "\n", ": ", "- ", "\"", "'", "{", "}", "[", "]", "#", "&a ", "*a", "!!int ", "|", ">-\n", "---\n",
    "? ", "<<: *a\n", ",", "x: ", "key: ", "keys: ", "${", "${X}", "${X:-", "  ", "\n  ", "\n    ", "=",
    "\u{feff}", "日本", "retry: {", "：", "　", "key：",
];

/// What of a file may be said, in both languages and in the form for programs.
fn said(text: &str) -> String {
    let lookup = |name: &str| (name == "X").then(|| "value".to_owned());
    match load_located("koboshi.yaml", text, Environment::new(&lookup)) {
        // A file that can be used shows names of the user's choice; what is a secret there is one by its key.
        Ok(loaded) => {
            let warnings = loaded.warnings.iter();
            let said = warnings.map(|one| one.show(Language::En) + &one.show(Language::Ja));
            let hides = |path: &str| HIDING.iter().any(|end| path.ends_with(end));
            let shown = differences(&loaded.config).into_iter().filter(|one| hides(&one.path));
            said.chain(shown.map(|one| one.value)).collect()
        }
        Err(problems) => {
            let mut said =
                problems.show(Language::En) + &problems.show(Language::Ja) + &format!("{problems:?}");
            for warning in problems.warnings() {
                said += &warning.show(Language::Ja);
            }
            for problem in &problems {
                said += &format!("{} {} {:?}", problem.path, problem.message, problem.hint);
            }
            said
        }
    }
}

/// Whether a part of the secret that would help anybody is in a text.
fn leaks(said: &str, secret: &str) -> Option<String> {
    let letters: Vec<char> = secret.chars().collect();
    letters.windows(8).map(|part| part.iter().collect::<String>()).find(|part| said.contains(part))
}

#[test]
fn a_secret_in_any_place_is_hidden() {
    for place in PLACES {
        for secret in SECRETS {
            let text = place.replace('@', secret);
            let said = said(&text);
            assert_eq!(leaks(&said, secret), None, "{text}\n{said}");
        }
    }
}

#[test]
fn the_reports_own_mistakes_are_hidden() {
    for text in ["keys: {alice: 5f2c9a7be01d4c55a0aa93e1b6f1d2aa}", "admin: hunter2-admin-key"] {
        let said = said(text);
        assert!(
            said.contains("must hold keys, not text") && !said.contains("5f2c") && !said.contains("hunter2"),
            "{said}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn a_secret_is_hidden_in_a_damaged_file_too(
        place in 0..PLACES.len(),
        before in 0..PLACES.len(),
        secret in 0..SECRETS.len(),
        edits in proptest::collection::vec((any::<usize>(), 0_usize..12, 0..PIECES.len(), any::<bool>()), 0..4),
    ) {
        let secret = SECRETS[secret];
        let mut text = format!("{}{}", PLACES[before], PLACES[place]);
        // The secret itself stays whole: what is damaged is the file around it.
        for (at, length, piece, inserts) in edits {
            let spots: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let Some(start) = spots.get(at % spots.len().max(1)).copied() else { continue };
            let end = text.floor_char_boundary((start + length).min(text.len()));
            let cut = &text[start..end];
            if inserts || cut.contains('@') {
                text.insert_str(start, PIECES[piece]);
            } else {
                text.replace_range(start..end, PIECES[piece]);
            }
        }
        let text = text.replace('@', secret);
        let said = said(&text);
        prop_assert_eq!(leaks(&said, secret), None, "{}\n{}", text, said);
    }
}

/// What is no secret is shown: a user who cannot see the target cannot correct it.
#[test]
fn names_of_deployments_are_shown() {
    let text = said(
        "providers: {mine: {kind: openai, keys: [x]}}\nroutes:\n  small: [mine/gpt4o-mini-eastus2, nowhere/m]\n",
    );
    assert!(text.contains("[mine/gpt4o-mini-eastus2, nowhere/m]"), "{text}");
}

/// Who cannot see the name of the key, or the variable that is meant, does not find the mistake.
#[test]
fn names_of_keys_and_variables_are_shown() {
    for (text, shown) in [
        ("routes：\n  a: [sim/ok]\n", "| routes："),
        ("store:　memory\n", "| store:　memory"),
        ("providers:\n  openai:\n    kind：openai\n", "|     kind：openai"),
        ("serve:\n  listen:　127.0.0.1:4141\n", "|   listen:　"),
        ("providers:\n  openai:\n    kind: openai\n      key: sk-abc\n", "key: ***"),
        (
            "providers: {v: {kind: vertex, credentials_file: \"${GOOGLE_APPLICATION_CREDENTIALS}\"}}\n",
            "credentials_file: \"${GOOGLE_APPLICATION_CREDENTIALS}\"",
        ),
    ] {
        let said = said(text);
        assert!(said.contains(shown), "{text}: {said}");
    }
}

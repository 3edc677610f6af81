//! `providers`: the LLM providers.

use super::super::{Field, Key, Range, Shape};
use super::build::{NONE, always_of_entry, entries, of_entry, section, text, texts, timeouts, word};
use super::forms::{API_VERSION, ARGUMENT, DIALECT, KEY, LOCATION, NAME, PROJECT, PROVIDER, URL};
use crate::gateway::{ProviderConfig, ProviderDialect, ProviderKind};

pub(super) fn providers() -> Vec<Key> {
    let mut keys = vec![
        section(
            "providers",
            "LLM providers, each under a name of your choice; without any, the well-known ones whose keys are in the environment",
        ),
        Key {
            path: "providers.*",
            shape: entries!(
                providers,
                ProviderConfig::new(ProviderKind::Openai),
                PROVIDER,
                required: &["kind"],
                short: None
            ),
            meaning: "One provider",
            unset: NONE,
        },
        word(
            "providers.*.kind",
            ProviderKind::NAMES,
            Field {
                get: |c, name| c.providers.get(name).map(|one| one.kind.name()),
                set: |c, name, word| {
                    if let (Some(one), Some(kind)) =
                        (c.providers.get_mut(name), word.and_then(ProviderKind::from_name))
                    {
                        one.kind = kind;
                    }
                },
            },
            "Which API it has; `openai` is also for OpenAI-compatible servers, with a `base_url`",
        ),
        text(
            "providers.*.base_url",
            URL,
            of_entry!(providers, base_url),
            "Base URL of the API: the part before `/chat/completions`, `/messages` or `/models`",
        )
        .unset("the vendor's usual address", "ベンダーの標準の URL"),
        texts(
            "providers.*.dialects",
            DIALECT,
            Range::of(1, 4),
            Field {
                get: |c, name| {
                    let spoken = &c.providers.get(name)?.dialects;
                    (!spoken.is_empty()).then(|| spoken.iter().map(|one| one.name().to_owned()).collect())
                },
                set: |c, name, words| {
                    if let Some(one) = c.providers.get_mut(name) {
                        let words = words.unwrap_or_default();
                        one.dialects =
                            words.iter().filter_map(|word| ProviderDialect::from_name(word)).collect();
                    }
                },
            },
            "API formats that it accepts at that address, preferred one first",
        )
        .unset("by kind", "種類による"),
        Key {
            path: "providers.*.keys",
            shape: Shape::Secrets {
                form: KEY,
                range: Range::of(0, 100),
                field: always_of_entry!(providers, keys),
            },
            meaning: "API keys, used in turn; take them from environment variables",
            unset: NONE,
        },
        texts(
            "providers.*.token_command",
            ARGUMENT,
            Range::of(1, 64),
            Field {
                get: |c, name| {
                    let command = &c.providers.get(name)?.token_command;
                    (!command.is_empty()).then(|| command.clone())
                },
                set: |c, name, words| {
                    if let Some(one) = c.providers.get_mut(name) {
                        one.token_command = words.unwrap_or_default();
                    }
                },
            },
            "A program with its arguments that prints a bearer token, in place of `keys`",
        ),
        Key {
            path: "providers.*.credentials_file",
            shape: Shape::Path { field: of_entry!(providers, credentials_file) },
            meaning: "`vertex`: key file of a service account (JSON); or use `token_command`",
            unset: NONE,
        },
        text(
            "providers.*.project",
            PROJECT,
            of_entry!(providers, project),
            "`vertex`: id of the Google Cloud project that is billed",
        )
        .unset("that of `credentials_file`", "`credentials_file` の値"),
        text(
            "providers.*.location",
            LOCATION,
            of_entry!(providers, location),
            "`vertex`: region of the models",
        )
        .unset("`global`", "`global`"),
        text(
            "providers.*.api_version",
            API_VERSION,
            of_entry!(providers, api_version),
            "`azure`: a dated API version; the deployment is then part of the path",
        )
        .unset("the interface without dates, `/openai/v1`", "日付のない API（`/openai/v1`）"),
        text(
            "providers.*.account",
            NAME,
            of_entry!(providers, account),
            "Name of the account that the keys belong to; cooldowns of an account apply to all providers with the same name",
        )
        .unset("the provider's name", "プロバイダーの名前"),
        Key {
            path: "providers.*.ca_file",
            shape: Shape::Path { field: of_entry!(providers, ca_file) },
            meaning: "Certificates (PEM) of a private certificate authority to trust for this provider",
            unset: NONE,
        },
    ];
    keys.extend(timeouts!(providers, "providers.*", "by kind and model", "種類とモデルによる"));
    keys
}

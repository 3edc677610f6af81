//! `providers` and `models`: whom to ask, and what they can do.

use super::super::{Field, Key, Range, Shape};
use super::build::{always_of_entry, count, entries, flag, of_entry, section, text, texts, timeouts, word};
use super::forms::{API_VERSION, ARGUMENT, DIALECT, KEY, LOCATION, MODELS, NAME, PROJECT, PROVIDER, URL};
use crate::gateway::{ModelConfig, ProviderConfig, ProviderDialect, ProviderKind};

/// Tokens: a number that must fit into what the dialects can say.
const TOKENS: Range<u64> = Range::of(1, u32::MAX as u64);

pub(super) fn providers() -> Vec<Key> {
    let mut keys = vec![
        section(
            "providers",
            "Whom to ask, each under a name of your choice; without any, the well-known ones whose keys are in the environment",
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
            unset: "none",
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
            "Which interface it has; most have OpenAI's",
        ),
        text(
            "providers.*.base_url",
            URL,
            of_entry!(providers, base_url),
            "Where it is, up to what comes before `/chat/completions`, `/messages` or `/models`",
        )
        .unset("the vendor's usual address"),
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
            "What it speaks at that address, best first",
        )
        .unset("by kind"),
        Key {
            path: "providers.*.keys",
            shape: Shape::Secrets {
                form: KEY,
                range: Range::of(0, 100),
                field: always_of_entry!(providers, keys),
            },
            meaning: "Its keys, used in turn; take them from variables",
            unset: "none",
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
            "A program and its arguments that print a bearer token, in place of `keys`",
        ),
        Key {
            path: "providers.*.credentials_file",
            shape: Shape::Path { field: of_entry!(providers, credentials_file) },
            meaning: "`vertex`: the key file of a service account (JSON), or `token_command`",
            unset: "none",
        },
        text(
            "providers.*.project",
            PROJECT,
            of_entry!(providers, project),
            "`vertex`: the project that is billed",
        )
        .unset("that of `credentials_file`"),
        text(
            "providers.*.location",
            LOCATION,
            of_entry!(providers, location),
            "`vertex`: where the models run",
        )
        .unset("`global`"),
        text(
            "providers.*.api_version",
            API_VERSION,
            of_entry!(providers, api_version),
            "`azure`: a dated version, for deployments in the path",
        )
        .unset("the interface without dates, `/openai/v1`"),
        text(
            "providers.*.account",
            NAME,
            of_entry!(providers, account),
            "The account that the keys belong to, for what the store remembers",
        )
        .unset("the provider's name"),
        Key {
            path: "providers.*.ca_file",
            shape: Shape::Path { field: of_entry!(providers, ca_file) },
            meaning: "Certificates (PEM) of the authority that vouches for it, if this machine does not know that one",
            unset: "none",
        },
    ];
    keys.extend(timeouts!(providers, "providers.*", "by kind and model"));
    keys
}

pub(super) fn models() -> Vec<Key> {
    let mut keys = vec![
        section("models", "What models can do, by `provider/model`; `*` stands for anything"),
        Key {
            path: "models.*",
            shape: entries!(models, ModelConfig::default(), MODELS, required: &[], short: None),
            meaning: "One model, or all that the pattern matches",
            unset: "none",
        },
        count("models.*.context", TOKENS, of_entry!(models, context), "Tokens of input and output together"),
        count("models.*.output", TOKENS, of_entry!(models, output), "Tokens of output"),
        flag("models.*.tools", of_entry!(models, tools), "Calls tools"),
        flag("models.*.images", of_entry!(models, images), "Sees images"),
        flag("models.*.json", of_entry!(models, json), "Answers in JSON when told so"),
        flag(
            "models.*.prefill",
            of_entry!(models, prefill),
            "Goes on from the beginning of an answer that it is given",
        ),
        flag("models.*.reasoning", of_entry!(models, reasoning), "Thinks before it answers"),
    ];
    keys = keys.into_iter().map(|key| key.unset("built-in table")).collect();
    keys.extend(timeouts!(models, "models.*", "those of the provider"));
    keys
}

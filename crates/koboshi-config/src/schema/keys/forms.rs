//! What the texts of the gateway's keys must look like: as code, as a pattern for editors, and in words.
//!
//! Patterns and code are held against each other by a test. Addresses are narrower than the standards: what is refused here
//! would be refused later by the client that uses it, with less to say about why.

use std::net::SocketAddr;

use super::super::Form;
use crate::gateway::ProviderDialect;

/// Characters that cannot be seen: controls, marks of direction, spaces without width.
macro_rules! unseen {
    () => {
        r"\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    };
}

macro_rules! port {
    () => {
        "(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3}|0)"
    };
}

macro_rules! host {
    () => {
        r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})"
    };
}

macro_rules! octet {
    () => {
        "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
    };
}

fn is_seen(c: char) -> bool {
    let unseen = matches!(c,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    !c.is_control() && !unseen
}

fn has_length(text: &str, most: usize) -> bool {
    !text.is_empty() && text.chars().count() <= most
}

fn no_hint(_: &str) -> Option<&'static str> {
    None
}

/// A name for people or of other programs.
pub(super) const NAME: Form = Form {
    said: "1 to 200 printable characters without a space at its ends",
    pattern: concat!("^[^\\s", unseen!(), "]([^", unseen!(), "]{0,198}[^\\s", unseen!(), "])?$"),
    holds: |text| has_length(text, 200) && text.trim() == text && text.chars().all(is_seen),
    hint: no_hint,
};

/// The name of a provider: it is the first part of `provider/model`.
pub(super) const PROVIDER: Form = Form {
    said: "1 to 200 small letters, digits, `_` and `-`, a letter or digit first",
    pattern: "^[a-z0-9][a-z0-9_-]{0,199}$",
    holds: is_provider,
    hint: |text| {
        let small = is_provider(&text.to_lowercase());
        small.then_some("write it in small letters")
    },
};

fn is_provider(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    has_length(text, 200) && text.bytes().all(inner) && !text.starts_with(['_', '-'])
}

/// A target of a chain.
pub(super) const TARGET: Form = Form {
    said: "`provider/model`, where `{model}` stands for what the client asked for",
    pattern: concat!("^[a-z0-9][a-z0-9_-]{0,199}/([^\\s{}", unseen!(), r"]|\{model\}){1,200}$"),
    holds: |text| {
        text.split_once('/').is_some_and(|(provider, model)| is_provider(provider) && is_model(model))
    },
    hint: about_target,
};

fn is_model(text: &str) -> bool {
    // One letter for each placeholder, as the pattern counts.
    let plain = text.replace("{model}", "m");
    has_length(&plain, 200) && plain.chars().all(|c| is_seen(c) && !c.is_whitespace() && c != '{' && c != '}')
}

fn about_target(text: &str) -> Option<&'static str> {
    let (provider, model) = text.split_once('/').unwrap_or((text, ""));
    if provider.contains(['{', '}', '*']) {
        return Some("the provider is written out; `{model}` may stand only behind the `/`");
    }
    if model.contains(['{', '}']) {
        return Some("the only thing that may stand in braces is `{model}`");
    }
    if model.is_empty() {
        return Some("write the provider, a `/` and the model: `openai/gpt-4o` or `openai/{model}`");
    }
    provider.chars().any(char::is_uppercase).then_some("the provider's name is written in small letters")
}

/// The models that an entry of `models` is about.
pub(super) const MODELS: Form = Form {
    said: "`provider/model`, where `*` stands for anything",
    pattern: concat!("^[a-z0-9*][a-z0-9_*-]{0,199}/[^\\s", unseen!(), "]{1,200}$"),
    holds: |text| {
        text.split_once('/').is_some_and(|(provider, model)| {
            is_provider(&provider.replace('*', "m"))
                && has_length(model, 200)
                && model.chars().all(|c| is_seen(c) && !c.is_whitespace())
        })
    },
    hint: |text| (!text.contains('/')).then_some("write `*/` before it for a model of any provider"),
};

/// An address that requests are sent to.
pub(super) const URL: Form = Form {
    said: "an address such as `https://host/v1`",
    pattern: concat!("^https?://", host!(), "(:", port!(), r")?(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?$"),
    holds: is_url,
    hint: |text| {
        let (_, rest) = text.split_once("://").unwrap_or(("", text));
        if !text.starts_with("https://") && !text.starts_with("http://") {
            return Some("begin with `https://` or `http://`, in small letters");
        }
        if rest.split('/').next().is_some_and(|host| host.contains('@')) {
            return Some("leave out what stands before the `@`: secrets are not part of an address here");
        }
        text.contains(['?', '#']).then_some("leave out the `?` or `#` and what follows it")
    },
};

fn is_url(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return false;
    };
    let (server, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let fits = |c: char| c.is_ascii_alphanumeric() || "._~!$&'()*+,;=:@%/-".contains(c);
    is_server(server) && path.chars().all(fits)
}

/// A host, and a port if there is one.
fn is_server(text: &str) -> bool {
    let after_host = text.rfind(']').map_or(0, |end| end + 1);
    match text.get(after_host..).and_then(|rest| rest.split_once(':')) {
        Some((lead, port)) => {
            is_host(text.get(..after_host + lead.len()).unwrap_or_default()) && is_port(port)
        }
        None => is_host(text),
    }
}

fn is_host(text: &str) -> bool {
    if let Some(sixth) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let fits = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
        return (2..=45).contains(&sixth.len()) && sixth.chars().all(fits);
    }
    has_length(text, 253) && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

fn is_port(text: &str) -> bool {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok();
    is_number && (text == "0" || !text.starts_with('0'))
}

/// A name that may stand in `Host`.
pub(super) const HOST: Form = Form {
    said: "the name of a host such as `koboshi.example`",
    pattern: concat!("^", host!(), "$"),
    holds: is_host,
    hint: |text| {
        text.contains([':', '/', '*']).then_some("only the name, without `https://`, port, path and `*`")
    },
};

/// A web page that may call.
pub(super) const ORIGIN: Form = Form {
    said: "an origin such as `https://app.example`",
    pattern: concat!("^[a-z][a-z0-9+.-]{0,30}://", host!(), "(:", port!(), ")?$"),
    holds: |text| {
        text.split_once("://").is_some_and(|(scheme, server)| {
            let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+.-".contains(c);
            scheme.len() <= 31
                && scheme.starts_with(|c: char| c.is_ascii_lowercase())
                && scheme.chars().all(fits)
                && is_server(server)
        })
    },
    hint: |text| match text {
        "*" => Some("name each page: a page of anybody could spend your keys"),
        text if text.contains("://") => Some("an origin has no path and no `/` at its end"),
        _ => Some("begin with `https://` or `http://`"),
    },
};

/// Where to listen.
pub(super) const LISTEN: Form = Form {
    said: "an address and a port such as `127.0.0.1:4141`",
    pattern: concat!(
        "^(",
        octet!(),
        r"\.",
        octet!(),
        r"\.",
        octet!(),
        r"\.",
        octet!(),
        r"|\[[0-9A-Fa-f:.]{2,45}\]):",
        port!(),
        "$",
    ),
    holds: |text| {
        let port = text.rsplit_once(':').map(|(_, port)| port);
        text.parse::<SocketAddr>().is_ok() && port.is_some_and(is_port) && !text.contains('%')
    },
    hint: |text| {
        if text.starts_with("localhost") {
            return Some("write `127.0.0.1` for `localhost`");
        }
        let port = text.trim_start_matches(':');
        is_port(port).then_some(
            "write the address too: `127.0.0.1:` before the port for this machine, `0.0.0.0:` for every network",
        )
    },
};

/// The hash of a key.
pub(super) const SHA256: Form = Form {
    said: "the SHA-256 of a key, 64 hexadecimal digits",
    pattern: "^[0-9A-Fa-f]{64}$",
    holds: |text| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
    hint: |_| Some("not the key itself: `printf %s THE-KEY | sha256sum` prints its hash"),
};

/// A key of a provider: it goes into a header.
pub(super) const KEY: Form = Form {
    said: "1 to 4096 visible ASCII characters",
    pattern: r"^[\u0021-\u007e]{1,4096}$",
    holds: |text| (1..=4096).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()),
    hint: |text| match text {
        "" => Some("a provider without keys has no `keys`"),
        text if text.contains(char::is_whitespace) => Some("there is a space or a line break in it"),
        _ => None,
    },
};

/// What a provider speaks.
pub(super) const DIALECT: Form = Form {
    said: "`chat`, `responses`, `messages` or `gemini`",
    pattern: "^(chat|responses|messages|gemini)$",
    holds: |text| ProviderDialect::from_name(text).is_some(),
    hint: |text| match text {
        "openai" | "completions" | "chat_completions" => Some("write `chat`, or `responses`"),
        "anthropic" | "claude" => Some("write `messages`"),
        "google" | "vertex" => Some("write `gemini`"),
        _ => None,
    },
};

/// A version of Azure's interface: it goes into the query.
pub(super) const API_VERSION: Form = Form {
    said: "a version such as `2024-10-21`",
    pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
    holds: |text| is_word(text, 64, "._-"),
    hint: no_hint,
};

/// A project of Google's cloud: it goes into the path.
pub(super) const PROJECT: Form = Form {
    said: "the id of a project such as `my-project-1`",
    pattern: "^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$",
    holds: |text| is_word(text, 100, "._:-"),
    hint: no_hint,
};

/// A region of Google's cloud: it goes into the host and the path.
pub(super) const LOCATION: Form = Form {
    said: "a region such as `europe-west1`, or `global`",
    pattern: "^[a-z][a-z0-9-]{0,62}$",
    holds: |text| {
        is_word(text, 63, "-")
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && !text.contains(|c: char| c.is_ascii_uppercase())
    },
    hint: |text| text.contains(char::is_uppercase).then_some("write it in small letters"),
};

fn is_word(text: &str, most: usize, also: &str) -> bool {
    (1..=most).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c))
}

/// A part of a command.
pub(super) const ARGUMENT: Form = Form {
    said: "1 to 4096 characters without line breaks",
    pattern: r"^[^\u0000-\u001f\u007f]{1,4096}$",
    holds: |text| has_length(text, 4096) && !text.contains(|c: char| c.is_ascii_control()),
    hint: no_hint,
};

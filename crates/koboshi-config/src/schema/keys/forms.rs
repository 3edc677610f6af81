//! The required forms of texts: as code, as a pattern for editors, and in words.
//!
//! A test compares patterns and code. Addresses are narrower than the standards: what is refused here
//! would be refused later by the client that uses it, with a worse message.

use crate::agents::{AUTO, OFF};
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use koboshi::models::Effort;

use super::super::Form;
use crate::gateway::ProviderDialect;
use crate::size;
use crate::words::{Words, words};

/// Invisible characters: controls, direction marks, spaces without width.
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

fn has_length(text: &str, max: usize) -> bool {
    !text.is_empty() && text.chars().count() <= max
}

fn no_hint(_: &str) -> Option<Words> {
    None
}

/// A name for people or of other programs.
pub(super) const NAME: Form = Form {
    description: words(
        "1 to 200 printable characters without a space at its ends",
        "前後に空白のない、表示できる 1〜200 文字",
    ),
    pattern: concat!("^[^\\s", unseen!(), "]([^", unseen!(), "]{0,198}[^\\s", unseen!(), "])?$"),
    holds: |text| has_length(text, 200) && text.trim() == text && text.chars().all(is_seen),
    hint: no_hint,
};

/// The name of a provider: it is the first part of `provider/model`.
pub(super) const PROVIDER: Form = Form {
    description: words(
        "1 to 200 small letters, digits, `_` and `-`, a letter or digit first",
        "英小文字、数字、`_`、`-` からなる 1〜200 文字（先頭は英小文字か数字）",
    ),
    pattern: "^[a-z0-9][a-z0-9_-]{0,199}$",
    holds: is_provider,
    hint: |text| {
        let small = is_provider(&text.to_lowercase());
        small.then_some(words("write it in small letters", "小文字で書いてください"))
    },
};

fn is_provider(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    has_length(text, 200) && text.bytes().all(inner) && !text.starts_with(['_', '-'])
}

/// A target of a chain.
pub(super) const TARGET: Form = Form {
    description: words(
        "`provider/model`, where `{model}` stands for what the client asked for",
        "`provider/model` の形（`{model}` はクライアントが指定したモデル名）",
    ),
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

fn about_target(text: &str) -> Option<Words> {
    let (provider, model) = text.split_once('/').unwrap_or((text, ""));
    if provider.contains(['{', '}', '*']) {
        return Some(words(
            "the provider is written out; `{model}` may stand only behind the `/`",
            "プロバイダー名はそのまま書いてください。`{model}` を使えるのは `/` の後だけです",
        ));
    }
    if model.contains(['{', '}']) {
        return Some(words(
            "the only thing that may stand in braces is `{model}`",
            "波かっこの中に書けるのは `{model}` だけです",
        ));
    }
    if model.is_empty() {
        return Some(words(
            "write the provider, a `/` and the model: `openai/gpt-4o` or `openai/{model}`",
            "プロバイダー、`/`、モデルの順に書いてください: `openai/gpt-4o` または `openai/{model}`",
        ));
    }
    provider.chars().any(char::is_uppercase).then_some(words(
        "the provider's name is written in small letters", "プロバイダー名は小文字で書いてください",
    ))
}

/// The models that an entry of `models` applies to.
pub(super) const MODELS: Form = Form {
    description: words(
        "`provider/model`, where `*` stands for anything", "`provider/model` の形（`*` は任意の文字列）",
    ),
    pattern: concat!("^[a-z0-9*][a-z0-9_*-]{0,199}/[^\\s", unseen!(), "]{1,200}$"),
    holds: |text| {
        text.split_once('/').is_some_and(|(provider, model)| {
            is_provider(&provider.replace('*', "m"))
                && has_length(model, 200)
                && model.chars().all(|c| is_seen(c) && !c.is_whitespace())
        })
    },
    hint: |text| {
        (!text.contains('/')).then_some(words(
            "write `*/` before it for a model of any provider",
            "すべてのプロバイダーのモデルを指すときは、前に `*/` を付けてください",
        ))
    },
};

/// A level of thinking.
pub(super) const EFFORT: Form = Form {
    description: words(
        "`none`, `minimal`, `low`, `medium`, `high` or `xhigh`",
        "`none`、`minimal`、`low`、`medium`、`high`、`xhigh` のいずれか",
    ),
    pattern: "^(none|minimal|low|medium|high|xhigh)$",
    holds: |text| Effort::from_name(text).is_some(),
    hint: |text| (text == "max").then_some(words("write `xhigh`", "`xhigh` と書いてください")),
};

/// An address that requests are sent to.
pub(super) const URL: Form = Form {
    description: words("an address such as `https://host/v1`", "`https://host/v1` のような URL"),
    pattern: concat!("^https?://", host!(), "(:", port!(), r")?(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?$"),
    holds: is_url,
    hint: |text| {
        let (_, rest) = text.split_once("://").unwrap_or(("", text));
        if !text.starts_with("https://") && !text.starts_with("http://") {
            return Some(words(
                "begin with `https://` or `http://`, in small letters",
                "小文字の `https://` または `http://` で始めてください",
            ));
        }
        if rest.split('/').next().is_some_and(|host| host.contains('@')) {
            return Some(words(
                "leave out what stands before the `@`: secrets are not part of an address here",
                "`@` より前を削除してください。ここでは URL に認証情報を含められません",
            ));
        }
        text.contains(['?', '#']).then_some(words(
            "leave out the `?` or `#` and what follows it", "`?` または `#` 以降を削除してください",
        ))
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

/// An allowed name in `Host`.
pub(super) const HOST: Form = Form {
    description: words("the name of a host such as `koboshi.example`", "`koboshi.example` のようなホスト名"),
    pattern: concat!("^", host!(), "$"),
    holds: is_host,
    hint: |text| {
        text.contains([':', '/', '*']).then_some(words(
            "only the name, without `https://`, port, path and `*`",
            "`https://`、ポート、パス、`*` を付けず、名前だけを書いてください",
        ))
    },
};

/// An address, or all addresses with the same prefix.
pub(super) const NETWORK: Form = Form {
    description: words(
        "an address or a network such as `10.0.0.0/8`",
        "アドレス、または `10.0.0.0/8` のようなネットワーク",
    ),
    pattern: concat!(
        "^((",
        octet!(),
        r"\.){3}",
        octet!(),
        "(/(3[0-2]|[12]?[0-9]))?|[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:.]{1,44}(/(12[0-8]|1[01][0-9]|[1-9]?[0-9]))?)$"
    ),
    holds: |text| network(text).is_some(),
    hint: |text| {
        text.contains(|c: char| c.is_ascii_alphabetic() && !c.is_ascii_hexdigit()).then_some(words(
            "write the address, not a name: who a proxy is, only its address shows",
            "名前ではなくアドレスを書いてください。プロキシはアドレスでしか見分けられません",
        ))
    },
};

/// Reads an address or a network.
pub(super) fn network(text: &str) -> Option<IpNet> {
    text.parse().ok().or_else(|| Some(IpNet::from(text.parse::<IpAddr>().ok()?)))
}

/// The origin of a web page that may call.
pub(super) const ORIGIN: Form = Form {
    description: words("an origin such as `https://app.example`", "`https://app.example` のようなオリジン"),
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
        "*" => Some(words(
            "name each page: a page of anybody could spend your keys",
            "オリジンを 1 つずつ書いてください。`*` では、誰のページからでもあなたのキーを使えてしまいます",
        )),
        text if text.contains("://") => Some(words(
            "an origin has no path and no `/` at its end",
            "オリジンにはパスも末尾の `/` も付きません",
        )),
        _ => {
            Some(words("begin with `https://` or `http://`", "`https://` または `http://` で始めてください"))
        }
    },
};

/// The listen address.
pub(super) const LISTEN: Form = Form {
    description: words(
        "an address and a port such as `127.0.0.1:4141`", "`127.0.0.1:4141` のようなアドレスとポート",
    ),
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
        if text == "localhost" {
            return Some(words(
                "write the address and a port: `127.0.0.1:4141`",
                "アドレスとポートを書いてください: `127.0.0.1:4141`",
            ));
        }
        if text.starts_with("localhost") {
            return Some(words(
                "write `127.0.0.1` for `localhost`",
                "`localhost` の代わりに `127.0.0.1` と書いてください",
            ));
        }
        let port = text.trim_start_matches(':');
        is_port(port).then_some(
            words("write the address too: `127.0.0.1:` before the port for this machine, `0.0.0.0:` for every network", "アドレスも書いてください。このマシンだけならポートの前に `127.0.0.1:`、すべてのネットワークなら `0.0.0.0:` です"),
        )
    },
};

/// An amount of memory.
pub(super) const SIZE: Form = Form {
    description: words("a size such as `128MiB` or `2GiB`", "`128MiB` や `2GiB` のようなサイズ"),
    pattern: "^[1-9][0-9]{0,11}(KiB|MiB|GiB)$",
    holds: |text| size::bytes(text).is_some(),
    hint: |_| {
        Some(words(
            "write a number and `KiB`, `MiB` or `GiB`",
            "数値に `KiB`、`MiB`、`GiB` のいずれかを付けてください",
        ))
    },
};

/// The hash of a key.
pub(super) const SHA256: Form = Form {
    description: words("the SHA-256 of a key, 64 hexadecimal digits", "キーの SHA-256（16 進数 64 桁）"),
    pattern: "^[0-9A-Fa-f]{64}$",
    holds: |text| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
    hint: |_| {
        Some(words(
            "not the key itself: `printf %s THE-KEY | sha256sum` prints its hash",
            "キーそのものではなくハッシュを書きます: `printf %s キー | sha256sum` で表示できます",
        ))
    },
};

/// A key of a provider: it is sent in a header.
pub(super) const KEY: Form = Form {
    description: words("1 to 4096 visible ASCII characters", "空白を含まない ASCII 文字 1〜4096 文字"),
    pattern: r"^[\u0021-\u007e]{1,4096}$",
    holds: |text| (1..=4096).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()),
    hint: |text| match text {
        "" => Some(words(
            "a provider without keys has no `keys`",
            "キーを使わないプロバイダーでは `keys` を書かないでください",
        )),
        text if text.contains(char::is_whitespace) => {
            Some(words("there is a space or a line break in it", "空白か改行が含まれています"))
        }
        _ => None,
    },
};

/// A dialect of a provider.
pub(super) const DIALECT: Form = Form {
    description: words(
        "`chat`, `responses`, `messages` or `gemini`",
        "`chat`、`responses`、`messages`、`gemini` のいずれか",
    ),
    pattern: "^(chat|responses|messages|gemini)$",
    holds: |text| ProviderDialect::from_name(text).is_some(),
    hint: |text| match text {
        "openai" | "completions" | "chat_completions" => {
            Some(words("write `chat`, or `responses`", "`chat` または `responses` と書いてください"))
        }
        "anthropic" | "claude" => Some(words("write `messages`", "`messages` と書いてください")),
        "google" | "vertex" => Some(words("write `gemini`", "`gemini` と書いてください")),
        _ => None,
    },
};

/// A version of Azure's API: it is part of the query.
pub(super) const API_VERSION: Form = Form {
    description: words("a version such as `2024-10-21`", "`2024-10-21` のようなバージョン"),
    pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
    holds: |text| is_word(text, 64, "._-"),
    hint: no_hint,
};

/// A project of Google's cloud: it is part of the path.
pub(super) const PROJECT: Form = Form {
    description: words(
        "the id of a project such as `my-project-1`", "`my-project-1` のようなプロジェクト ID",
    ),
    pattern: "^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$",
    holds: |text| is_word(text, 100, "._:-"),
    hint: no_hint,
};

/// A region of Google's cloud: it is part of the host and the path.
pub(super) const LOCATION: Form = Form {
    description: words(
        "a region such as `europe-west1`, or `global`",
        "`europe-west1` のようなリージョン、または `global`",
    ),
    pattern: "^[a-z][a-z0-9-]{0,62}$",
    holds: |text| {
        is_word(text, 63, "-")
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && !text.contains(|c: char| c.is_ascii_uppercase())
    },
    hint: |text| {
        text.contains(char::is_uppercase)
            .then_some(words("write it in small letters", "小文字で書いてください"))
    },
};

fn is_word(text: &str, max: usize, also: &str) -> bool {
    (1..=max).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c))
}

/// The gateway of an agent.
pub(super) const GATEWAY: Form = Form {
    description: words(
        "`auto`, `off` or an address such as `http://host:4141`",
        "`auto`、`off`、または `http://host:4141` のような URL",
    ),
    pattern: concat!(
        "^(auto|off|https?://",
        host!(),
        "(:",
        port!(),
        r")?(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?)$"
    ),
    holds: |text| matches!(text, AUTO | OFF) || is_url(text),
    hint: no_hint,
};

/// A part of a command.
pub(super) const ARGUMENT: Form = Form {
    description: words("1 to 4096 characters without line breaks", "改行を含まない 1〜4096 文字"),
    pattern: r"^[^\u0000-\u001f\u007f]{1,4096}$",
    holds: |text| has_length(text, 4096) && !text.contains(|c: char| c.is_ascii_control()),
    hint: no_hint,
};

/// The name of an agent: `agent/project` must be unambiguous, and it is a folder.
pub(super) const AGENT: Form = Form {
    description: words(
        "1 to 100 letters, digits, `_`, `-` and `.`, a letter or digit first",
        "英数字、`_`、`-`、`.` からなる 1〜100 文字（先頭は英数字）",
    ),
    pattern: "^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$",
    holds: is_agent,
    hint: no_hint,
};

/// The name of a project: it is a folder too.
pub(super) const PROJECT_NAME: Form = AGENT;

fn is_agent(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    has_length(text, 100) && text.bytes().all(inner) && !text.starts_with(['_', '-', '.'])
}

/// A word of an agent's command: a prompt may have many lines.
pub(super) const WORD: Form = Form {
    description: words("1 or more characters", "1 文字以上"),
    pattern: r"^[^\u0000]+$",
    holds: |text| !text.is_empty() && !text.contains('\0'),
    hint: no_hint,
};

/// A variable with its value.
pub(super) const VARIABLE: Form = Form {
    description: words("`NAME=value` without line breaks", "`NAME=value` の形（改行なし）"),
    pattern: r"^[A-Za-z_][A-Za-z0-9_]{0,199}=[^\u0000-\u001f\u007f]{0,4096}$",
    holds: |text| {
        text.split_once('=').is_some_and(|(name, value)| {
            is_variable(name)
                && value.chars().count() <= 4096
                && !value.contains(|c: char| c.is_ascii_control())
        })
    },
    hint: no_hint,
};

/// The name of a variable.
pub(super) const VARIABLE_NAME: Form = Form {
    description: words(
        "1 to 200 letters, digits and `_`, no digit first",
        "英数字と `_` からなる 1〜200 文字（先頭は数字以外）",
    ),
    pattern: "^[A-Za-z_][A-Za-z0-9_]{0,199}$",
    holds: is_variable,
    hint: no_hint,
};

fn is_variable(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    has_length(name, 200) && name.bytes().all(inner) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// When an agent is wanted.
pub(super) const WHEN: Form = Form {
    description: words(
        "`always`, `once`, `every` and a length of time such as `every 10m`, or a cron schedule such as `0 3 * * 1-5`",
        "`always`、`once`、`every 10m` のような `every` と時間の長さ、または `0 3 * * 1-5` のような cron 形式",
    ),
    pattern: "^(always|once|every [1-9][0-9]{0,8}(ms|s|m|h|d)|[0-9A-Za-z*/,?#-]{1,60}( [0-9A-Za-z*/,?#-]{1,60}){4}( [A-Za-z0-9+/_-]{1,60})?)$",
    holds: |text| {
        matches!(text, "always" | "once")
            || text.strip_prefix("every ").is_some_and(is_length)
            || is_cron(text)
    },
    hint: no_hint,
};

/// Five fields and perhaps a zone; whether the times exist is known where the schedule is used.
fn is_cron(text: &str) -> bool {
    let words: Vec<&str> = text.split(' ').collect();
    let word = |text: &str, more: &str| {
        (1..=60).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    match words.split_at_checked(5) {
        Some((fields, zone)) => {
            zone.len() <= 1
                && fields.iter().all(|field| word(field, "*/,?#-"))
                && zone.iter().all(|zone| word(zone, "+/_-"))
        }
        None => false,
    }
}

fn is_length(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).unwrap_or_default();
    (1..=9).contains(&digits) && !number.starts_with('0') && matches!(unit, "ms" | "s" | "m" | "h" | "d")
}

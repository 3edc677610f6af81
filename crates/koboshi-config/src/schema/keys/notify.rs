//! `notify`: who gets a notice when something fails, and how.

use super::super::{Field, Form, Key, Range};
use super::build::{
    AT_MOST_A_DAY, NONE, UP_TO_A_DAY, always_of_entry, at, count, entries, length, narrow, of_entry, secret,
    section, text, texts, word,
};
use super::forms::{ARGUMENT, KEY, NAME, URL};
use super::spend::ZONE;
use crate::config::Language;
use crate::notify::{ChannelConfig, ChannelKind, MailTls, SCOPES, SEVERITIES, TRIGGERS, quiet_minutes};
use crate::words::words;

const UP_TO_100: Range<u64> = Range::of(0, 100);

/// A word of an enum of a channel.
macro_rules! word_of {
    ($type:ident, $($name:ident).+) => {
        Field {
            get: |c, name| c.channels.get(name).map(|one| one.$($name).+.name()),
            set: |c, name, word| {
                if let (Some(one), Some(value)) = (c.channels.get_mut(name), word.and_then($type::from_name)) {
                    one.$($name).+ = value;
                }
            },
        }
    };
}

const QUIET: Form = Form {
    description: words("two times of day such as `22:00-07:00`", "`22:00-07:00` のような 2 つの時刻"),
    pattern: "^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]$",
    holds: |text| quiet_minutes(text).is_some(),
    hint: |_| None,
};

const SERVER: Form = Form {
    description: words(
        "host and port such as `mail.example:587`", "`mail.example:587` のようなホストとポート",
    ),
    pattern: r"^[A-Za-z0-9._-]{1,253}:[1-9][0-9]{0,3}$|^[A-Za-z0-9._-]{1,253}:[1-5][0-9]{4}$|^[A-Za-z0-9._-]{1,253}:6([0-4][0-9]{3}|5([0-4][0-9]{2}|5([0-2][0-9]|3[0-5])))$",
    holds: |text| {
        text.rsplit_once(':').is_some_and(|(host, port)| {
            let is_host = (1..=253).contains(&host.len())
                && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
            let is_port = !port.starts_with('0') && port.bytes().all(|byte| byte.is_ascii_digit());
            is_host && is_port && port.parse::<u16>().is_ok()
        })
    },
    hint: |_| None,
};

/// An address without a name; what exactly is valid is decided by the library that sends it.
const ADDRESS: Form = Form {
    description: words(
        "a mail address such as `ops@example.com`", "`ops@example.com` のようなメールアドレス",
    ),
    pattern: r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,253}$",
    holds: |text| {
        text.rsplit_once('@').is_some_and(|(local, host)| {
            (1..=64).contains(&local.len())
                && local.bytes().all(|b| b.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&b))
                && (1..=253).contains(&host.len())
                && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-".contains(&b))
        })
    },
    hint: |_| None,
};

/// The name of a channel: it is typed on the command line.
const CHANNEL: Form = Form {
    description: words(
        "1 to 60 letters, digits, `_` and `-`, a letter or digit first",
        "英数字、`_`、`-` からなる 1〜60 文字（先頭は英数字）",
    ),
    pattern: "^[A-Za-z0-9][A-Za-z0-9_-]{0,59}$",
    holds: |text| {
        text.len() <= 60
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    },
    hint: |_| None,
};

const TRIGGER: Form = Form {
    description: words(
        "`breaker`, `cooldown`, `park`, `budget` or `route`",
        "`breaker`、`cooldown`、`park`、`budget`、`route` のいずれか",
    ),
    pattern: "^(breaker|cooldown|park|budget|route)$",
    holds: |text| TRIGGERS.contains(&text),
    hint: |_| None,
};

const SCOPE: Form = Form {
    description: words(
        "`agent`, `target`, `key`, `account`, `model`, `provider`, `client` or `route`",
        "`agent`、`target`、`key`、`account`、`model`、`provider`、`client`、`route` のいずれか",
    ),
    pattern: "^(agent|target|key|account|model|provider|client|route)$",
    holds: |text| SCOPES.contains(&text),
    hint: |_| None,
};

const FAULT: Form = Form {
    description: words(
        "a kind of fault such as `quota_exceeded` (see codes.md)",
        "`quota_exceeded` のような障害の種類（codes.md を参照）",
    ),
    pattern: "^[a-z]{2,20}(_[a-z]{2,20}){0,3}$",
    holds: |text| {
        let mut parts = text.split('_');
        text.split('_').count() <= 4
            && parts
                .all(|part| (2..=20).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_lowercase()))
    },
    hint: |_| None,
};

pub(super) fn keys() -> Vec<Key> {
    let mut keys = common();
    keys.extend(of_kinds());
    keys.extend(filters());
    keys
}

fn common() -> Vec<Key> {
    vec![
        section("notify", "Notices when something fails, gets worse and is well again"),
        length(
            "notify.group_wait",
            AT_MOST_A_DAY,
            at!(notify.group_wait),
            "How long the first notice waits for others, so that what fails together is one message",
        ),
        length(
            "notify.settle",
            AT_MOST_A_DAY,
            at!(notify.settle),
            "How long something must be well again before its end is reported; what fails again before is the same episode",
        ),
        section("notify.channels", "Where notices go, each channel under a name of your choice"),
        Key {
            path: "notify.channels.*",
            shape: entries!(channels, ChannelConfig::default(), CHANNEL, required: &["kind"], short: None),
            meaning: "One channel",
            unset: NONE,
        },
    ]
}

/// What a kind of channel needs.
fn of_kinds() -> Vec<Key> {
    vec![
        word(
            "notify.channels.*.kind",
            ChannelKind::NAMES,
            word_of!(ChannelKind, kind),
            "`slack` is an incoming webhook of Slack, `webhook` a web server that takes JSON, `mail` goes to a mail server, `command` runs a program",
        ),
        secret(
            "notify.channels.*.url",
            URL,
            of_entry!(channels, url),
            "Address of the webhook; redirects are not followed",
        ),
        secret(
            "notify.channels.*.secret",
            KEY,
            of_entry!(channels, secret),
            "Key of the signature of a `webhook` (HMAC-SHA256, as Standard Webhooks has it)",
        ),
        texts(
            "notify.channels.*.command",
            ARGUMENT,
            Range::of(0, 1000),
            always_of_entry!(channels, command),
            "The program and its arguments, as a list; it gets the message as JSON on standard input, and none of the gateway's keys",
        ),
        text(
            "notify.channels.*.server",
            SERVER,
            of_entry!(channels, mail.server),
            "Host and port of the mail server",
        ),
        word(
            "notify.channels.*.tls",
            MailTls::NAMES,
            word_of!(MailTls, mail.tls),
            "`starttls` (usually port 587) and `implicit` (usually port 465) send nothing without TLS; `off` is for a server on this machine",
        ),
        text(
            "notify.channels.*.user",
            NAME,
            of_entry!(channels, mail.user),
            "Name to sign in with at the mail server",
        ),
        secret("notify.channels.*.password", KEY, of_entry!(channels, mail.password), "Password for it"),
        text("notify.channels.*.from", ADDRESS, of_entry!(channels, mail.from), "Address of the sender"),
        texts(
            "notify.channels.*.to",
            ADDRESS,
            UP_TO_100,
            always_of_entry!(channels, mail.to),
            "Addresses of the recipients",
        ),
        text(
            "notify.channels.*.channel",
            NAME,
            of_entry!(channels, channel),
            "Channel of Slack, such as `#ops`, where the webhook may choose one",
        )
        .unset("that of the webhook", "Webhook のチャンネル"),
        text(
            "notify.channels.*.username",
            NAME,
            always_of_entry!(channels, username),
            "Name under which it posts to Slack",
        ),
        text(
            "notify.channels.*.icon",
            NAME,
            always_of_entry!(channels, icon),
            "Icon with which it posts to Slack",
        ),
    ]
}

/// What a channel gets, and when.
fn filters() -> Vec<Key> {
    vec![
        word(
            "notify.channels.*.severity",
            SEVERITIES,
            always_of_entry!(channels, severity),
            "The least severity that it gets",
        ),
        texts(
            "notify.channels.*.triggers",
            TRIGGER,
            UP_TO_100,
            always_of_entry!(channels, triggers),
            "What it gets: an open `breaker`, a `cooldown`, a `park`, a `budget` that is nearly or wholly spent, a `route` of which no target can be used; none listed means all",
        ),
        texts(
            "notify.channels.*.kinds",
            FAULT,
            UP_TO_100,
            always_of_entry!(channels, kinds),
            "Kinds of faults that it gets, all if none is listed; what has no fault, such as a budget, is not filtered",
        ),
        texts(
            "notify.channels.*.scopes",
            SCOPE,
            UP_TO_100,
            always_of_entry!(channels, scopes),
            "What its notices are about, anything if none is listed; `client` is the budget of a client's key",
        ),
        word(
            "notify.channels.*.language",
            &["en", "ja"],
            Field {
                get: |c, name| c.channels.get(name).and_then(|one| one.language),
                set: |c, name, word| {
                    if let Some(one) = c.channels.get_mut(name) {
                        let known = [Language::En.name(), Language::Ja.name()];
                        one.language = known.into_iter().find(|known| Some(*known) == word);
                    }
                },
            },
            "Language of its texts",
        )
        .unset("that of `language`", "`language` の値"),
        text(
            "notify.channels.*.quiet_hours",
            QUIET,
            of_entry!(channels, quiet_hours),
            "When only critical notices are sent; the others come together afterwards",
        ),
        text(
            "notify.channels.*.zone",
            ZONE,
            of_entry!(channels, zone),
            "Time zone of its quiet hours and of the times in its texts",
        )
        .unset("the machine's", "マシンのタイムゾーン"),
        count(
            "notify.channels.*.max_per_hour",
            Range::of(1, 100_000),
            Field {
                get: |c, name| c.channels.get(name).map(|one| u64::from(one.max_per_hour)),
                set: |c, name, count| {
                    if let (Some(one), Some(count)) = (c.channels.get_mut(name), count) {
                        one.max_per_hour = narrow(count);
                    }
                },
            },
            "Maximum number of messages in an hour; further notices wait and come together",
        ),
        length(
            "notify.channels.*.timeout",
            UP_TO_A_DAY,
            always_of_entry!(channels, timeout),
            "How long sending one message may take",
        ),
    ]
}

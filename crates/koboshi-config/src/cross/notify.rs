//! What a channel of notices needs by its kind, what would be of no use to it or send a secret in the clear, and names of faults that do
//! not exist.

use std::net::IpAddr;

use koboshi::fault::Kind;

use crate::check::Problem;
use crate::config::Config;
use crate::near::nearest;
use crate::notify::{ChannelConfig, ChannelKind, MailTls};
use crate::walk::Walk;
use crate::words::{text, words};

pub(super) fn check(config: &Config, walk: &Walk<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    for (name, channel) in &config.channels {
        found.extend(incomplete(walk, name, channel));
        found.extend(password_in_the_clear(walk, name, channel));
        found.extend(unreadable_secret(walk, name, channel));
        found.extend(unknown_kinds(walk, name, channel));
    }
    found
}

/// What can be used, but is probably a mistake.
pub(super) fn warn(config: &Config, walk: &Walk<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    for (name, channel) in &config.channels {
        found.extend(of_another_kind(walk, name, channel));
        found.extend(half_a_sign_in(walk, name, channel));
        found.extend(address_in_the_clear(walk, name, channel));
    }
    found
}

/// Which kinds of channels have a key.
const OF_KINDS: &[(&str, &[ChannelKind])] = &[
    ("notify.channels.*.url", &[ChannelKind::Slack, ChannelKind::Webhook]),
    ("notify.channels.*.secret", &[ChannelKind::Webhook]),
    ("notify.channels.*.command", &[ChannelKind::Command]),
    ("notify.channels.*.server", &[ChannelKind::Mail]),
    ("notify.channels.*.tls", &[ChannelKind::Mail]),
    ("notify.channels.*.user", &[ChannelKind::Mail]),
    ("notify.channels.*.password", &[ChannelKind::Mail]),
    ("notify.channels.*.from", &[ChannelKind::Mail]),
    ("notify.channels.*.to", &[ChannelKind::Mail]),
    ("notify.channels.*.channel", &[ChannelKind::Slack]),
    ("notify.channels.*.username", &[ChannelKind::Slack]),
    ("notify.channels.*.icon", &[ChannelKind::Slack]),
];

/// Keys that a channel of this kind does not read: a `secret` of a Slack channel would sign nothing.
fn of_another_kind(walk: &Walk<'_>, name: &str, channel: &ChannelConfig) -> Vec<Problem> {
    if walk.failed("notify.channels.*.kind", name) {
        return Vec::new();
    }
    let others = OF_KINDS.iter().filter(|(_, kinds)| !kinds.contains(&channel.kind));
    others
        .filter_map(|(path, kinds)| {
            let given = walk.given(path, name)?;
            let (key, kind) = (last(path), channel.kind.name());
            let message = text!(
                "a channel of the kind `{kind}` does not read `{key}`",
                "`{kind}` のチャンネルでは `{key}` は使われません"
            );
            let kinds: Vec<String> = kinds.iter().map(|kind| format!("`{}`", kind.name())).collect();
            let (en, ja) = (kinds.join(" and "), kinds.join("、"));
            let hint = text!("leave it out; it is for {en}", "削除してください（{ja} 用のキーです）");
            Some(walk.problem(&given.at, given.spot, message, Some(hint)))
        })
        .collect()
}

/// A name without a password, or a password without a name: with one of them no sign-in works.
fn half_a_sign_in(walk: &Walk<'_>, name: &str, channel: &ChannelConfig) -> Option<Problem> {
    const USER: &str = "notify.channels.*.user";
    const PASSWORD: &str = "notify.channels.*.password";
    let mail = &channel.mail;
    let (there, missing) = match (mail.user.is_some(), mail.password.is_some()) {
        (true, false) => (USER, PASSWORD),
        (false, true) => (PASSWORD, USER),
        _ => return None,
    };
    if channel.kind != ChannelKind::Mail || walk.failed(missing, name) {
        return None;
    }
    let given = walk.given(there, name)?;
    let (there, missing) = (last(there), last(missing));
    let message = text!(
        "`{there}` is of no use without `{missing}`: both are needed to sign in",
        "`{there}` だけで `{missing}` がないため、サインインできません"
    );
    let hint = text!(
        "add `{missing}`, or leave out `{there}`",
        "`{missing}` を追加するか、`{there}` を削除してください"
    );
    Some(walk.problem(&given.at, given.spot, message, Some(hint)))
}

/// A password that everyone between here and the mail server could read.
fn password_in_the_clear(walk: &Walk<'_>, name: &str, channel: &ChannelConfig) -> Option<Problem> {
    let mail = &channel.mail;
    let is_near = mail
        .server
        .as_deref()
        .and_then(|server| server.rsplit_once(':'))
        .is_some_and(|(host, _)| is_here(host));
    if channel.kind != ChannelKind::Mail || mail.tls != MailTls::Off || mail.password.is_none() || is_near {
        return None;
    }
    let given = walk.given("notify.channels.*.tls", name)?;
    let message = words(
        "with `tls: off` the password would be sent unencrypted to another machine",
        "`tls: off` では、パスワードが暗号化されずに他のマシンへ送信されます",
    );
    let hint = words(
        "write `tls: starttls` (port 587) or `tls: implicit` (port 465)",
        "`tls: starttls`（ポート 587）または `tls: implicit`（ポート 465）にしてください",
    );
    Some(walk.problem(&given.at, given.spot, message.into(), Some(hint.into())))
}

/// A secret that says that it is base64, and is not: nothing could be signed with it.
fn unreadable_secret(walk: &Walk<'_>, name: &str, channel: &ChannelConfig) -> Option<Problem> {
    let encoded = channel.secret.as_ref()?.expose().strip_prefix("whsec_")?;
    let body = encoded.trim_end_matches('=');
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
    let is_whole = encoded.len().is_multiple_of(4) && encoded.len() - body.len() <= 2;
    if is_whole && !body.is_empty() && body.bytes().all(is_letter) {
        return None;
    }
    let given = walk.given("notify.channels.*.secret", name)?;
    let message = words(
        "the secret begins with `whsec_`, and what follows is not base64",
        "シークレットは `whsec_` で始まっていますが、続く部分が base64 ではありません",
    );
    let hint = words(
        "copy it again from the receiver, or leave out `whsec_` to use the text itself as the key",
        "受信側からもう一度コピーするか、文字列をそのまま鍵として使う場合は `whsec_` を外してください",
    );
    Some(walk.problem(&given.at, given.spot, message.into(), Some(hint.into())))
}

/// An address of another machine without TLS: it is a secret itself, and so is what is sent to it.
fn address_in_the_clear(walk: &Walk<'_>, name: &str, channel: &ChannelConfig) -> Option<Problem> {
    let url = channel.url.as_ref()?.expose().strip_prefix("http://")?;
    let place = url.split(['/', '?', '#']).next().unwrap_or_default();
    let place = place.rsplit_once('@').map_or(place, |(_, host)| host);
    let host = if place.starts_with('[') {
        place.trim_start_matches('[').split(']').next().unwrap_or_default()
    } else {
        place.split(':').next().unwrap_or_default()
    };
    if is_here(host) {
        return None;
    }
    let given = walk.given("notify.channels.*.url", name)?;
    let message = words(
        "notices and the address itself are sent unencrypted to another machine",
        "通知とこのアドレス自体が、暗号化されずに他のマシンへ送信されます",
    );
    let hint = words("use an `https://` address", "`https://` のアドレスを使ってください");
    Some(walk.problem(&given.at, given.spot, message.into(), Some(hint.into())))
}

/// Whether a host is this machine.
fn is_here(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The last word of a path.
fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// The keys without which a channel of this kind cannot send, and whether they are there.
fn needs(channel: &ChannelConfig) -> Vec<(&'static str, bool)> {
    match channel.kind {
        ChannelKind::Slack | ChannelKind::Webhook => vec![("notify.channels.*.url", channel.url.is_some())],
        ChannelKind::Mail => vec![
            ("notify.channels.*.server", channel.mail.server.is_some()),
            ("notify.channels.*.from", channel.mail.from.is_some()),
            ("notify.channels.*.to", !channel.mail.to.is_empty()),
        ],
        ChannelKind::Command => vec![("notify.channels.*.command", !channel.command.is_empty())],
    }
}

fn incomplete(walk: &Walk<'_>, name: &str, channel: &ChannelConfig) -> Vec<Problem> {
    let Some(given) = walk.given("notify.channels.*.kind", name) else { return Vec::new() };
    let missing = needs(channel).into_iter().filter(|(path, is_there)| {
        // One that could not be read is reported already.
        !is_there && !walk.failed(path, name)
    });
    missing
        .map(|(path, _)| {
            let key = last(path);
            let kind = channel.kind.name();
            let message = text!(
                "a channel of the kind `{kind}` needs `{key}`",
                "`{kind}` のチャンネルには `{key}` が必要です"
            );
            let hint = text!("add `{key}` to the channel", "チャンネルに `{key}` を追加してください");
            walk.problem(&given.at, given.spot, message, Some(hint))
        })
        .collect()
}

fn unknown_kinds(walk: &Walk<'_>, name: &str, channel: &ChannelConfig) -> Vec<Problem> {
    let Some(given) = walk.given("notify.channels.*.kinds", name) else { return Vec::new() };
    let unknown = given.parts.iter().zip(&channel.kinds).filter(|(_, kind)| Kind::from_name(kind).is_none());
    unknown
        .map(|(spot, kind)| {
            let quoted = walk.quote(kind);
            let message =
                text!("there is no kind of fault `{quoted}`", "`{quoted}` という障害の種類はありません");
            let hint = match nearest(kind, Kind::ALL.iter().map(|kind| kind.name())) {
                Some(near) => text!("did you mean `{near}`?", "`{near}` のことですか？"),
                None => words("`koboshi codes` lists them", "`koboshi codes` で一覧を表示できます").into(),
            };
            walk.problem(&given.at, *spot, message, Some(hint))
        })
        .collect()
}

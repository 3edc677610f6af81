//! What a channel of notices needs by its kind, and names of faults that do not exist.

use koboshi::fault::Kind;

use crate::check::Problem;
use crate::config::Config;
use crate::near::nearest;
use crate::notify::{ChannelConfig, ChannelKind};
use crate::walk::Walk;
use crate::words::{text, words};

pub(super) fn check(config: &Config, walk: &Walk<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    for (name, channel) in &config.channels {
        found.extend(incomplete(walk, name, channel));
        found.extend(unknown_kinds(walk, name, channel));
    }
    found
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
            let key = path.rsplit('.').next().unwrap_or(path);
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

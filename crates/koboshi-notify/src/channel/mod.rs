//! The channels: what each sends for a message, and how.

mod command;
mod mail;
mod slack;
mod webhook;

use std::sync::Arc;
use std::sync::LazyLock;
use std::time::Duration;

use jiff::Timestamp;
use koboshi::fault::Kind;
use koboshi::notice::{Message, Notice};
use koboshi::redact::Redactor;
use koboshi_config::notify::{ChannelConfig, ChannelKind};
use koboshi_report::notice::{NoticeText, NoticeWords};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::http::{Http, HttpAnswer, HttpRequest, LocalFuture};

/// The most characters of what a server answered.
const MAX_ANSWER: usize = 200;

static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::new);

/// Takes secrets out of texts.
pub(crate) fn redactor() -> &'static Redactor {
    &REDACTOR
}

/// A message in the words of one channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Letter {
    /// The same for the same notices, and safe in a header.
    pub id: String,
    /// Which process tells: two deployments may share a channel.
    pub node: String,
    /// One line.
    pub heading: String,
    /// Its notices in words, as many as are written out.
    pub texts: Vec<NoticeText>,
    /// What is said after them.
    pub rest: Vec<String>,
    /// All of it as plain text.
    pub plain: String,
    /// All of it for programs.
    pub json: Value,
}

impl Letter {
    /// Writes a message.
    #[must_use]
    pub fn of(message: &Message, words: &NoticeWords<'_>) -> Self {
        let (texts, rest) = words.texts(message);
        let heading = words.heading(message);
        let id = id_of(&message.id);
        let notices: Vec<Value> = message.notices.iter().map(|one| as_json(one, words)).collect();
        let json = json!({
            "type": "koboshi.notice",
            "id": id,
            "severity": message.severity().name(),
            "heading": heading,
            "node": message.node,
            "dropped": message.dropped,
            "notices": notices,
        });
        let plain = format!("{}\n\n-- \nKoboshi · {}", words.plain(message), message.node);
        Self { id, node: message.node.clone(), heading, texts, rest, plain, json }
    }

    /// A letter that says only that the channel works.
    #[must_use]
    pub fn test(channel: &str, words: &NoticeWords<'_>, now: Timestamp) -> Self {
        let said = words.phrases.text(words.lang, "notice-test", &[("channel", channel)]).unwrap_or_default();
        let id = id_of(&format!("test/{channel}/{now}"));
        let json =
            json!({"type": "koboshi.test", "id": id, "severity": "info", "heading": said, "notices": []});
        Self {
            id,
            node: String::new(),
            heading: said.clone(),
            texts: Vec::new(),
            rest: Vec::new(),
            plain: said,
            json,
        }
    }
}

/// An id that fits into headers: subjects may have any letters.
fn id_of(name: &str) -> String {
    let digest = Sha256::digest(name.as_bytes());
    let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("msg_{hex}")
}

/// A notice for programs.
fn as_json(notice: &Notice, words: &NoticeWords<'_>) -> Value {
    let text = words.text(notice);
    let kind = notice.kind.as_deref().and_then(Kind::from_name);
    json!({
        "id": notice.id,
        "episode": notice.episode(),
        "stage": notice.stage.name(),
        "severity": notice.severity.name(),
        "trigger": notice.trigger.name(),
        "subject": notice.subject,
        "kind": notice.kind,
        "sub": notice.sub,
        "code": kind.map(|kind| kind.code(words.prefix)),
        "since": notice.since,
        "until": notice.until,
        "ended": notice.ended,
        "decided": notice.at,
        "title": text.title,
        "lines": text.lines,
        "detail": text.detail,
        "cost": notice.damage.map(|damage| json!({
            "failed_attempts": damage.faults,
            "is_partial": damage.is_partial,
            "lost_attempts": damage.lost_attempts,
            "lost_cost": koboshi::spend::Amount::of_parts(damage.lost_cost).units(),
            "lesser_cost": koboshi::spend::Amount::of_parts(damage.lesser_cost).units(),
            "currency": words.currency,
        })),
    })
}

/// A letter that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Taken {
    /// Who did not take it while others did, and why.
    pub except: Option<String>,
}

/// Why a letter did not arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendError {
    /// In words, without secrets.
    pub why: String,
    /// How long the receiver asks to wait.
    pub wait: Option<Duration>,
    /// The receiver says that it will not take this letter, however often it is sent.
    pub is_final: bool,
}

impl SendError {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), wait: None, is_final: false }
    }
}

/// Sends a letter, within the time that the channel has for it.
pub fn send(
    channel: &ChannelConfig,
    letter: &Letter,
    http: &Arc<dyn Http>,
    now: Timestamp,
) -> LocalFuture<Result<Taken, SendError>> {
    let sending = match channel.kind {
        ChannelKind::Slack => posted(slack::request(channel, letter), http),
        ChannelKind::Webhook => posted(webhook::request(channel, letter, now), http),
        ChannelKind::Mail => mail::send(channel, letter),
        ChannelKind::Command => command::send(channel, letter),
    };
    let limit = channel.timeout;
    Box::pin(async move {
        let late = || SendError::new(format!("no answer within {} s", limit.as_secs_f64()));
        tokio::time::timeout(limit, sending).await.unwrap_or_else(|_| Err(late()))
    })
}

fn posted(
    request: Result<HttpRequest, SendError>,
    http: &Arc<dyn Http>,
) -> LocalFuture<Result<Taken, SendError>> {
    let http = Arc::clone(http);
    Box::pin(async move {
        let answer =
            http.post(request?).await.map_err(|why| SendError::new(redactor().excerpt(&why, MAX_ANSWER)))?;
        judge(&answer)
    })
}

fn judge(answer: &HttpAnswer) -> Result<Taken, SendError> {
    match answer.status {
        200..=299 => Ok(Taken::default()),
        status @ 300..=399 => Err(SendError::new(format!(
            "the server answered {status}: it wants to redirect, which is not followed"
        ))),
        status => {
            let said = redactor().excerpt(&answer.body, MAX_ANSWER);
            let said = if said.is_empty() { String::new() } else { format!(": {said}") };
            Err(SendError {
                wait: answer.retry_after,
                is_final: is_final(status),
                ..SendError::new(format!("the server answered {status}{said}"))
            })
        }
    }
}

/// Whether a status says that the request itself is at fault: then sending it again does not help.
const fn is_final(status: u16) -> bool {
    const TIMEOUT: u16 = 408;
    const TOO_EARLY: u16 = 425;
    const TOO_MANY: u16 = 429;
    matches!(status, 400..=499) && !matches!(status, TIMEOUT | TOO_EARLY | TOO_MANY)
}

/// The address of a webhook.
fn url(channel: &ChannelConfig) -> Result<String, SendError> {
    let url = channel.url.as_ref().ok_or_else(|| SendError::new("the channel has no `url`"))?;
    Ok(url.expose().to_owned())
}

//! Frames that one connection gets, and the words in those that all get, in the reader's language.

use std::time::Duration;

use koboshi::fault::{Kind, Later, Sub};
use koboshi::session::{Body, ErrorBody, Event, RetryLater, RetryWhere, Texts};
use koboshi_report::phrase::Lang;
use serde_json::{Value, json};

use crate::route::plan::Plan;
use crate::shared::state::SharedState;

/// What ends a connection: its number for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CloseCode(pub(crate) u16);

impl CloseCode {
    pub(crate) const BYE: Self = Self(1000);
    pub(crate) const GOING_AWAY: Self = Self(4200);
    pub(crate) const TOO_SLOW: Self = Self(4208);
    pub(crate) const BAD_FRAMES: Self = Self(4400);
    pub(crate) const NO_TICKET: Self = Self(4401);
    pub(crate) const FORBIDDEN: Self = Self(4403);
    pub(crate) const UNKNOWN_SESSION: Self = Self(4404);
    pub(crate) const VERSION: Self = Self(4406);
    pub(crate) const SUPERSEDED: Self = Self(4409);
    pub(crate) const ENDED: Self = Self(4410);
    pub(crate) const TOO_LARGE: Self = Self(4413);
    pub(crate) const FAULT: Self = Self(4500);
    pub(crate) const TOO_MANY: Self = Self(4529);
}

/// The errors that one connection gets.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) kind: Kind,
    pub(crate) sub: Option<Sub>,
    /// The phrase with its words, where those of its kind speak of something else.
    pub(crate) words: Option<&'static str>,
    /// What a developer can use.
    pub(crate) detail: Option<String>,
    /// The order that it answers.
    pub(crate) id: Option<String>,
    pub(crate) after: Option<Duration>,
    /// The connection ends with this.
    pub(crate) close: Option<CloseCode>,
}

impl Problem {
    pub(crate) const fn of(kind: Kind) -> Self {
        Self { kind, sub: None, words: None, detail: None, id: None, after: None, close: None }
    }

    pub(crate) const fn told(mut self, phrase: &'static str) -> Self {
        self.words = Some(phrase);
        self
    }

    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    pub(crate) fn answering(mut self, id: Option<&str>) -> Self {
        self.id = id.map(str::to_owned);
        self
    }

    pub(crate) const fn closing(mut self, code: CloseCode) -> Self {
        self.close = Some(code);
        self
    }

    pub(crate) const fn after(mut self, after: Duration) -> Self {
        self.after = Some(after);
        self
    }

    /// The frame that says it.
    pub(crate) fn frame(&self, state: &SharedState, plan: &Plan, lang: Lang) -> Value {
        let mut body = error(plan, self.kind, "connection");
        body.recoverable = self.close.is_none();
        body.id.clone_from(&self.id);
        body.retry.after_ms = self.after.map(millis);
        body.texts = texts(state, lang, self.kind, self.sub);
        if let Some(phrase) = self.words {
            let text =
                |part: &str| state.phrases.text(lang, &format!("{phrase}.{part}"), &[]).unwrap_or_default();
            (body.texts.message, body.texts.suggestion) = (text("message"), text("suggestion"));
        }
        let mut frame = json!(body);
        if let Some(fields) = frame.as_object_mut() {
            fields.remove("lang");
            fields.insert("type".to_owned(), "error".into());
            if let Some(detail) = &self.detail {
                fields.insert("detail".to_owned(), detail.as_str().into());
            }
        }
        frame
    }
}

pub(crate) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// An error of this kind, without words.
pub(crate) fn error(plan: &Plan, kind: Kind, scope: &str) -> ErrorBody {
    let row = kind.row();
    ErrorBody {
        code: row.stream_code,
        kind: row.name.to_owned(),
        kbs: kind.code(&plan.config.code_prefix),
        recoverable: true,
        retry: RetryLater { later: row.later != Later::No, after_ms: None },
        scope: scope.to_owned(),
        id: None,
        request: None,
        texts: Texts::default(),
    }
}

/// The words for a kind.
pub(crate) fn texts(state: &SharedState, lang: Lang, kind: Kind, sub: Option<Sub>) -> Texts {
    Texts {
        lang: lang.name().to_owned(),
        message: state.phrases.message(lang, kind, sub),
        suggestion: state.phrases.suggestion(lang, kind, sub),
    }
}

/// An event as one reader gets it.
pub(crate) fn written(state: &SharedState, event: &Event, lang: Lang) -> String {
    let texts_of = |kind: &str, texts: &Texts| -> Texts {
        if texts.lang == lang.name() && !texts.message.is_empty() {
            return Texts { lang: String::new(), ..texts.clone() };
        }
        let kind = Kind::from_name(kind).unwrap_or(Kind::Internal);
        Texts { lang: String::new(), ..self::texts(state, lang, kind, None) }
    };
    let mut event = std::borrow::Cow::Borrowed(event);
    match &event.body {
        Body::Error(error) => {
            let texts = texts_of(&error.kind, &error.texts);
            if let Body::Error(error) = &mut event.to_mut().body {
                error.texts = texts;
            }
        }
        Body::Retry(retry) => {
            let own = retry.texts.lang == lang.name() && !retry.texts.message.is_empty();
            let message = if own {
                retry.texts.message.clone()
            } else {
                retry_message(
                    state,
                    lang,
                    (retry.place, retry.kind.as_str()),
                    Duration::from_millis(retry.delay_ms),
                )
            };
            if let Body::Retry(retry) = &mut event.to_mut().body {
                retry.texts = Texts { message, ..Texts::default() };
            }
        }
        Body::Degraded { kind, texts, .. } => {
            let texts = texts_of(kind, texts);
            if let Body::Degraded { texts: own, .. } = &mut event.to_mut().body {
                *own = texts;
            }
        }
        _ => {}
    }
    serde_json::to_string(&*event).unwrap_or_default()
}

/// What a person reads while the next try is waited for.
fn retry_message(
    state: &SharedState,
    lang: Lang,
    (place, kind): (RetryWhere, &str),
    delay: Duration,
) -> String {
    let is_busy = matches!(Kind::from_name(kind), Some(Kind::Overloaded | Kind::RateLimited));
    let id = match place {
        RetryWhere::Recover => "session-recover",
        RetryWhere::Same if is_busy => "session-retry-busy",
        RetryWhere::Same => "session-retry",
    };
    let wait = state.phrases.countdown(lang, delay);
    state.phrases.text(lang, id, &[("wait", &wait)]).unwrap_or_default()
}

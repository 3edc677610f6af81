//! What is asked of the simulated provider, and what it plays.
//!
//! The order of decisions: the name (a wrong one is an error), falls that need no request, the request (a wrong one is
//! an error), falls that depend on it, and then a healthy answer with one thing done to it.

use std::time::Duration;

use bytes::Bytes;

use crate::answer::Answer;
use crate::beats::{Beats, Spoil};
use crate::chance::Print;
use crate::error::{Failure, PAGE, excerpt, in_band, rate_headers};
use crate::fall::{Fall, Manner, Place, Plan};
use crate::frames::{Frames, Stamp};
use crate::request::Request;
use crate::whole;

/// A request to the simulated provider.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The model without `sim/`, such as `ok` or `rate-429?retry_after=2`.
    pub model: &'a str,
    /// The body of the request.
    pub body: &'a [u8],
    /// What happened before.
    pub tally: Tally,
}

/// What happened before this request, told by whoever counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// How often this model was asked before.
    pub nth: u64,
    /// How long ago the provider began.
    pub elapsed: Duration,
    /// Wall time in seconds since 1970, for the `created` of answers.
    pub wall: i64,
}

/// What the provider sends, and when.
#[derive(Debug)]
pub struct Play {
    /// How it begins.
    pub head: Head,
    /// The pieces of the body, in order.
    pub beats: Beats,
    /// How it ends after the last piece.
    pub end: End,
}

/// How a play begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// An answer begins.
    Answer {
        /// After this pause.
        after: Duration,
        /// HTTP status.
        status: u16,
        /// Headers, names in lower case. Length and transfer coding are up to the transport.
        headers: Vec<(&'static str, String)>,
    },
    /// The connection dies before any answer.
    Reset {
        /// After this pause.
        after: Duration,
    },
    /// The connection stays open and nothing ever comes.
    Silence,
}

/// One piece of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// The pause before it.
    pub after: Duration,
    /// What is sent.
    pub bytes: Bytes,
}

/// How a play ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// The body ends as it should.
    Clean,
    /// The connection dies: a reset, no end mark of the transport.
    Cut,
    /// The connection stays open, and nothing more comes.
    Stall,
}

/// What the provider sends for this request to its chat completions.
#[must_use]
pub fn play(ask: &Ask<'_>) -> Play {
    let stage = Stage::of(ask);
    match stage.plan() {
        Ok(plan) => stage.chat(&plan),
        Err(play) => play,
    }
}

/// A request on its way to an answer.
#[derive(Debug)]
pub(crate) struct Stage<'a> {
    pub(crate) ask: &'a Ask<'a>,
    /// Distinguishes this call from others.
    print: Print,
}

impl<'a> Stage<'a> {
    pub(crate) fn of(ask: &'a Ask<'a>) -> Self {
        Self { ask, print: Print::new().add(ask.model).add(&ask.tally.nth.to_string()) }
    }

    /// What the name asks for; a play at once where no request needs to be read.
    pub(crate) fn plan(&self) -> Result<Plan, Play> {
        let Plan { manner, fall } = Plan::read(self.ask.model, self.ask.tally)
            .map_err(|wrong| self.failure(Failure::name(&wrong, self.ask.model), Duration::ZERO))?;
        let nothing = |head| Err(Play { head, beats: Beats::none(), end: End::Clean });
        match fall {
            Fall::Reset => nothing(Head::Reset { after: manner.latency }),
            Fall::Silence => nothing(Head::Silence),
            Fall::Error { trouble, wait } => {
                Err(self.failure(Failure::trouble(trouble, wait, self.ask.model), manner.latency))
            }
            Fall::Html => {
                let page = Bytes::from_static(PAGE.as_bytes());
                Err(self.answer(manner.latency, "text/html; charset=utf-8", Beats::whole(page), End::Clean))
            }
            _ => Ok(Plan { manner, fall }),
        }
    }

    fn chat(&self, plan: &Plan) -> Play {
        let Manner { latency, gap, refuses_prefill, .. } = plan.manner;
        let request = match Request::read(self.ask.body) {
            Ok(request) => request,
            Err(failure) => return self.failure(failure, latency),
        };
        let tokens = request.tokens();
        if refuses_prefill && request.prefill().is_some() {
            return self.failure(Failure::prefill(), latency);
        }
        if let Fall::Context { limit } = plan.fall
            && limit.is_none_or(|limit| tokens > limit)
        {
            return self.failure(Failure::context(tokens, limit), latency);
        }
        let stamp = Stamp {
            id: format!("chatcmpl-sim{:016x}", self.print.value() ^ request.print().value()),
            model: excerpt(self.ask.model, 1000),
            created: self.ask.tally.wall,
            prompt: tokens,
        };
        let answer = Answer::of(&request, &plan.manner, plan.fall);
        if !request.streams() {
            return self.in_one(plan, &stamp, answer);
        }
        let (head, first) = match plan.fall {
            Fall::SlowFirst { after, late_head: true } => (latency.saturating_add(after), Duration::ZERO),
            Fall::SlowFirst { after, late_head: false } => (latency, after),
            _ => (latency, Duration::ZERO),
        };
        let (spoil, end) = spoiled(plan.fall, &answer);
        let frames = Frames::new(&stamp, answer, request.wants_usage());
        self.answer(head, "text/event-stream; charset=utf-8", Beats::stream(frames, spoil, first, gap), end)
    }

    /// An answer that is no stream.
    fn in_one(&self, plan: &Plan, stamp: &Stamp, answer: Answer) -> Play {
        let latency = match plan.fall {
            Fall::SlowFirst { after, .. } => plan.manner.latency.saturating_add(after),
            _ => plan.manner.latency,
        };
        let filtered = match plan.fall {
            // The first frame of a stream has no text: the same words come before the filter either way.
            Fall::Filter { after } => Some(after.saturating_sub(1)),
            _ => None,
        };
        let body = match plan.fall {
            Fall::InBand { .. } => in_band().to_string(),
            Fall::Empty => whole::empty(stamp),
            _ => whole::body(stamp, answer, filtered),
        };
        self.json(latency, body, plan.fall)
    }

    /// A JSON body, broken as the fall says.
    pub(crate) fn json(&self, latency: Duration, body: String, fall: Fall) -> Play {
        let (length, end) = match fall {
            Fall::Break { at, end } => (whole::broken_at(&body, at), end),
            Fall::BadChunk { .. } => (body.len() * 3 / 5, End::Clean),
            Fall::NoDone { open: true } => (body.len(), End::Stall),
            _ => (body.len(), End::Clean),
        };
        let mut bytes = Bytes::from(body);
        bytes.truncate(length);
        self.answer(latency, "application/json", Beats::whole(bytes), end)
    }

    fn answer(&self, after: Duration, kind: &'static str, beats: Beats, end: End) -> Play {
        let mut headers = self.headers(kind);
        headers.extend(rate_headers(10_000, 9_999, "6ms"));
        headers.extend([
            ("x-ratelimit-limit-tokens", "30000000".to_owned()),
            ("x-ratelimit-remaining-tokens", "29999000".to_owned()),
            ("x-ratelimit-reset-tokens", "2ms".to_owned()),
        ]);
        Play { head: Head::Answer { after, status: 200, headers }, beats, end }
    }

    pub(crate) fn failure(&self, failure: Failure, after: Duration) -> Play {
        let Failure { status, headers: own, body } = failure;
        let mut headers = self.headers("application/json");
        headers.extend(own);
        Play { head: Head::Answer { after, status, headers }, beats: Beats::whole(body), end: End::Clean }
    }

    fn headers(&self, kind: &'static str) -> Vec<(&'static str, String)> {
        vec![
            ("content-type", kind.to_owned()),
            ("x-request-id", format!("req_sim{:016x}", self.print.value())),
            ("openai-version", "2020-10-01".to_owned()),
            ("openai-organization", "org-sim".to_owned()),
        ]
    }
}

/// What a fall does to a stream, and how that ends.
fn spoiled(fall: Fall, answer: &Answer) -> (Spoil, End) {
    let half = || Spoil::Break { after: answer.size() / 2 + 1, bytes: 0 };
    match fall {
        Fall::Break { at, end } => {
            let spoil = match at {
                Place::Frame { after, bytes } => Spoil::Break { after, bytes },
                Place::Half => half(),
                Place::Call { after } => match answer.calls.first() {
                    Some(call) => {
                        Spoil::BreakCall { pieces: after.unwrap_or(call.arguments.len() as u64 / 2) }
                    }
                    None => half(),
                },
            };
            (spoil, end)
        }
        Fall::BadChunk { after, extra } => (Spoil::Frame { after, extra }, End::Clean),
        Fall::InBand { after } => (Spoil::Error { after }, End::Clean),
        Fall::Filter { after } => (Spoil::Filter { after }, End::Clean),
        Fall::NoDone { open } => (Spoil::NoDone, if open { End::Stall } else { End::Clean }),
        _ => (Spoil::Nothing, End::Clean),
    }
}

//! What is asked of the simulated provider, and what it plays.
//!
//! The order of decisions: the name (a wrong one is an error), falls that need no request, the request (a wrong one is
//! an error), falls that depend on it, and then a healthy answer with one thing done to it.

use std::time::Duration;

use bytes::Bytes;

use koboshi_wire::Dialect;

use crate::acts::Acts;
use crate::answer::Answer;
use crate::beats::{Beats, Damage};
use crate::chance::Fingerprint;
use crate::error::{self, ErrorContext, Failure, PAGE, Problem, excerpt};
use crate::fall::{CutPlace, ErrorCase, Fall, Plan, PlayOptions};
use crate::request::{BodyError, Request, with_model};
use crate::whole;
use crate::writer::{self, Stamp, WholeAnswer, Writer};

/// A request to the simulated provider.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ask<'a> {
    /// The model without `sim/`, such as `ok` or `rate-429?retry_after=2`.
    pub model: &'a str,
    /// The dialect of the request and of the answer.
    pub dialect: Dialect,
    /// Whether a stream is asked for, where the path says it, as Gemini's does; else the body says it.
    pub stream: Option<bool>,
    /// Gemini without `alt=sse`: the stream is one JSON list.
    pub list: bool,
    /// The body of the request.
    pub body: &'a [u8],
    /// What happened before.
    pub tally: Tally,
}

/// What happened before this request. The caller counts it.
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

/// What the provider sends for this request.
///
/// The same conversation gets the same text in every dialect.
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
    print: Fingerprint,
}

impl<'a> Stage<'a> {
    pub(crate) fn of(ask: &'a Ask<'a>) -> Self {
        Self { ask, print: Fingerprint::new().add(ask.model).add(&ask.tally.nth.to_string()) }
    }

    /// What the name asks for; a play at once where no request needs to be read.
    pub(crate) fn plan(&self) -> Result<Plan, Play> {
        let Plan { options, fall } = Plan::read(self.ask.model, self.ask.tally)
            .map_err(|wrong| self.failure(&Problem::name(wrong, self.ask.model), Duration::ZERO))?;
        let nothing = |head| Err(Play { head, beats: Beats::none(), end: End::Clean });
        match fall {
            Fall::Reset => nothing(Head::Reset { after: options.latency }),
            Fall::Silence => nothing(Head::Silence),
            Fall::Error { trouble: ErrorCase::Filter, .. } if self.ask.dialect.answers_blocked_prompts() => {
                Err(self.blocked(options.latency))
            }
            Fall::Error { trouble, wait } => {
                Err(self.failure(&Problem::of_case(trouble, wait, self.ask.model), options.latency))
            }
            Fall::Html => {
                let page = Bytes::from_static(PAGE.as_bytes());
                Err(self.answer(options.latency, "text/html; charset=utf-8", Beats::whole(page), End::Clean))
            }
            _ => Ok(Plan { options, fall }),
        }
    }

    /// Reads the request; a play at once where it cannot be read. `made` is where a body is kept that had to be changed for that.
    pub(crate) fn read<'r>(
        &self,
        read: fn(&Ask<'r>, &'r [u8]) -> Result<Request<'r>, BodyError>,
        made: &'r mut Vec<u8>,
        latency: Duration,
    ) -> Result<Request<'r>, Play>
    where
        'a: 'r,
    {
        let problem = match read(self.ask, self.ask.body) {
            Ok(request) => return Ok(request),
            Err(BodyError::InvalidName(problem)) => problem,
            Err(BodyError::NoModel) => {
                *made = with_model(self.ask.body);
                match read(self.ask, made) {
                    Ok(request) => return Ok(request),
                    Err(BodyError::InvalidName(problem)) => problem,
                    Err(BodyError::NoModel) => Problem::Request {
                        says: "you must provide a model parameter".to_owned(),
                        param: Some("model".to_owned()),
                    },
                }
            }
        };
        Err(self.failure(&problem, latency))
    }

    fn chat(&self, plan: &Plan) -> Play {
        let PlayOptions { latency, gap, refuses_prefill, .. } = plan.options;
        let mut made = Vec::new();
        let request = match self.read(Request::read, &mut made, latency) {
            Ok(request) => request,
            Err(play) => return play,
        };
        if refuses_prefill && request.prefill().is_some() {
            return self.failure(&Problem::Prefill, latency);
        }
        let tokens = request.tokens();
        if let Fall::Context { limit } = plan.fall
            && limit.is_none_or(|limit| tokens > limit)
        {
            return self.failure(&Problem::context(tokens, limit), latency);
        }
        let stamp = self.stamp(&request);
        let answer = Answer::of(&request, self.ask.dialect, &plan.options, plan.fall);
        if !request.streams() {
            return self.in_one(plan, &stamp, &answer);
        }
        let (head, first) = match plan.fall {
            Fall::SlowFirst { after, late_head: true } => (latency.saturating_add(after), Duration::ZERO),
            Fall::SlowFirst { after, late_head: false } => (latency, after),
            _ => (latency, Duration::ZERO),
        };
        let (spoil, end) = spoiled(plan.fall, &answer);
        let usage = self.ask.dialect.has_optional_usage() && request.wants_usage();
        let writer = Writer::new(self.ask.dialect, stamp, usage, self.ask.list);
        let beats = Beats::stream(Acts::new(answer, usage), writer, spoil, first, gap);
        self.answer(head, self.kind_of_stream(), beats, end)
    }

    fn stamp(&self, request: &Request<'_>) -> Stamp {
        let number = self.print.value() ^ request.print().value();
        let id = match self.ask.dialect {
            Dialect::Chat => format!("chatcmpl-sim{number:016x}"),
            Dialect::Messages => format!("msg_sim{number:016x}"),
            Dialect::Responses => format!("resp_sim{number:016x}"),
            Dialect::Gemini => format!("sim{number:016x}"),
        };
        Stamp {
            id,
            model: excerpt(self.ask.model, 1000),
            created: self.ask.tally.wall,
            prompt: request.tokens(),
        }
    }

    const fn kind_of_stream(&self) -> &'static str {
        match self.ask.dialect {
            Dialect::Gemini if self.ask.list => "application/json; charset=utf-8",
            Dialect::Gemini => "text/event-stream",
            Dialect::Chat | Dialect::Responses | Dialect::Messages => "text/event-stream; charset=utf-8",
        }
    }

    /// An answer that is no stream.
    fn in_one(&self, plan: &Plan, stamp: &Stamp, answer: &Answer) -> Play {
        let latency = match plan.fall {
            Fall::SlowFirst { after, .. } => plan.options.latency.saturating_add(after),
            _ => plan.options.latency,
        };
        let filtered = match plan.fall {
            // The first act of a stream has no text: the same text comes before the filter either way.
            Fall::Filter { after } => Some(after.saturating_sub(1)),
            _ => None,
        };
        let body = match plan.fall {
            Fall::InBand { .. } => writer::failed(self.ask.dialect, stamp),
            Fall::Empty => writer::empty(self.ask.dialect, stamp),
            _ => writer::whole(self.ask.dialect, stamp, &WholeAnswer::of(answer, filtered)),
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

    /// A prompt that Google does not let through. The path says what kind of answer is wanted.
    fn blocked(&self, latency: Duration) -> Play {
        let body = error::blocked(&excerpt(self.ask.model, 1000)).to_string();
        if !self.ask.stream.unwrap_or(false) {
            return self.answer(latency, "application/json", Beats::whole(Bytes::from(body)), End::Clean);
        }
        let frame = if self.ask.list { format!("[{body}]") } else { format!("data: {body}\r\n\r\n") };
        self.answer(latency, self.kind_of_stream(), Beats::whole(Bytes::from(frame)), End::Clean)
    }

    fn answer(&self, after: Duration, kind: &'static str, beats: Beats, end: End) -> Play {
        let mut headers = error::headers(self.ask.dialect, kind, &self.request_id());
        headers.extend(error::limits(self.ask.dialect, self.ask.tally.wall));
        Play { head: Head::Answer { after, status: 200, headers }, beats, end }
    }

    pub(crate) fn failure(&self, problem: &Problem, after: Duration) -> Play {
        let id = self.request_id();
        let scene = ErrorContext { wall: self.ask.tally.wall, request: &id };
        let Failure { status, headers: own, body } = problem.failure(self.ask.dialect, scene);
        let mut headers = error::headers(self.ask.dialect, "application/json", &id);
        headers.extend(own);
        Play { head: Head::Answer { after, status, headers }, beats: Beats::whole(body), end: End::Clean }
    }

    fn request_id(&self) -> String {
        format!("req_sim{:016x}", self.print.value())
    }
}

/// What a fall does to a stream, and how that ends.
fn spoiled(fall: Fall, answer: &Answer) -> (Damage, End) {
    let half = || Damage::Break { after: answer.size() / 2 + 1, bytes: 0 };
    match fall {
        Fall::Break { at, end } => {
            let spoil = match at {
                CutPlace::Frame { after, bytes } => Damage::Break { after, bytes },
                CutPlace::Half => half(),
                CutPlace::Call { after } => match answer.calls.first() {
                    Some(call) => {
                        Damage::BreakCall { pieces: after.unwrap_or(call.arguments.len() as u64 / 2) }
                    }
                    None => half(),
                },
            };
            (spoil, end)
        }
        Fall::BadChunk { after, extra } => (Damage::Frame { after, extra }, End::Clean),
        Fall::InBand { after } => (Damage::Error { after }, End::Clean),
        Fall::Filter { after } => (Damage::Filter { after }, End::Clean),
        Fall::NoDone { open } => (Damage::NoDone, if open { End::Stall } else { End::Clean }),
        _ => (Damage::Nothing, End::Clean),
    }
}

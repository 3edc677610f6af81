//! Runs the built-in provider: counts requests per model, and plays answers with real pauses.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use http::StatusCode;
use koboshi::fault::Fault;
use koboshi::time::Moment;
use koboshi_sim::{Ask, Head, Tally, count, embed, play, without_made_up_calls};
use koboshi_store::{Clock, SystemClock};
use tokio::time::sleep;

use super::Body;
use super::UpstreamAnswer;
use super::connection_fault::{Stage as ConnectionStage, fault_of, unresolved};
use super::rehearsal::{Cue, RehearsedTarget, Stage};
use crate::http::upstream::interface::Interface;
use crate::http::upstream::mark::StreamMark;
use koboshi_wire::http1::Fields;

/// How many model names are counted apart; the names come from clients.
const MAX_NAMES: usize = 10_000;

/// Shared by all cores, so that "the first time" means once.
pub(crate) struct SimProvider {
    clock: SystemClock,
    started: Moment,
    asked: Mutex<HashMap<String, u64>>,
    /// Stands in for all providers, in a rehearsal.
    stage: Option<Arc<Stage>>,
}

impl SimProvider {
    pub(crate) fn new() -> Self {
        let clock = SystemClock;
        Self { started: clock.moment(), clock, asked: Mutex::default(), stage: None }
    }

    /// For a rehearsal.
    pub(crate) fn on(stage: Arc<Stage>) -> Self {
        Self { stage: Some(stage), ..Self::new() }
    }

    pub(super) fn rehearses(&self) -> bool {
        self.stage.is_some()
    }

    /// Plays what the script says of this target.
    pub(super) async fn rehearse(
        &self,
        target: &RehearsedTarget,
        interface: Interface,
        streams: bool,
        body: &[u8],
    ) -> Result<UpstreamAnswer, Box<Fault>> {
        let cue = self.stage.as_ref().map_or(Cue::Unresolved, |stage| stage.ask(target));
        match cue {
            Cue::Play(model) => {
                let nth = self.count(&format!("{} {model}", target.name));
                self.perform(&model, nth, interface, streams, body).await
            }
            Cue::Unresolved => Err(unresolved(&io::Error::other("no such name (rehearsed)"))),
            Cue::Untrusted => {
                let untrusted = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
                Err(fault_of(
                    &io::Error::new(io::ErrorKind::InvalidData, untrusted),
                    ConnectionStage::Connect,
                ))
            }
        }
    }

    /// Plays the answer to a request.
    pub(super) async fn play(
        &self,
        model: &str,
        stands_in: bool,
        interface: Interface,
        streams: bool,
        body: &[u8],
    ) -> Result<UpstreamAnswer, Box<Fault>> {
        let nth = self.count(model);
        // Where it stands in for a missing provider, a real agent may be asking, and would run made-up tool calls. The name is repeated in the
        // answer, so it stays unchanged where no tools can be offered.
        let model = if stands_in && offers_tools(body) { without_made_up_calls(model) } else { model.into() };
        self.perform(&model, nth, interface, streams, body).await
    }

    async fn perform(
        &self,
        model: &str,
        nth: u64,
        interface: Interface,
        streams: bool,
        body: &[u8],
    ) -> Result<UpstreamAnswer, Box<Fault>> {
        let tally = Tally {
            nth,
            elapsed: self.clock.moment().since(self.started),
            wall: self.clock.wall().as_second(),
        };
        let asked = Ask { model, body, tally, stream: Some(streams), ..Ask::default() };
        let play = match interface {
            Interface::Generate(dialect) => play(&Ask { dialect, ..asked }),
            Interface::Count(dialect) => count(&Ask { dialect, ..asked }),
            Interface::Embeddings => embed(&asked),
        };
        match play.head {
            Head::Answer { after, status, headers } => {
                let mark = match interface {
                    Interface::Generate(dialect) if streams && status == 200 => Some(StreamMark::of(dialect)),
                    _ => None,
                };
                if !after.is_zero() {
                    sleep(after).await;
                }
                let head = Fields::of(headers.iter().map(|(name, value)| (*name, value.as_bytes())));
                Ok(UpstreamAnswer {
                    status: StatusCode::from_u16(status).unwrap_or_default(),
                    head,
                    body: Body::played(play.beats, play.end, mark),
                })
            }
            Head::Reset { after } => {
                sleep(after).await;
                let reset = io::Error::from(io::ErrorKind::ConnectionReset);
                Err(fault_of(&reset, ConnectionStage::Waiting))
            }
            Head::Silence => std::future::pending().await,
        }
    }

    fn count(&self, model: &str) -> u64 {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = asked.get_mut(model) {
            *count = count.saturating_add(1);
            return *count - 1;
        }
        if asked.len() < MAX_NAMES {
            asked.insert(model.to_owned(), 1);
        }
        0
    }
}

/// Whether this request may offer tools.
fn offers_tools(body: &[u8]) -> bool {
    [&br#""tools""#[..], br#""functions""#]
        .iter()
        .any(|field| body.windows(field.len()).any(|part| part == *field))
}

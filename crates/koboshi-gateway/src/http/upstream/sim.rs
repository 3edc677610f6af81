//! The built-in provider on its stage: it counts who was asked how often, and plays with real pauses.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use http::StatusCode;
use koboshi::fault::Fault;
use koboshi::time::Moment;
use koboshi_sim::{Ask, Head, Tally, count, embed, play, without_made_up_calls};
use koboshi_store::{Clock, SystemClock};
use tokio::time::sleep;

use super::Body;
use super::UpstreamAnswer;
use super::connection_fault::{Stage, fault_of};
use crate::http::upstream::interface::Interface;
use crate::http::upstream::mark::StreamMark;
use koboshi_wire::http1::Fields;

/// Model names that are counted apart; the names come from clients.
const MAX_NAMES: usize = 10_000;

/// Shared by all cores, so that "the first time" means once.
pub(crate) struct SimProvider {
    clock: SystemClock,
    started: Moment,
    asked: Mutex<HashMap<String, u64>>,
}

impl SimProvider {
    pub(crate) fn new() -> Self {
        let clock = SystemClock;
        Self { started: clock.moment(), clock, asked: Mutex::default() }
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
        let tally = Tally {
            nth: self.count(model),
            elapsed: self.clock.moment().since(self.started),
            wall: self.clock.wall().as_second(),
        };
        // Where it only stands in, a real agent may be asking, and would run what is made up. The name comes back in the answer, so
        // it stays as it is where no tools can be on offer.
        let model = if stands_in && offers_tools(body) { without_made_up_calls(model) } else { model.into() };
        let model = &*model;
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
                let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                Err(fault_of(&reset, Stage::Waiting))
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

/// Whether tools may be on offer in this request.
fn offers_tools(body: &[u8]) -> bool {
    [&br#""tools""#[..], br#""functions""#]
        .iter()
        .any(|field| body.windows(field.len()).any(|part| part == *field))
}

//! What is known of an answer while it is followed: what it has said, what of it is held back, and whether it is whole.
//!
//! It knows neither sockets nor clients: [`follow`](crate::stream::follow) fills it, [`relay`](crate::stream::relay) sends it.

use std::time::Duration;

use bytes::Bytes;
use koboshi::fault::{Fault, Kind, Sub};
use koboshi_wire::Dialect;
use koboshi_wire::any::Events;
use koboshi_wire::dialect::finish;
use koboshi_wire::sse::Framer;
use koboshi_wire::step::{Step, Usage};
use tokio::time::Instant;

use crate::attempt::Limits;
use crate::stream::firewall::ToolCall;

/// How much is held back.
const MOST_HELD: usize = 32 * 1024 * 1024;
/// Before content, only so much. Responses repeat instructions and tools of their request there, twice, and those of an agent are long.
const MOST_BEFORE_CONTENT: usize = 8 * 1024 * 1024;
/// After the last choice has ended, usage and the terminal mark may take so long.
pub(crate) const AFTER_THE_END: Duration = Duration::from_secs(1);

/// Something for the client.
#[derive(Debug)]
pub(crate) enum Pass {
    /// A frame as it came; the voice knows of it.
    Raw(Bytes),
    /// A frame as it came, and what it says: needed if it goes out later, or if the calls in it must be written anew.
    Frame(Bytes, Box<Step<'static>>),
    /// What a frame of another dialect says, to be said when it goes out.
    Said(Box<Step<'static>>),
    /// Text in a frame of our own.
    Text(String),
    /// Frames of our own.
    Own(Bytes),
}

/// An answer that is whole.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(crate) calls: Vec<ToolCall>,
    /// What did not go out yet, in order.
    pub(crate) held: Vec<Pass>,
    pub(crate) finishes: Vec<(u32, String)>,
    pub(crate) usage: Option<Usage>,
    /// The text in what is held.
    pub(crate) text: String,
    held_bytes: usize,
    pub(crate) has_content: bool,
    /// The provider's own tools were at work: an answer even where no word follows, but nothing that the client must see at once.
    pub(crate) has_hosted: bool,
    /// Choices that have begun, as bits.
    pub(crate) begun: u128,
    /// When it last said something; signs of life say nothing.
    spoke: Instant,
    /// It has said something since then.
    pub(crate) speaks: bool,
    /// It has gone on after its end, so that only the end of its body says that all was said.
    pub(crate) ends_often: bool,
    /// Its last end came alone, as those do that servers mean: one that comes along with content may not be the last.
    pub(crate) ended_alone: bool,
    /// The client need not wait for the rest, which can only be the cost: here is where it will stand.
    pub(crate) rest: Option<Framer>,
    /// Reads its frames.
    pub(crate) events: Events,
    /// The terminal mark has come.
    pub(crate) is_done: bool,
    /// A content filter ended it.
    pub(crate) filtered: Option<Box<Fault>>,
}

impl Followed {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self {
            calls: Vec::new(),
            held: Vec::new(),
            finishes: Vec::new(),
            usage: None,
            text: String::new(),
            held_bytes: 0,
            has_content: false,
            has_hosted: false,
            begun: 0,
            spoke: Instant::now(),
            speaks: false,
            ends_often: false,
            ended_alone: false,
            rest: None,
            events: Events::of(dialect),
            is_done: false,
            filtered: None,
        }
    }

    /// Until when it must go on, and what it is called if it does not.
    pub(crate) fn limit(&mut self, limits: &Limits) -> (Instant, Sub) {
        if std::mem::take(&mut self.speaks) {
            self.spoke = Instant::now();
        }
        let (limit, sub) = match (self.is_whole(), self.has_content) {
            (true, _) => (self.spoke + AFTER_THE_END, Sub::Idle),
            (false, true) => (self.spoke + limits.idle, Sub::Idle),
            (false, false) => (limits.first, Sub::FirstContent),
        };
        if limit >= limits.total { (limits.total, Sub::Total) } else { (limit, sub) }
    }

    /// A choice has ended, for this reason.
    pub(crate) fn ended(&mut self, choice: u32, reason: &str, dialect: Dialect) {
        let known = self.finishes.iter_mut().find(|(other, _)| *other == choice);
        match known.filter(|_| dialect == Dialect::Gemini) {
            Some((_, known)) => {
                self.ends_often = true;
                reason.clone_into(known);
            }
            None => self.finishes.push((choice, reason.to_owned())),
        }
    }

    /// Whether every choice that began has ended.
    pub(crate) fn is_whole(&self) -> bool {
        !self.finishes.is_empty() && self.begun & !self.ended_choices() == 0
    }

    fn ended_choices(&self) -> u128 {
        self.finishes.iter().fold(0, |bits, (choice, _)| bits | bit(*choice))
    }

    /// Whether all of so many choices were made and ended, and nothing can follow but the cost. A call may be followed by another
    /// one whatever was said of the end, and a choice that has not begun by its beginning.
    pub(crate) fn has_said_all(&self, choices: u32) -> bool {
        let ended = self.ended_choices().count_ones();
        self.has_content && self.ended_alone && self.calls.is_empty() && self.is_whole() && ended >= choices
    }

    /// Keeps something back.
    pub(crate) fn hold(&mut self, pass: Pass) -> Result<(), Box<Fault>> {
        self.held_bytes += match &pass {
            Pass::Raw(raw) | Pass::Own(raw) => raw.len(),
            Pass::Frame(raw, step) => raw.len() + weight(step),
            Pass::Said(step) => weight(step),
            Pass::Text(text) => text.len() + 200,
        };
        let most = if self.has_content { MOST_HELD } else { MOST_BEFORE_CONTENT };
        if self.held_bytes > most {
            return Err(too_long());
        }
        self.held.push(pass);
        Ok(())
    }

    /// What was kept back.
    pub(crate) fn take_held(&mut self) -> Vec<Pass> {
        self.held_bytes = 0;
        std::mem::take(&mut self.held)
    }

    /// An answer that its limit ended before any content is what the client asked for, and one that a filter ended says so.
    pub(crate) fn may_be_empty(&self) -> bool {
        let says_why = |reason: &str| matches!(reason, finish::LENGTH | finish::CONTENT_FILTER);
        self.finishes.iter().all(|(_, reason)| says_why(reason))
    }
}

/// It is longer than anybody can hold.
pub(crate) fn too_long() -> Box<Fault> {
    Box::new(Fault::of(Kind::ResponseInvalid, "gateway.too_long"))
}

/// What it takes to keep what a frame says, beside the frame.
fn weight(step: &Step<'_>) -> usize {
    let own = [&step.id, &step.model, &step.text, &step.thought, &step.signature, &step.refused];
    let calls = step.calls.iter().flat_map(|call| [&call.id, &call.name, &call.arguments, &call.signature]);
    let texts = own.into_iter().chain(calls).flatten().map(|text| text.len());
    size_of::<Step<'_>>() + texts.sum::<usize>()
}

fn bit(choice: u32) -> u128 {
    1_u128.checked_shl(choice).unwrap_or(1 << 127)
}

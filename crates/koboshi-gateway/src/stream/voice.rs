//! What the client of one stream hears: frames of the upstream as they came, and frames of ours between and after them, in its dialect.
//!
//! One voice for a request, whoever answers it: numbers of blocks, ids and the end must be right across all of them. Where a keep-alive has opened
//! the answer, the frames of an upstream that would open it again are left out and the others pass: its end has the id by which the provider knows
//! it. Only the numbers of the frames may then repeat, which no client looks at. Where a word of ours about the answer stands in it, all is said anew.

use std::cell::{RefCell, RefMut};
use std::time::Duration;

use bytes::Bytes;
use koboshi_config::gateway::KeepAlive;
use koboshi_wire::Dialect;
use koboshi_wire::any::{Manner, Request, Writer};
use koboshi_wire::chat::frames as write;
use koboshi_wire::failure::Failure;
use koboshi_wire::step::{Step, Usage};
use koboshi_wire::writer::{Head, WholeCall};
use serde_json::Value;
use tokio::time::sleep;

use crate::shared::story::{RequestId, Story};

/// Long enough for a client on the same continent, too short for a person.
const APART: Duration = Duration::from_millis(50);

/// The voice of a request, made when it is first heard: a whole answer needs none.
pub(crate) struct LateVoice<'r> {
    story: &'r Story,
    request: &'r Request<'r>,
    style: KeepAlive,
    made: RefCell<Option<Box<Voice>>>,
}

impl<'r> LateVoice<'r> {
    pub(crate) fn of(story: &'r Story, request: &'r Request<'r>, style: KeepAlive) -> Self {
        Self { story, request, style, made: RefCell::new(None) }
    }

    pub(crate) fn borrow_mut(&self) -> RefMut<'_, Voice> {
        RefMut::map(self.made.borrow_mut(), |made| {
            &mut **made.get_or_insert_with(|| Box::new(Voice::of(self.story, self.request, self.style)))
        })
    }
}

/// The voice of one stream.
pub(crate) struct Voice {
    /// The answer's names: the first one's id, and the model that really answers.
    pub(crate) names: Head,
    manner: Manner,
    style: KeepAlive,
    writer: Option<Writer>,
    /// What the request is called, and the model that it asks for: the answer's names if nobody says others.
    request: RequestId,
    asked: String,
    /// Frames of a chat upstream have passed, and its end.
    has_passed: bool,
    has_ended: bool,
    /// The cost that the frame of its end told.
    told: Option<Usage>,
    /// The upstream told it once more, by itself.
    tells_again: bool,
    /// A word of ours about the answer stands in it.
    is_ours: bool,
    /// A keep-alive has opened the answer.
    is_opened: bool,
}

impl Voice {
    fn of(story: &Story, request: &Request<'_>, style: KeepAlive) -> Self {
        let manner = Manner {
            dialect: request.dialect(),
            forward_signatures: true,
            include_usage: request.include_usage(),
            legacy: request.is_legacy(),
            frames_only: style == KeepAlive::Frame,
            list: story.list,
        };
        Self {
            names: Head { created: story.wall.as_second(), ..Head::default() },
            manner,
            style,
            writer: None,
            request: story.id.clone(),
            asked: request.model().to_owned(),
            has_passed: false,
            has_ended: false,
            told: None,
            tells_again: false,
            is_ours: false,
            is_opened: false,
        }
    }

    /// What the client speaks.
    pub(crate) fn dialect(&self) -> Dialect {
        self.manner.dialect
    }

    /// Whether frames of an upstream of the client's dialect can pass as they are.
    pub(crate) fn lets_pass(&self) -> bool {
        !self.is_ours
    }

    /// An answer begins. Signatures go on where its vendor is the client's.
    pub(crate) fn forward_signatures(&mut self, keep: bool) {
        self.manner.forward_signatures = keep;
        if let Some(writer) = &mut self.writer {
            writer.forward_signatures(keep);
        }
    }

    /// Nothing of an answer was seen: the next one has its own names.
    pub(crate) fn begin(&mut self) {
        if self.is_ours {
            return;
        }
        self.names.id.clear();
        self.names.model.clear();
        if !self.is_opened {
            self.writer = None;
        }
        (self.has_passed, self.has_ended) = (false, false);
        (self.told, self.tells_again) = (None, false);
    }

    /// From now on only frames of ours go out.
    pub(crate) fn take_over(&mut self) {
        // Frames of chat completions open nothing.
        self.is_ours |= self.dialect() != Dialect::Chat;
    }

    fn writer(&mut self) -> &mut Writer {
        let Self { names, request, asked, manner, has_passed, has_ended, .. } = self;
        self.writer.get_or_insert_with(|| {
            let mut head = names.clone();
            if head.id.is_empty() {
                head.id = own_id(manner.dialect, request);
            }
            if head.model.is_empty() {
                head.model.clone_from(asked);
            }
            let mut writer = Writer::new(head, *manner);
            if *has_passed {
                let finish = if *has_ended { vec![(0, "stop".into())] } else { Vec::new() };
                writer.passed(&Step { choices: 1, finish, ..Step::default() });
            }
            writer
        })
    }

    /// A frame of the upstream goes out as it came.
    pub(crate) fn passed(&mut self, step: &Step<'_>) {
        if self.dialect() != Dialect::Chat {
            self.writer().passed(step);
            return;
        }
        self.has_passed = true;
        if step.finish.iter().any(|(choice, _)| *choice == 0) {
            self.has_ended = true;
            self.told = step.usage;
        }
        if let Some(writer) = &mut self.writer {
            writer.passed(step);
        }
    }

    /// Whether the client wants one list: of a frame only its data goes out, as an element of that.
    pub(crate) fn lists(&self) -> bool {
        self.manner.list
    }

    /// What of a frame of the upstream goes out, now that it does.
    pub(crate) fn pass_on(&mut self, raw: Bytes, step: &Step<'_>) -> Bytes {
        if self.lists() {
            // The reader has taken it for text.
            let data = std::str::from_utf8(&raw).unwrap_or_default();
            return self.writer().pass(step, data);
        }
        self.passed(step);
        // Only frames about the whole answer name it.
        let opens = step.id.is_some() && !step.done && !step.has_content();
        if self.is_opened && opens { Bytes::new() } else { raw }
    }

    /// What stands before content, with a word about the answer as a whole.
    pub(crate) fn open(&mut self, about: &Value) -> Bytes {
        if self.dialect() == Dialect::Chat {
            // Frames of an upstream that follow open nothing, and those of ours not again.
            self.has_passed = true;
            return write::role_chunk(&self.names, Some(about));
        }
        self.writer().open(Some(about))
    }

    /// What a step says, in frames of ours.
    pub(crate) fn say(&mut self, step: &Step<'_>) -> Bytes {
        self.writer().say(step)
    }

    /// Text in frames of ours.
    pub(crate) fn text(&mut self, text: &str) -> Bytes {
        self.say(&Step { text: Some(text.into()), ..Step::default() })
    }

    /// Whole calls of this choice.
    pub(crate) fn calls(&mut self, choice: u32, calls: &[WholeCall<'_>]) -> Bytes {
        // Only chat completions have more than one.
        if choice > 0 && self.dialect() == Dialect::Chat {
            return match calls {
                [only] if self.manner.legacy => write::function_chunk(&self.names, choice, only),
                _ => write::calls_chunk_from(&self.names, choice, 0, calls),
            };
        }
        self.writer().calls(calls)
    }

    /// The upstream tells the cost once more by itself. That frame is held back, and ours stands for it.
    pub(crate) fn tells_cost(&mut self) {
        self.tells_again = true;
    }

    /// The end of the answer and the terminal mark, as far as they have not passed. Clients add costs up: what was told is not told again.
    pub(crate) fn finish(&mut self, reason: &str, usage: Option<&Usage>) -> Bytes {
        let usage = usage.filter(|usage| self.tells_again || self.told.as_ref() != Some(*usage));
        self.writer().finish(reason, usage)
    }

    /// The error that ends the stream.
    pub(crate) fn error(&mut self, failure: &Failure<'_>) -> Bytes {
        self.writer().error(failure)
    }

    /// Keeps the silent stream open.
    pub(crate) fn breath(&mut self) -> Bytes {
        match (self.style, self.dialect()) {
            (KeepAlive::Off, _) => Bytes::new(),
            (KeepAlive::Frame, Dialect::Chat) => write::empty_chunk(&Head::default()),
            (_, Dialect::Chat) => Bytes::from_static(write::COMMENT),
            (_, dialect) => {
                // What keeps a stream of responses open stands behind its opening. Elsewhere nothing is opened, and the names are not known yet.
                let is_first = self.writer.is_none();
                self.is_opened |= is_first && dialect == Dialect::Responses;
                let breath = self.writer().keep_alive();
                if is_first && dialect != Dialect::Responses {
                    self.writer = None;
                }
                breath
            }
        }
    }
}

/// Google's clients know an error in a stream only where one read brings it and nothing else: right behind a frame it would be lost. So what
/// was sent before is given the time to be read.
pub(crate) async fn apart(story: &Story) {
    if story.dialect == Dialect::Gemini && !story.list {
        sleep(APART).await;
    }
}

/// An id of ours, as the dialect's clients know them.
pub(crate) fn own_id(dialect: Dialect, request: &str) -> String {
    let plain: String = request.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(48).collect();
    match dialect {
        Dialect::Chat => format!("chatcmpl-{request}"),
        Dialect::Messages => format!("msg_{plain}"),
        Dialect::Responses => format!("resp_{plain}"),
        Dialect::Gemini => plain,
    }
}

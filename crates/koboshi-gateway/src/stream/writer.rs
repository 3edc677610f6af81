//! Writes the client's stream: frames of ours between and after those that are sent unchanged, in its dialect.
//!
//! One writer per request, whichever target answers: numbers of blocks, ids and the end must be right across all of them. Where a keep-alive
//! frame has opened the answer, the upstream's frames that would open it again are left out and the others pass: its end has the id by
//! which the provider knows it. Only the numbers of the frames may then repeat, which no client reads. Where the answer has an annotation of
//! ours, all frames are written here.

use std::cell::{RefCell, RefMut};
use std::time::Duration;

use bytes::Bytes;
use koboshi_config::gateway::KeepAlive;
use koboshi_wire::Dialect;
use koboshi_wire::any::{Request, StreamOptions, Writer};
use koboshi_wire::chat::frames;
use koboshi_wire::failure::Failure;
use koboshi_wire::step::{Step, Usage};
use koboshi_wire::writer::{Head, WholeCall};
use serde_json::Value;
use tokio::time::sleep;

use crate::shared::context::{RequestContext, RequestId};

/// Long enough for a client on the same continent, too short for a person to notice.
const ERROR_DELAY: Duration = Duration::from_millis(50);

/// The writer of a request, created on first use: unary answers never need one.
pub(crate) struct LazyStreamWriter<'r> {
    context: &'r RequestContext,
    request: &'r Request<'r>,
    style: KeepAlive,
    writer: RefCell<Option<Box<StreamWriter>>>,
}

impl<'r> LazyStreamWriter<'r> {
    pub(crate) fn new(context: &'r RequestContext, request: &'r Request<'r>, style: KeepAlive) -> Self {
        Self { context, request, style, writer: RefCell::new(None) }
    }

    pub(crate) fn borrow_mut(&self) -> RefMut<'_, StreamWriter> {
        RefMut::map(self.writer.borrow_mut(), |writer| {
            &mut **writer
                .get_or_insert_with(|| Box::new(StreamWriter::new(self.context, self.request, self.style)))
        })
    }
}

/// Writes one stream.
pub(crate) struct StreamWriter {
    /// The names of the answer: the id of the first one, and the model that really answers.
    pub(crate) names: Head,
    options: StreamOptions,
    style: KeepAlive,
    writer: Option<Writer>,
    /// The id of the request and the model that it asks for: the names of the answer where no target states others.
    request: RequestId,
    requested_model: String,
    /// Whether frames of a chat upstream were sent, and its end.
    has_passed: bool,
    has_ended: bool,
    /// The cost in the frame of its end.
    usage_at_end: Option<Usage>,
    /// Whether the upstream sent it once more, in a frame of its own.
    sends_usage: bool,
    /// Whether all frames are written here.
    writes_all: bool,
    /// Whether a keep-alive frame has opened the answer.
    is_opened: bool,
}

impl StreamWriter {
    fn new(context: &RequestContext, request: &Request<'_>, style: KeepAlive) -> Self {
        let options = StreamOptions {
            dialect: request.dialect(),
            forward_signatures: true,
            include_usage: request.include_usage(),
            legacy: request.is_legacy(),
            frames_only: style == KeepAlive::Frame,
            list: context.list,
        };
        Self {
            names: Head { created: context.wall.as_second(), ..Head::default() },
            options,
            style,
            writer: None,
            request: context.id.clone(),
            requested_model: request.model().to_owned(),
            has_passed: false,
            has_ended: false,
            usage_at_end: None,
            sends_usage: false,
            writes_all: false,
            is_opened: false,
        }
    }

    /// The client's dialect.
    pub(crate) fn dialect(&self) -> Dialect {
        self.options.dialect
    }

    /// Whether frames of an upstream of the client's dialect can be sent unchanged.
    pub(crate) fn lets_bytes_pass(&self) -> bool {
        !self.writes_all
    }

    /// Sets whether thinking signatures are forwarded: where the vendor of the answer is the client's.
    pub(crate) fn forward_signatures(&mut self, keep: bool) {
        self.options.forward_signatures = keep;
        if let Some(writer) = &mut self.writer {
            writer.forward_signatures(keep);
        }
    }

    /// Begins again, after an answer that the client has not seen: the next one has its own names.
    pub(crate) fn begin(&mut self) {
        if self.writes_all {
            return;
        }
        self.names.id.clear();
        self.names.model.clear();
        if !self.is_opened {
            self.writer = None;
        }
        (self.has_passed, self.has_ended) = (false, false);
        (self.usage_at_end, self.sends_usage) = (None, false);
    }

    /// From now on all frames are written here.
    pub(crate) fn write_all_frames(&mut self) {
        self.writes_all |= !self.dialect().has_standalone_frames();
    }

    fn writer(&mut self) -> &mut Writer {
        let Self { names, request, requested_model, options, has_passed, has_ended, .. } = self;
        self.writer.get_or_insert_with(|| {
            let mut head = names.clone();
            if head.id.is_empty() {
                head.id = answer_id(options.dialect, request);
            }
            if head.model.is_empty() {
                head.model.clone_from(requested_model);
            }
            let mut writer = Writer::new(head, *options);
            if *has_passed {
                let finish = if *has_ended { vec![(0, "stop".into())] } else { Vec::new() };
                writer.passed(&Step { choices: 1, finish, ..Step::default() });
            }
            writer
        })
    }

    /// Records that a frame of the upstream is sent unchanged.
    pub(crate) fn passed(&mut self, step: &Step<'_>) {
        if !self.dialect().has_standalone_frames() {
            self.writer().passed(step);
            return;
        }
        self.has_passed = true;
        if step.finish.iter().any(|(choice, _)| *choice == 0) {
            self.has_ended = true;
            self.usage_at_end = step.usage;
        }
        if let Some(writer) = &mut self.writer {
            writer.passed(step);
        }
    }

    /// Whether the client reads one list: of a frame only its data is sent, as an element of the list.
    pub(crate) fn writes_list(&self) -> bool {
        self.options.list
    }

    /// The part of an upstream frame that is sent.
    pub(crate) fn pass_on(&mut self, raw: Bytes, step: &Step<'_>) -> Bytes {
        if self.writes_list() {
            // The decoder has checked that it is text.
            let data = std::str::from_utf8(&raw).unwrap_or_default();
            return self.writer().pass(step, data);
        }
        self.passed(step);
        // Only frames about the whole answer have its id.
        let opens = step.id.is_some() && !step.done && !step.has_content();
        if self.is_opened && opens { Bytes::new() } else { raw }
    }

    /// The opening of the answer, with an annotation about the whole answer.
    pub(crate) fn open(&mut self, annotation: &Value) -> Bytes {
        if self.dialect().has_standalone_frames() {
            // Following frames of an upstream open nothing, and ours not again.
            self.has_passed = true;
            return frames::role_chunk(&self.names, Some(annotation));
        }
        self.writer().open(Some(annotation))
    }

    /// A step, in frames of ours.
    pub(crate) fn write(&mut self, step: &Step<'_>) -> Bytes {
        self.writer().write_step(step)
    }

    /// Text in frames of ours.
    pub(crate) fn text(&mut self, text: &str) -> Bytes {
        self.write(&Step { text: Some(text.into()), ..Step::default() })
    }

    /// Complete calls of this choice.
    pub(crate) fn calls(&mut self, choice: u32, calls: &[WholeCall<'_>]) -> Bytes {
        if choice > 0 && self.dialect().streams_several_choices() {
            return match calls {
                [only] if self.options.legacy => frames::function_chunk(&self.names, choice, only),
                _ => frames::calls_chunk_from(&self.names, choice, 0, calls),
            };
        }
        self.writer().calls(calls)
    }

    /// Records that the upstream sends the cost in a frame of its own. That frame is not sent, ours replaces it.
    pub(crate) fn upstream_sends_usage(&mut self) {
        self.sends_usage = true;
    }

    /// The end of the answer and the terminal mark, unless they were sent. Clients add costs up: a cost that was sent is not sent again.
    pub(crate) fn finish(&mut self, reason: &str, usage: Option<&Usage>) -> Bytes {
        let usage = usage.filter(|usage| self.sends_usage || self.usage_at_end.as_ref() != Some(*usage));
        self.writer().finish(reason, usage)
    }

    /// The error that ends the stream.
    pub(crate) fn error(&mut self, failure: &Failure<'_>) -> Bytes {
        self.writer().error(failure)
    }

    /// A frame that keeps a silent stream open.
    pub(crate) fn keep_alive_frame(&mut self) -> Bytes {
        let is_standalone = self.dialect().has_standalone_frames();
        match self.style {
            KeepAlive::Off => Bytes::new(),
            KeepAlive::Frame if is_standalone => frames::empty_chunk(&Head::default()),
            _ if is_standalone => Bytes::from_static(frames::COMMENT),
            _ => {
                let (is_first, opens) = (self.writer.is_none(), self.dialect().opens_before_keep_alive());
                self.is_opened |= is_first && opens;
                let frame = self.writer().keep_alive();
                // Nothing was opened, and the names of the answer are not known yet.
                if is_first && !opens {
                    self.writer = None;
                }
                frame
            }
        }
    }
}

/// Google's clients recognise an error in a stream only where one read returns it alone: right behind a frame it would be lost. So the
/// client gets time to read what was sent before.
pub(crate) async fn separate_error(context: &RequestContext) {
    if context.dialect.has_bare_stream_errors() && !context.list {
        sleep(ERROR_DELAY).await;
    }
}

/// An id of ours, in the form that the dialect's clients expect.
pub(crate) fn answer_id(dialect: Dialect, request: &str) -> String {
    let plain: String = request.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(48).collect();
    match dialect {
        Dialect::Chat => format!("chatcmpl-{request}"),
        Dialect::Messages => format!("msg_{plain}"),
        Dialect::Responses => format!("resp_{plain}"),
        Dialect::Gemini => plain,
    }
}

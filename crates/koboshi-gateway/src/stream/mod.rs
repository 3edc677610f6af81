//! An answer on its way to the client: streamed or whole, cut and resumed, its tool calls checked.
//!
//! # A stream is a state machine
//!
//! ```text
//!   provider ─► block ─► decode ─► judge ─► forward ─► client        one frame after the other
//!               │        frame     event    by the phase:
//!               timeouts to step            skip │ buffer │ commit │ forward
//! ```
//!
//! [`Stream::serve`](machine::Stream::serve) makes attempts until one answer is whole. Within an attempt every frame takes three steps:
//!
//! 1. **[`decode`]** reads the next block within its timeout, cuts it into frames and decodes each (to a `Step`, in no dialect).
//! 2. **[`judge`]** adds the step to the [`Answer`](judge::Answer) and returns an event: nothing for the client, must wait, content;
//!    or the error that ends the attempt. An answer is whole when every choice that began has its finish reason: the terminal mark alone
//!    proves nothing, and its absence does no harm.
//! 3. **[`forward`]** asks the phase what to do with the event and does it. Frames of the client's own dialect are sent unchanged;
//!    those of another dialect, and all frames after a change of target, are written by the [`StreamWriter`](writer::StreamWriter).
//!
//! [`finish`] ends a whole answer: its tool calls pass the [`firewall`], the buffer is sent, and the end.
//!
//! # Phases and events
//!
//! [`Phase`](phase::Phase) is what the client has, with its data. Its four functions are this table; a test compares them with it.
//!
//! | phase \ event | nothing | wait | content | whole | failed, can retry and resume | failed, can retry | failed, final | begins again |
//! |---|---|---|---|---|---|---|---|---|
//! | held: no content | skip | buffer | **committed**: commit | **ended**: commit, finish | retry | retry | **ended**: report | nothing |
//! | committed: content of this attempt | skip | buffer | forward | **ended**: finish | **resuming**: retry | **ended**: error frame | **ended**: error frame | nothing |
//! | resuming: content of an earlier attempt | skip | buffer | forward | **ended**: finish | retry | **ended**: error frame | **ended**: error frame | **held**: rewind |
//! | ended | skip | skip | skip | nothing | nothing | nothing | nothing | nothing |
//!
//! A cell names the next phase where it changes. *Commit* sends the head, the buffer and the frame. *Retry* drops the buffer and asks the next target,
//! invisibly in `held`. *Report* returns the error to the caller, who may still send another answer; *error frame* sends it in the stream. A
//! stream can be resumed while the client has only text ([`DeliveredContent`](phase::DeliveredContent)), and by a client that can *begin again* (a session's): a target
//! that cannot continue the text sends the answer from its start, and *rewind* tells the client that it has nothing now.

pub(crate) mod blocks;
pub(crate) mod decode;
pub(crate) mod finish;
pub(crate) mod firewall;
pub(crate) mod forbidden;
pub(crate) mod forward;
pub(crate) mod judge;
pub(crate) mod keep_alive;
pub(crate) mod machine;
pub(crate) mod phase;
pub(crate) mod resume;
pub(crate) mod routed_request;
pub(crate) mod trailing;
pub(crate) mod unary;
pub(crate) mod whole;
pub(crate) mod writer;

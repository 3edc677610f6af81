//! Tells people when something fails: Slack, webhooks, mail, commands.
//!
//! What is the matter is read from the store that all processes of a fleet share, as state (`facts`); the core decides who
//! gets which notice ([`koboshi::notice`]); `koboshi-report` writes it; a [`channel`] sends it. [`Notifications`] has a thread of its own, which
//! no request waits for.
//!
//! Of all processes with a store one sends: the one with the lease. What was decided is written into the store before it is sent,
//! and taken out afterwards. So a process that is killed in between loses nothing, and what is sent twice has the same id.
//!
//! It deliberately knows no gateway and no supervisor: both start it, from outside.

#![forbid(unsafe_code)]

pub mod channel;
mod damage;
mod facts;
mod http;
mod kept;
mod meters;
mod notifier;
mod post;
mod routes;

pub use channel::{Letter, SendError, Taken, send};
pub use http::{Http, HttpAnswer, HttpRequest, LocalFuture};
pub use notifier::{LogLine, Notifications, ReadRoutes, Surroundings, Tone, test};
pub use routes::RouteKeys;

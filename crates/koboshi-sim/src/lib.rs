//! A simulated provider: it answers requests of four dialects for real, and fails on command.
//!
//! [`play`] is a function of the request and of how often it was asked before. It returns what a provider would send,
//! with the pauses before each piece: a [`Play`]. The caller has the socket and the clock and performs it: the gateway inside its own
//! process (`sim/ok`), the test kit over real connections. The name of the model says how the provider falls
//! ([`names`]); the text of an answer depends on the conversation only, whichever dialect it came in, so that a healthy
//! fallback of any vendor gives the same answer as a broken primary would have given.
//!
//! ```
//! use koboshi_sim::{Ask, End, Head, play};
//!
//! let body = br#"{"messages": [{"role": "user", "content": "hello"}], "stream": true}"#;
//! let fallen = play(&Ask { model: "cut?after=3", body, ..Ask::default() });
//! assert!(matches!(fallen.head, Head::Answer { status: 200, .. }));
//! assert_eq!(fallen.beats.count(), 3);
//! assert_eq!(fallen.end, End::Cut);
//! ```
//!
//! Invariants: no panic and bounded work for any body and any name; the same ask gives the same play; a play of many
//! chunks is made chunk by chunk and does not sit in memory (but for responses, which repeat all they said at their end). It deliberately has no clock, no socket, no async and no
//! chance of its own, and it does not understand anything: the text makes sense as sentences, not as answers.

mod acts;
mod answer;
mod beats;
mod chance;
mod check;
mod count;
mod embed;
mod endpoint;
mod error;
mod fall;
mod generator;
mod message;
mod name;
mod order;
mod play;
mod request;
mod scenario;
mod schema;
mod script;
mod spoil;
mod tool;
mod whole;
mod words;
mod writer;

pub use beats::Beats;
pub use check::{NameError, check};
pub use count::count;
pub use embed::embed;
pub use endpoint::{Endpoint, Operation, endpoint};
pub use name::{COMMON, Name, Param, names, without_made_up_calls};
pub use play::{Ask, Beat, End, Head, Play, Tally, play};
pub use scenario::{Asks, Reach, Scenario, ScenarioFall, StoreTrouble, scenarios};

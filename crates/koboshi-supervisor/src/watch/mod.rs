//! The output of an agent: evidence of its end, signs of life, and a log without secrets.

mod lines;
mod live;
mod log;
mod repeats;
mod tail;

pub use lines::Lines;
pub use live::{Live, Sign};
pub use log::{Log, LogPolicy};
pub use repeats::Repeats;
pub use tail::Tail;

//! A client that measures: at a fixed rate, as fast as the answers come, one by one, or with thousands of streams held open.
//!
//! `load rate --url http://127.0.0.1:4141/v1/chat/completions --body '{"model":"ok","messages":[…]}' --rate 500 --seconds 5`
//!
//! One thread, its own HTTP/1.1, one JSON object on the standard output. At a fixed rate a request counts from the instant when it
//! was due and not from when it could be sent, so a server that stalls is not spared the requests that waited. The first content
//! is the first piece of text: a frame that names only the role is none.

mod ask;
mod events;
mod exchange;
mod hold;
mod tally;
mod work;

use clap::{Args, Parser, Subcommand};

use crate::ask::Target;

#[derive(Parser)]
#[command(about = "A client that measures gateways")]
struct Command {
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Subcommand)]
enum Mode {
    /// Requests at a fixed rate, whatever the answers do.
    Rate(Rate),
    /// Some connections, each asking again as soon as it is answered.
    Loop(Loop),
    /// This many requests, one row each; `{i}` in the body is the request's number.
    Probe(Probe),
    /// Opens streams, says how many have their first content, and holds them until the standard input ends.
    Hold(Hold),
}

#[derive(Args)]
struct Rate {
    #[command(flatten)]
    target: Target,
    /// Requests a second.
    #[arg(long)]
    rate: f64,
    /// How long it measures.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// How long it runs before it measures.
    #[arg(long, default_value_t = 1.0)]
    warm: f64,
    /// One row for each request too.
    #[arg(long)]
    rows: bool,
}

#[derive(Args)]
struct Loop {
    #[command(flatten)]
    target: Target,
    /// Connections.
    #[arg(long)]
    connections: usize,
    /// How long.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
}

#[derive(Args)]
struct Probe {
    #[command(flatten)]
    target: Target,
    /// Requests.
    #[arg(long)]
    count: usize,
    /// This many at the same time.
    #[arg(long, default_value_t = 1)]
    together: usize,
}

#[derive(Args)]
struct Hold {
    #[command(flatten)]
    target: Target,
    /// Streams.
    #[arg(long)]
    streams: usize,
    /// Seconds until it gives up on those without content.
    #[arg(long, default_value_t = 60.0)]
    patience: f64,
}

fn main() -> std::io::Result<()> {
    let Command { mode } = Command::parse();
    // The kernel may otherwise ring an alarm 50 µs late.
    let _best_effort = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async move {
        match mode {
            Mode::Rate(Rate { target, rate, seconds, warm, rows }) => {
                work::at_rate(target.asks()?, rate, seconds, warm, rows).await
            }
            Mode::Loop(Loop { target, connections, seconds }) => {
                work::in_loops(target.asks()?, connections, seconds).await
            }
            Mode::Probe(Probe { target, count, together }) => {
                work::one_by_one(target.asks()?, count, together).await
            }
            Mode::Hold(Hold { target, streams, patience }) => {
                hold::open(target.asks()?, streams, patience).await
            }
        }
    })
}

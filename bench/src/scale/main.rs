//! What a fleet costs its provider, from 1 to 1,000 gateways: the core's own decisions on a simulated clock.
//!
//!     cargo run --release --manifest-path bench/Cargo.toml --bin scale -- --plot docs/scale.svg
//!
//! It prints the tables of docs/scale.md. No socket, no process, no real time: one call after another, in order.
#![allow(clippy::indexing_slicing, clippy::expect_used, reason = "a measuring program")]

mod node;
mod plot;
mod scenario;
mod world;

use std::path::PathBuf;

use clap::Parser;

use node::Policy;
use scenario::Scenario;
use world::{Toll, play};

/// Gateways; each has a hundred agents.
const SIZES: [usize; 4] = [1, 10, 100, 1_000];
const AGENTS_PER_NODE: usize = 100;

#[derive(Parser)]
struct Arguments {
    /// No more gateways than this.
    #[arg(long, default_value_t = 1_000)]
    max: usize,
    /// Where the plot is written.
    #[arg(long)]
    plot: Option<PathBuf>,
}

fn main() -> std::io::Result<()> {
    let arguments = Arguments::parse();
    let sizes: Vec<usize> = SIZES.into_iter().filter(|size| *size <= arguments.max).collect();
    let mut all = Vec::new();
    for scenario in Scenario::ALL {
        println!("\n### {}\n", scenario.name());
        println!(
            "| gateways, agents | | wasted calls | noticed after | first answer after | nine in ten after | peak of calls in a second | facts written |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        for &nodes in &sizes {
            for policy in Policy::ALL {
                // Twenty million failed calls, ten times those of a tenth of the gateways: minutes for nothing new.
                if (scenario, policy) == (Scenario::Quota, Policy::Breaker) && nodes > 100 {
                    continue;
                }
                let agents = nodes * AGENTS_PER_NODE;
                let toll = play(scenario, policy, nodes, agents);
                print(nodes, agents, policy, toll);
                all.push((scenario, policy, nodes, toll));
            }
        }
    }
    match arguments.plot {
        Some(path) => std::fs::write(path, plot::draw(&all)),
        None => Ok(()),
    }
}

fn print(nodes: usize, agents: usize, policy: Policy, toll: Toll) {
    let Toll { wasted, notice, first_back, nine_in_ten, peak, writes } = toll;
    let seconds = |length: std::time::Duration| format!("{:.1} s", length.as_secs_f64());
    let writes = if policy == Policy::Together { writes.to_string() } else { "–".to_owned() };
    println!(
        "| {nodes}, {agents} | {} | {wasted} | {} | {} | {} | {peak} | {writes} |",
        policy.name(),
        seconds(notice),
        seconds(first_back),
        seconds(nine_in_ten),
    );
}

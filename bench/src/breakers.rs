//! Admit and record one call: our breaker beside `failsafe`, `recloser` and `tower-resilience-circuitbreaker`.
//!
//! `cargo run --release --manifest-path bench/Cargo.toml --bin breakers`
//!
//! All stand in one run and take turns, so that a busy machine slows all alike; each figure is the median of the
//! rounds. The work between admission and record is nothing. The first two and ours do not read a clock while the
//! breaker is closed (ours gets the time as an argument); a line with two clock reads a call shows what those would add, since
//! slow calls cannot be recognised without them.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "a bench")]

use std::future::{Ready, ready};
use std::hint::black_box;
use std::pin::pin;
use std::sync::Barrier;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use failsafe::CircuitBreaker as _;
use koboshi::breaker::{Breaker, BreakerPolicy, Outcome, Span};
use koboshi::chance::Seed;
use koboshi::time::Moment;
use tower_layer::Layer;
use tower_resilience_circuitbreaker::CircuitBreakerLayer;
use tower_service::Service;

const CALLS: u32 = 200_000;
const ROUNDS: usize = 31;

/// A batch of calls; one in `every` fails. A batch so that no figure contains a dynamic call per call.
type Batch = Box<dyn Fn(u32) + Send + Sync>;

fn batch(call: impl Fn(bool) + Send + Sync + 'static) -> Batch {
    Box::new(move |every| {
        let mut until_failure = every;
        for _ in 0..CALLS {
            until_failure = until_failure.wrapping_sub(1);
            let fails = until_failure == 0;
            if fails {
                until_failure = every;
            }
            call(black_box(fails));
        }
    })
}

fn ours(policy: BreakerPolicy) -> impl Fn(bool) + Send + Sync + 'static {
    let breaker = Breaker::new(policy, Seed::new(1), Moment::START).unwrap();
    let now = Moment::START.after(Duration::from_secs(1));
    move |fails| {
        let outcome = if fails { Outcome::Failure } else { Outcome::Success };
        breaker.admit(black_box(now)).unwrap().record(outcome, black_box(now));
    }
}

fn ours_with_clock(policy: BreakerPolicy) -> impl Fn(bool) + Send + Sync + 'static {
    let start = Instant::now();
    let now = move || Moment::START.after(start.elapsed());
    let breaker = Breaker::new(policy, Seed::new(1), now()).unwrap();
    move |fails| {
        let outcome = if fails { Outcome::Failure } else { Outcome::Success };
        breaker.admit(now()).unwrap().record(outcome, now());
    }
}

fn failsafe_consecutive() -> impl Fn(bool) + Send + Sync + 'static {
    let backoff = failsafe::backoff::constant(Duration::from_secs(30));
    let policy = failsafe::failure_policy::consecutive_failures(5, backoff);
    let breaker = failsafe::Config::new().failure_policy(policy).build();
    move |fails| drop(black_box(breaker.call(|| if fails { Err(()) } else { Ok(()) })))
}

fn failsafe_window() -> impl Fn(bool) + Send + Sync + 'static {
    let backoff = failsafe::backoff::constant(Duration::from_secs(30));
    let window = Duration::from_secs(30);
    let policy = failsafe::failure_policy::success_rate_over_time_window(0.5, 5, window, backoff);
    let breaker = failsafe::Config::new().failure_policy(policy).build();
    move |fails| drop(black_box(breaker.call(|| if fails { Err(()) } else { Ok(()) })))
}

fn recloser(calls: usize) -> impl Fn(bool) + Send + Sync + 'static {
    let breaker = recloser::Recloser::custom().error_rate(0.5).closed_len(calls).build();
    move |fails| drop(black_box(breaker.call(|| if fails { Err(()) } else { Ok(()) })))
}

#[derive(Clone)]
struct Nothing;

impl Service<bool> for Nothing {
    type Response = ();
    type Error = std::io::Error;
    type Future = Ready<Result<(), std::io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, fails: bool) -> Self::Future {
        ready(if fails { Err(std::io::ErrorKind::Other.into()) } else { Ok(()) })
    }
}

fn tower_resilience(consecutive: bool) -> impl Fn(bool) + Send + Sync + 'static {
    let builder = CircuitBreakerLayer::builder().wait_duration_in_open(Duration::from_secs(30));
    let builder = if consecutive {
        builder.consecutive_failures(5)
    } else {
        builder.failure_rate_threshold(0.5).sliding_window_size(10).minimum_number_of_calls(5)
    };
    let service = builder.build().unwrap().layer(Nothing);
    move |fails| {
        let mut service = service.clone();
        let mut context = Context::from_waker(Waker::noop());
        drop(black_box(service.poll_ready(&mut context)));
        let mut call = pin!(service.call(fails));
        // Another thread may hold its lock: try again, as a runtime would.
        while black_box(call.as_mut().poll(&mut context)).is_pending() {
            std::hint::spin_loop();
        }
    }
}

/// Nanoseconds per call with this many threads at the same time: the mean over the threads.
fn measure(batch: &Batch, threads: usize, every: u32) -> f64 {
    let barrier = Barrier::new(threads);
    let run = || {
        barrier.wait();
        let start = Instant::now();
        batch(every);
        start.elapsed().as_secs_f64()
    };
    let taken: f64 = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let own = run();
        own + others.into_iter().map(|thread| thread.join().unwrap()).sum::<f64>()
    });
    taken * 1e9 / f64::from(CALLS) / threads as f64
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn table(title: &str, contenders: &[(&str, Batch)], threads: usize, every: u32) {
    let mut figures = vec![Vec::new(); contenders.len()];
    for _ in 0..ROUNDS {
        for (index, (_, batch)) in contenders.iter().enumerate() {
            figures[index].push(measure(batch, threads, every));
        }
    }
    let medians: Vec<f64> = figures.into_iter().map(median).collect();
    let fastest_peer = contenders
        .iter()
        .zip(&medians)
        .filter(|((name, _), _)| !name.starts_with("koboshi"))
        .map(|(_, median)| *median)
        .fold(f64::INFINITY, f64::min);
    println!("\n{title}\n\n| breaker | ns a call | of the fastest peer |\n|---|---|---|");
    for ((name, _), median) in contenders.iter().zip(&medians) {
        println!("| {name} | {median:.1} | {:.2} |", median / fastest_peer);
    }
}

fn main() {
    let large = BreakerPolicy::WINDOW.window.unwrap().with(|policy| {
        policy.span = Span::Calls(100);
    });
    let timed = large.with(|policy| {
        policy.span = Span::Time(Duration::from_secs(30));
    });
    let windowed = |window| {
        BreakerPolicy::WINDOW.with(|policy| {
            policy.window = Some(window);
        })
    };
    let consecutive: Vec<(&str, Batch)> = vec![
        ("koboshi, 5 in a row", batch(ours(BreakerPolicy::CONSECUTIVE))),
        ("koboshi, 5 in a row, two clock reads", batch(ours_with_clock(BreakerPolicy::CONSECUTIVE))),
        ("failsafe, 5 in a row", batch(failsafe_consecutive())),
        ("tower-resilience, 5 in a row", batch(tower_resilience(true))),
    ];
    let window: Vec<(&str, Batch)> = vec![
        ("koboshi, both rules (default)", batch(ours(BreakerPolicy::BOTH))),
        ("koboshi, last 10", batch(ours(BreakerPolicy::WINDOW))),
        ("koboshi, last 100", batch(ours(windowed(large)))),
        ("koboshi, last 30 s", batch(ours(windowed(timed)))),
        ("koboshi, both rules, two clock reads", batch(ours_with_clock(BreakerPolicy::BOTH))),
        ("failsafe, rate over 30 s", batch(failsafe_window())),
        ("recloser, last 10", batch(recloser(10))),
        ("recloser, last 100", batch(recloser(100))),
        ("tower-resilience, last 10", batch(tower_resilience(false))),
    ];
    for threads in [1, 2] {
        for (every, words) in [(0, "all calls succeed"), (10, "one in ten fails")] {
            table(&format!("### In a row, {threads} thread(s), {words}"), &consecutive, threads, every);
            table(&format!("### Share of failures, {threads} thread(s), {words}"), &window, threads, every);
        }
    }
}

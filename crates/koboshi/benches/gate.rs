//! What a gate costs a request: the fast check, and reserve with settle, alone and against another thread.
//!
//! Promise: the check in at most 50 ns, open or held. `cargo bench -p koboshi --bench gate` prints the figures;
//! nothing asserts them.

#![allow(missing_docs, clippy::expect_used, clippy::semicolon_if_nothing_returned, reason = "a bench")]

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use koboshi::gate::{Allowance, Cost, Entry, Gate, GatePolicy, Limit, Refill, Tenant, Ticket};
use koboshi::time::Moment;

const NOW: Moment = Moment::from_nanos(1_000_000_000);
const COST: Cost = Cost::of(1000, 500);

/// A gate that knows all four limits, none of them near.
fn open_gate(policy: GatePolicy) -> Gate {
    let gate = Gate::new(policy, NOW);
    let resets_in = Some(Duration::from_secs(60));
    let plenty = Allowance { limit: Some(1 << 40), remaining: 1 << 39, resets_in, refill: Refill::Steady };
    for limit in [Limit::Requests, Limit::Tokens, Limit::InputTokens, Limit::OutputTokens] {
        gate.learn(limit, plenty, NOW);
    }
    gate
}

fn check(c: &mut Criterion) {
    let mut group = c.benchmark_group("gate/check");
    let gate = open_gate(GatePolicy::default());
    group.bench_function("open", |b| b.iter(|| gate.check(black_box(NOW))));
    let wall = Timestamp::UNIX_EPOCH;
    gate.hold(Limit::Requests, wall + Duration::from_secs(60), NOW, wall);
    group.bench_function("held", |b| b.iter(|| gate.check(black_box(NOW))));
    group.finish();
}

fn pass(gate: &Gate) {
    if let Ok(mut reservation) = gate.reserve(black_box(COST), NOW) {
        reservation.sent();
        reservation.settle(COST, NOW);
    }
}

fn reserve(c: &mut Criterion) {
    let mut group = c.benchmark_group("gate/reserve+settle");
    let empty = Gate::new(GatePolicy::default(), NOW);
    group.bench_function("nothing_learned", |b| b.iter(|| pass(&empty)));
    let gate = open_gate(GatePolicy::default().with(|policy| {
        policy.concurrency = Some(64);
    }));
    group.bench_function("four_limits", |b| b.iter(|| pass(&gate)));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                pass(&gate);
            }
        });
        group.bench_function("four_limits/against_another_thread", |b| b.iter(|| pass(&gate)));
        is_over.store(true, Ordering::Relaxed);
    });
    group.finish();
}

/// Coming to the end of a full queue and leaving it, and looking from its middle.
fn queue(c: &mut Criterion) {
    let mut group = c.benchmark_group("gate/queue");
    for waiting in [100_u64, 10_000] {
        let policy = GatePolicy::default().with(|policy| {
            policy.concurrency = Some(1);
            policy.queue = 100_000;
        });
        let gate = open_gate(policy);
        let _inside = gate.reserve(COST, NOW).expect("one may pass");
        let deadline = NOW.after(Duration::from_secs(10));
        let enter =
            |number: u64| match gate.enter(&Tenant::new(&format!("t{}", number % 50)), COST, deadline, NOW) {
                Entry::Wait(ticket) => Some(ticket),
                _ => None,
            };
        let mut tickets: Vec<Ticket<&Gate>> = (0..waiting).filter_map(enter).collect();
        group.bench_function(format!("{waiting}/enter+leave"), |b| b.iter(|| enter(black_box(7)).is_some()));
        let middle = tickets.len() / 2;
        let middle = tickets.get_mut(middle).expect("there are waiters");
        group.bench_function(format!("{waiting}/look"), |b| {
            b.iter(|| matches!(middle.poll(black_box(NOW)), koboshi::gate::TicketState::Wait { .. }))
        });
    }
    group.finish();
}

criterion_group!(benches, check, reserve, queue);
criterion_main!(benches);

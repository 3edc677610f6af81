//! A changed value changes what the core decides: every key of `breaker`, `gate`, `cooldown`, `retry` and `request` is played in long
//! random schedules, beside the same schedules with the value that it has by default.
//!
//! A key whose effect is elsewhere is named here with the test that shows it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use koboshi::breaker::{Breaker, Outcome, Permit};
use koboshi::budget::{RetryShare, SharePolicy};
use koboshi::call::{Call, Next};
use koboshi::chance::Seed;
use koboshi::cooldown::{
    Class, Cooldowns, Failure, FleetPlace, Reopening, ReopeningPolicy, RestPhase, RunEnd,
};
use koboshi::fault::{Fault, Kind};
use koboshi::gate::{Allowance, Cost, Entry, Gate, Limit, Refill, Tenant, TicketState};
use koboshi::key::ScopeKey;
use koboshi::remedy::Remedy;
use koboshi::time::Moment;
use koboshi::wait::{Form, Wait, WaitZone};
use koboshi_config::Config;
use koboshi_config::schema::{KEYS, Key};
use serde_json::{Value as Json, json};

use crate::table::{another, document, loaded};

/// Keys whose effect is not a decision of the core, and the test that shows it.
const ELSEWHERE: &[(&str, &str)] = &[
    ("request.pinned", "koboshi-gateway/tests/dialects/trim.rs: a_message_with_a_pinned_text_stays"),
    ("store.path", "koboshi-cli/tests/fleet.rs: every test on a file"),
    ("store.redis", "koboshi-cli/tests/fleet.rs: every test on a Redis"),
    ("store.prefix", "koboshi-cli/tests/fleet_shares.rs: every_key_in_a_redis_begins_with_the_prefix"),
    ("store.journal.keep_days", "koboshi-store/tests/contract: old_entries_and_too_many_are_forgotten"),
    ("store.journal.keep_entries", "koboshi-store/tests/contract: old_entries_and_too_many_are_forgotten"),
    (
        "store.cache.max_bytes",
        "koboshi-store/tests/contract: the_cache_has_a_bound_and_what_ends_soonest_makes_room",
    ),
];

const SECTIONS: [&str; 6] = ["breaker.", "gate.", "cooldown.", "retry.", "request.", "store."];

/// Chance that is the same at every run.
struct Chance(Seed, u64);

impl Chance {
    fn fraction(&mut self) -> f64 {
        self.1 += 1;
        self.0.nth(self.1).fraction()
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.fraction() * end as f64) as u64
    }

    fn happens(&mut self, share: f64) -> bool {
        self.fraction() < share
    }
}

fn passes(now: Moment, millis: u64) -> Moment {
    now.after(Duration::from_millis(millis))
}

fn breakers(config: &Config, chance: &mut Chance, seen: &mut impl Hasher) {
    let mut now = Moment::START;
    let breaker = Breaker::new(config.breaker, Seed::new(chance.below(99)), now).unwrap();
    let mut out: Vec<Permit<&Breaker>> = Vec::new();
    let failing = chance.fraction();
    for _ in 0..150 {
        let long = chance.happens(0.05);
        now = passes(now, chance.below(if long { 100_000 } else { 2_500 }));
        let last = chance.happens(0.3);
        match if last { breaker.admit_last(now) } else { breaker.admit(now) } {
            Ok(permit) => out.push(permit),
            Err(refused) => (refused.mode, refused.until).hash(seen),
        }
        while out.len() > 5 || (!out.is_empty() && chance.happens(0.6)) {
            let permit = out.swap_remove(chance.below(out.len() as u64) as usize);
            let failed = chance.happens(failing);
            permit.record(if failed { Outcome::Failure } else { Outcome::Success }, now);
        }
        (breaker.mode(), breaker.probe_is_dear()).hash(seen);
    }
}

fn gates(config: &Config, chance: &mut Chance, seen: &mut impl Hasher) {
    let mut now = Moment::START;
    let (gate, tenant) = (Gate::new(config.gate, now), Tenant::new("one"));
    let (mut out, mut waiting) = (Vec::new(), Vec::new());
    let wall = |now: Moment| Timestamp::UNIX_EPOCH + now.since(Moment::START);
    for _ in 0..300 {
        let long = chance.happens(0.02);
        now = passes(now, chance.below(if long { 1_000_000 } else { 400 }));
        if chance.happens(0.1) {
            let allowance = Allowance {
                limit: Some(40),
                remaining: chance.below(41),
                resets_in: Some(Duration::from_secs(chance.below(900))),
                refill: Refill::AtReset,
            };
            gate.learn(Limit::Requests, allowance, now);
        }
        if chance.happens(0.03) {
            let until = wall(passes(now, chance.below(20_000)));
            gate.hold(Limit::Requests, until, now, wall(now)).hash(seen);
        }
        for _ in 0..chance.below(5) * chance.below(30) {
            match gate.enter(&tenant, Cost::of(1, 1), passes(now, 60_000), now) {
                Entry::In(reservation) => out.push(reservation),
                Entry::Wait(ticket) => waiting.push(ticket),
                Entry::Refused(refusal) => refusal.to_string().hash(seen),
            }
        }
        waiting.retain_mut(|ticket| match ticket.poll(now) {
            TicketState::In(reservation) => {
                out.push(reservation);
                false
            }
            TicketState::Wait { poll_at } => {
                poll_at.hash(seen);
                true
            }
            TicketState::Expired => false,
        });
        while out.len() > 8 || (!out.is_empty() && chance.happens(0.5)) {
            out.swap_remove(0).settle(Cost::of(1, 1), now);
        }
        (gate.check(now).is_ok(), out.len(), waiting.len()).hash(seen);
    }
}

fn cooldowns(config: &Config, chance: &mut Chance, seen: &mut impl Hasher) {
    let key: ScopeKey = "agent:one".parse().unwrap();
    let mut table = Cooldowns::new(config.cooldown).unwrap();
    let mut now = Timestamp::UNIX_EPOCH;
    let seed = |chance: &mut Chance| Seed::new(chance.below(1 << 20));
    for _ in 0..120 {
        let (long, much) = (chance.happens(0.2), chance.happens(0.02));
        let pause = chance.below(if much {
            2_000_000_000
        } else if long {
            900_000
        } else {
            4_000
        });
        now += Duration::from_millis(pause);
        let class = [Class::Error, Class::Network, Class::Overloaded, Class::RateLimit, Class::Quota]
            [chance.below(5) as usize];
        match chance.below(6) {
            0 | 1 => {
                let length = Duration::from_millis(chance.below(if long { 3_000_000_000 } else { 60_000 }));
                let form = if chance.happens(0.5) { Form::Countdown } else { Form::Instant };
                let stated = Wait { after: length, until: now + length, form, zone: WaitZone::Unneeded };
                let wait = chance.happens(0.5).then_some(stated);
                let ran = chance.happens(0.5).then(|| Duration::from_secs(chance.below(1_300)));
                let failure = Failure { wait, ran, ..Failure::of_class(class) };
                let seed = seed(chance);
                table.fail(&key, &failure, now, seed).is_some().hash(seen);
            }
            2 => {
                let ran = Some(Duration::from_millis(chance.below(25_000)));
                let end = RunEnd { exit_code: Some(0), ran, fault: None };
                let seed = seed(chance);
                table.run_ended(&key, &end, now, seed).is_some().hash(seen);
            }
            _ => {
                let seed = seed(chance);
                let started = table.start(&key, true, now, seed);
                started.map(|permit| permit.probe).map_err(|refused| refused.until).hash(seen);
            }
        }
        format!("{:?}", table.standing(&key, now)).hash(seen);
    }
}

fn reopenings(config: &Config, chance: &mut Chance, seen: &mut impl Hasher) {
    let policy = ReopeningPolicy {
        stagger: config.gate.stagger,
        release: config.cooldown.release,
        max_probe_time: config.cooldown.max_probe_time,
    };
    let (mut now, mut key) = (Moment::START, Reopening::resting());
    for _ in 0..60 {
        let long = chance.happens(0.1);
        now = passes(now, chance.below(if long { 700_000 } else { 300 }));
        let phase =
            [RestPhase::Due, RestPhase::Over, RestPhase::Over, RestPhase::Over][chance.below(4) as usize];
        key.observe(phase, &policy, FleetPlace::ALONE, now);
        format!("{:?}", key.take(true, passes(now, 3_000), &policy, FleetPlace::ALONE, now)).hash(seen);
    }
}

fn calls(config: &Config, chance: &mut Chance, seen: &mut impl Hasher) {
    let mut now = Moment::START;
    let breakers: Vec<_> =
        (0..1 + chance.below(3)).map(|_| Arc::new(Breaker::with_default_policy(Seed::new(1), now))).collect();
    let share = RetryShare::new(SharePolicy::default(), now);
    let mut call = Call::new(&breakers, &share, &config.remedy, Seed::new(chance.below(1 << 20)));
    for _ in 0..40 {
        match call.next(now) {
            Next::Try(attempt) => {
                attempt.target().hash(seen);
                let kinds = [
                    Kind::Unavailable,
                    Kind::Unavailable,
                    Kind::RateLimited,
                    Kind::ContentFiltered,
                    Kind::ContextTooLarge,
                    Kind::ToolArgumentsInvalid,
                ];
                let mut fault = Fault::of(kinds[chance.below(6) as usize], "test");
                if fault.kind == Kind::RateLimited {
                    let after = Duration::from_millis(chance.below(6_000));
                    let until = Timestamp::UNIX_EPOCH + after;
                    fault.wait = Some(Wait { after, until, form: Form::Countdown, zone: WaitZone::Unneeded });
                }
                let remedy = call.failed(attempt, fault, now);
                format!("{remedy:?}").hash(seen);
                if matches!(remedy, Remedy::Trim | Remedy::Reask) {
                    call.go_on(remedy);
                }
            }
            Next::Pause(pause) => {
                pause.length.hash(seen);
                now = now.after(pause.length);
            }
            Next::Over(_) => break,
        }
    }
}

/// What the core decides by this config.
fn decided(config: &Config) -> u64 {
    let mut seen = DefaultHasher::new();
    for seed in 0..300 {
        let chance = || Chance(Seed::new(seed), 0);
        breakers(config, &mut chance(), &mut seen);
        calls(config, &mut chance(), &mut seen);
        if seed < 60 {
            gates(config, &mut chance(), &mut seen);
            cooldowns(config, &mut chance(), &mut seen);
            reopenings(config, &mut chance(), &mut seen);
        }
    }
    seen.finish()
}

/// A value that makes a difference beside the defaults of the other keys.
fn telling(key: &Key) -> Json {
    match key.path {
        // Five failures in a row are half of the last ten calls: only a smaller number has a say.
        "breaker.consecutive_failures" => json!(3),
        // A quick retry is paid and allowed: more attempts are only made where fewer are the default.
        _ => another(key),
    }
}

#[test]
fn a_changed_value_of_any_key_changes_what_is_decided() {
    let keys = KEYS.iter().filter(|key| !key.is_section());
    let keys: Vec<_> =
        keys.filter(|key| SECTIONS.iter().any(|section| key.path.starts_with(section))).collect();
    assert!(keys.len() > 60, "{} keys", keys.len());
    let usual = decided(&Config::default());
    let mut silent = Vec::new();
    for key in keys {
        let text = document(key, telling(key));
        let mut beside = usual;
        if key.path == "breaker.window.slow.rate" {
            let slow = json!({"breaker": {"window": {"slow": {"longer_than": "1s"}}}});
            beside = decided(&loaded(&slow.to_string()));
        }
        let has_effect = decided(&loaded(&text.to_string())) != beside;
        if has_effect == ELSEWHERE.iter().any(|(path, _)| *path == key.path) {
            silent.push(key.path);
        }
    }
    assert!(silent.is_empty(), "these reach nothing, or are named although they do: {silent:?}");
}

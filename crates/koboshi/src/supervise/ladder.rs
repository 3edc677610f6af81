//! Which keys an agent depends on, and which of them rests after a failure.
//!
//! agent + project → model → account → provider. A failure of its own concerns the agent alone, a limit everything that uses the account, a
//! limit of one model only what asks that model. The account comes from the config, never from a log. A credential that a command line tool
//! has is its machine's own: a refused login parks the agent and not the account, whose other keys may be sound.

use std::time::Duration;

use jiff::Timestamp;

use crate::chance::Seed;
use crate::cooldown::{Class, CooldownEvent, Cooldowns, Failure, Standing, StartRefusal, StartRefusalReason};
use crate::fault::{Fault, Scope};
use crate::key::{ScopeKey, ScopeLevel};

use super::Outcome;

/// The keys of one agent, each if it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ladder {
    /// The agent in its project.
    pub agent: Option<ScopeKey>,
    /// The model that it asks.
    pub model: Option<ScopeKey>,
    /// The account that it uses.
    pub account: Option<ScopeKey>,
    /// The provider of both.
    pub provider: Option<ScopeKey>,
}

/// A start that may go ahead, to be handed back when it ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Permit {
    /// The keys whose rest it is the first to end.
    pub probes: Vec<ScopeKey>,
    /// The events to report.
    pub events: Vec<CooldownEvent>,
}

/// What an end changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunEffects {
    /// The keys whose records changed and must be shared.
    pub keys: Vec<ScopeKey>,
    /// The events to report.
    pub events: Vec<CooldownEvent>,
}

impl Ladder {
    /// The keys, from narrow to wide.
    pub fn keys(&self) -> impl Iterator<Item = &ScopeKey> {
        [&self.agent, &self.model, &self.account, &self.provider].into_iter().flatten()
    }

    /// The key that rests after this fault; none where it concerns nothing that is known.
    #[must_use]
    pub fn resting_key(&self, fault: &Fault) -> Option<&ScopeKey> {
        let wide = || match fault.scope {
            Scope::Model => self.model.as_ref().or(self.account.as_ref()),
            Scope::Provider => self.provider.as_ref().or(self.account.as_ref()),
            _ => self.account.as_ref(),
        };
        match Failure::of(fault).class {
            Class::Quota | Class::RateLimit => wide(),
            Class::Billing => self.account.as_ref(),
            // A time that the provider names holds for every agent; our own guess only for the one that failed.
            Class::Overloaded if fault.wait.is_some() => wide(),
            _ => None,
        }
        .or(self.agent.as_ref())
    }

    /// The keys whose rest is over but which no start has probed yet: one agent goes first, so it needs the right to probe each of them.
    #[must_use]
    pub fn due(&self, cooldowns: &Cooldowns, now: Timestamp) -> Vec<&ScopeKey> {
        self.keys().filter(|key| matches!(cooldowns.standing(key, now), Standing::Due(_))).collect()
    }

    /// Why it may not start, if so; nothing is changed. The answer is the one that holds longest.
    ///
    /// # Errors
    /// One of its keys rests, is parked, or others go first.
    pub fn check(
        &self,
        cooldowns: &Cooldowns,
        may_probe: impl Fn(&ScopeKey) -> bool,
        now: Timestamp,
    ) -> Result<Vec<ScopeKey>, StartRefusal> {
        let mut probes = Vec::new();
        let mut held: Option<StartRefusal> = None;
        for key in self.keys() {
            match cooldowns.check_start(key, may_probe(key), now) {
                Ok(true) => probes.push(key.clone()),
                Ok(false) => {}
                Err(new) => held = Some(longest(held, new)),
            }
        }
        held.map_or(Ok(probes), Err)
    }

    /// May it start now? If so, that is noted with all its keys; the number of starts is the agent's alone.
    ///
    /// # Errors
    /// One of its keys rests, is parked, others go first, or it was started too often.
    pub fn start(
        &self,
        cooldowns: &mut Cooldowns,
        may_probe: impl Fn(&ScopeKey) -> bool,
        now: Timestamp,
        seed: Seed,
    ) -> Result<Permit, StartRefusal> {
        for key in self.keys() {
            cooldowns.follow_clock(key, now);
        }
        let probes = self.check(cooldowns, may_probe, now)?;
        if let Some(agent) = &self.agent {
            cooldowns.count(agent, now, seed)?;
        }
        let mut events = Vec::new();
        for key in self.keys() {
            events.extend(cooldowns.take(key, probes.contains(key), now).ended);
        }
        Ok(Permit { probes, events })
    }

    /// A run that was permitted has ended like this.
    pub fn ended(
        &self,
        cooldowns: &mut Cooldowns,
        permit: &Permit,
        outcome: &Outcome,
        ran: Duration,
        now: Timestamp,
        seed: Seed,
    ) -> RunEffects {
        let started = now.checked_sub(ran).ok();
        let mut learned = RunEffects::default();
        match outcome {
            Outcome::Good => {
                for key in self.keys() {
                    learned.add(key, cooldowns.succeed(key, started, now));
                }
            }
            Outcome::Failed(fault) => {
                let failure = Failure { ran: Some(ran), started, ..Failure::of(fault) };
                if let Some(key) = self.resting_key(fault) {
                    learned.add(key, cooldowns.fail(key, &failure, now, seed));
                }
            }
            Outcome::Idle | Outcome::Stopped => {}
        }
        // The probe is over, whether or not it found out anything.
        for key in &permit.probes {
            cooldowns.give_up_probe(key);
        }
        learned
    }

    /// A run that was the first after a rest goes on, and has met no limit for as long as the others wait for it: they may follow.
    pub fn passed(
        &self,
        cooldowns: &mut Cooldowns,
        permit: &Permit,
        ran: Duration,
        now: Timestamp,
    ) -> RunEffects {
        let started = now.checked_sub(ran).ok();
        let mut learned = RunEffects::default();
        for key in &permit.probes {
            learned.add(key, cooldowns.succeed(key, started, now));
        }
        learned
    }

    /// A run that goes on has met a limit: the others must not run into it too.
    pub fn refused(
        &self,
        cooldowns: &mut Cooldowns,
        fault: &Fault,
        started: Timestamp,
        now: Timestamp,
        seed: Seed,
    ) -> RunEffects {
        let failure = Failure { started: Some(started), ..Failure::of(fault) };
        let mut learned = RunEffects::default();
        if matches!(failure.class, Class::Quota | Class::RateLimit | Class::Billing)
            && let Some(key) = self.resting_key(fault)
        {
            learned.add(key, cooldowns.fail(key, &failure, now, seed));
        }
        learned
    }
}

impl RunEffects {
    fn add(&mut self, key: &ScopeKey, event: Option<CooldownEvent>) {
        if let Some(event) = event {
            self.keys.push(key.clone());
            self.events.push(event);
        }
    }
}

/// Whether a start was refused because its account, or what the account belongs to, is in cooldown or parked: an agent with another account may
/// use that. What holds the agent itself holds it with every account, and where others go first the account is about to be used again.
#[must_use]
pub fn is_dry(held: &StartRefusal) -> bool {
    matches!(held.why, StartRefusalReason::Rest | StartRefusalReason::Parked)
        && held.event.key.level() != ScopeLevel::Agent
}

/// Of two reasons to wait the one that holds longer; parked is for ever.
fn longest(one: Option<StartRefusal>, two: StartRefusal) -> StartRefusal {
    let rank = |held: &StartRefusal| (held.why == StartRefusalReason::Parked, held.until);
    match one {
        Some(one) if rank(&one) >= rank(&two) => one,
        _ => two,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cooldown::CooldownPolicy;
    use crate::fault::{Confidence, Kind, Sub};
    use crate::wait::{Form, Wait, WaitZone};
    use proptest::prelude::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn key(text: &str) -> ScopeKey {
        text.parse().unwrap()
    }

    fn ladder(agent: &str) -> Ladder {
        Ladder {
            agent: ScopeKey::agent(agent, "site").ok(),
            model: Some(key("model:anthropic/opus")),
            account: Some(key("account:main")),
            provider: Some(key("provider:anthropic")),
        }
    }

    fn cooldowns() -> Cooldowns {
        Cooldowns::new(CooldownPolicy::default()).unwrap()
    }

    fn fault(kind: Kind, scope: Option<Scope>, wait: Option<u64>) -> Fault {
        let mut fault = Fault::of(kind, "test");
        fault.scope = scope.unwrap_or(fault.scope);
        fault.wait = wait.map(|seconds| Wait {
            after: Duration::from_secs(seconds),
            until: at(i64::try_from(seconds).unwrap()),
            form: Form::Countdown,
            zone: WaitZone::Unneeded,
        });
        fault
    }

    fn end(cooldowns: &mut Cooldowns, who: &Ladder, fault: Option<Fault>, now: i64) -> RunEffects {
        let outcome = fault.map_or(Outcome::Good, Outcome::Failed);
        let ran = Duration::from_secs(30);
        who.ended(cooldowns, &Permit::default(), &outcome, ran, at(now), Seed::new(1))
    }

    fn start(cooldowns: &mut Cooldowns, who: &Ladder, now: i64) -> Result<Permit, StartRefusal> {
        who.start(cooldowns, |_| true, at(now), Seed::new(1))
    }

    #[test]
    fn each_fault_rests_the_rung_of_the_table() {
        let billing = Fault { sub: Some(Sub::Billing), ..fault(Kind::QuotaExceeded, None, None) };
        let weak = Fault { confidence: Confidence::Low, ..fault(Kind::QuotaExceeded, None, None) };
        let table = [
            (fault(Kind::QuotaExceeded, None, Some(60)), "account:main"),
            (fault(Kind::QuotaExceeded, Some(Scope::Model), None), "model:anthropic/opus"),
            (fault(Kind::RateLimited, None, None), "account:main"),
            (fault(Kind::RateLimited, Some(Scope::Provider), None), "provider:anthropic"),
            (billing, "account:main"),
            (fault(Kind::Overloaded, None, None), "agent:a/site"),
            (fault(Kind::Overloaded, None, Some(60)), "model:anthropic/opus"),
            (fault(Kind::ConnectionFailed, None, None), "agent:a/site"),
            (fault(Kind::Unauthorized, None, None), "agent:a/site"),
            (fault(Kind::ContextTooLarge, None, None), "agent:a/site"),
            (fault(Kind::AgentError, None, None), "agent:a/site"),
            (weak, "agent:a/site"),
        ];
        for (fault, resting) in table {
            assert_eq!(
                ladder("a").resting_key(&fault),
                Some(&key(resting)),
                "{} {:?}",
                fault.kind.name(),
                fault.scope
            );
        }
        assert_eq!(Ladder::default().resting_key(&fault(Kind::QuotaExceeded, None, None)), None);
    }

    #[test]
    fn a_quota_of_one_holds_its_sibling_and_not_the_agent_of_another_account() {
        let mut cooldowns = cooldowns();
        end(&mut cooldowns, &ladder("a"), Some(fault(Kind::QuotaExceeded, None, Some(1375))), 0);
        let held = start(&mut cooldowns, &ladder("b"), 10).unwrap_err();
        // 22 min 55 s and a tenth.
        assert_eq!(held.until, Some(at(1512).saturating_add(Duration::from_millis(500)).unwrap()));
        let other = Ladder { account: Some(key("account:other")), model: None, ..ladder("c") };
        assert!(start(&mut cooldowns, &other, 10).is_ok());
    }

    #[test]
    fn after_a_shared_rest_one_goes_first_then_the_others_one_by_one() {
        let mut cooldowns = cooldowns();
        let all: Vec<Ladder> = (0..4).map(|n| ladder(&format!("a{n}"))).collect();
        end(&mut cooldowns, &all[0], Some(fault(Kind::QuotaExceeded, None, Some(60))), 0);
        let permit = start(&mut cooldowns, &all[0], 100).unwrap();
        assert_eq!(permit.probes, [key("account:main")]);
        for other in &all[1..] {
            assert_eq!(start(&mut cooldowns, other, 101).unwrap_err().why, StartRefusalReason::Probe);
        }
        all[0].ended(&mut cooldowns, &permit, &Outcome::Good, Duration::from_secs(20), at(120), Seed::new(1));
        assert_eq!(start(&mut cooldowns, &all[1], 120).unwrap_err().why, StartRefusalReason::Turn);
        assert!(start(&mut cooldowns, &all[1], 122).is_ok());
        assert_eq!(
            start(&mut cooldowns, &all[2], 122).unwrap_err().why,
            StartRefusalReason::Turn,
            "one at a time"
        );
        assert!(start(&mut cooldowns, &all[2], 124).is_ok());
        assert!(start(&mut cooldowns, &all[3], 300).is_ok());
    }

    #[test]
    fn an_account_is_dry_in_cooldown_and_parked_and_not_while_others_go_first() {
        let mut cooldowns = cooldowns();
        let (a, b) = (ladder("a"), ladder("b"));
        end(&mut cooldowns, &a, Some(fault(Kind::QuotaExceeded, None, Some(60))), 0);
        assert!(is_dry(&start(&mut cooldowns, &b, 1).unwrap_err()));
        start(&mut cooldowns, &a, 100).unwrap();
        assert!(!is_dry(&start(&mut cooldowns, &b, 101).unwrap_err()), "the first one tries it");
        let mut cooldowns = self::cooldowns();
        end(&mut cooldowns, &a, Some(fault(Kind::AgentError, None, None)), 0);
        assert!(!is_dry(&start(&mut cooldowns, &a, 1).unwrap_err()), "another account does not help it");
    }

    #[test]
    fn a_refused_start_takes_no_turn_and_counts_no_start() {
        let mut cooldowns = cooldowns();
        let who = ladder("a");
        cooldowns.cool(&key("provider:anthropic"), at(1000), "", at(0));
        for second in 0..20 {
            assert_eq!(start(&mut cooldowns, &who, second).unwrap_err().why, StartRefusalReason::Rest);
        }
        assert!(start(&mut cooldowns, &who, 1000).is_ok(), "twenty refusals are no starts");
    }

    #[test]
    fn a_probe_that_fails_for_its_own_reasons_lets_the_next_one_go() {
        let mut cooldowns = cooldowns();
        let (a, b) = (ladder("a"), ladder("b"));
        end(&mut cooldowns, &a, Some(fault(Kind::QuotaExceeded, None, Some(60))), 0);
        let permit = start(&mut cooldowns, &a, 100).unwrap();
        let own = Outcome::Failed(fault(Kind::AgentError, None, None));
        a.ended(&mut cooldowns, &permit, &own, Duration::from_secs(1), at(101), Seed::new(1));
        assert_eq!(start(&mut cooldowns, &b, 102).unwrap().probes, [key("account:main")]);
    }

    #[test]
    fn a_first_run_that_goes_on_without_a_limit_lets_the_others_follow() {
        let mut cooldowns = cooldowns();
        let (a, b, c) = (ladder("a"), ladder("b"), ladder("c"));
        end(&mut cooldowns, &a, Some(fault(Kind::QuotaExceeded, None, Some(60))), 0);
        let permit = start(&mut cooldowns, &a, 100).unwrap();
        assert_eq!(start(&mut cooldowns, &b, 101).unwrap_err().why, StartRefusalReason::Probe);
        let learned = a.passed(&mut cooldowns, &permit, Duration::from_secs(600), at(700));
        assert_eq!(learned.keys, [key("account:main")]);
        assert_eq!(start(&mut cooldowns, &b, 700).unwrap_err().why, StartRefusalReason::Turn);
        assert!(start(&mut cooldowns, &b, 702).unwrap().probes.is_empty());
        assert_eq!(start(&mut cooldowns, &c, 702).unwrap_err().why, StartRefusalReason::Turn, "one by one");
        // What rests again by then stays: the run began before.
        end(&mut cooldowns, &b, Some(fault(Kind::QuotaExceeded, None, Some(60))), 750);
        assert!(a.passed(&mut cooldowns, &permit, Duration::from_secs(660), at(760)).keys.is_empty());
        assert_eq!(start(&mut cooldowns, &c, 760).unwrap_err().why, StartRefusalReason::Rest);
    }

    #[test]
    fn a_limit_seen_in_mid_run_rests_the_account_at_once_and_its_end_changes_nothing() {
        let mut cooldowns = cooldowns();
        let (a, b) = (ladder("a"), ladder("b"));
        let limit = fault(Kind::QuotaExceeded, None, Some(600));
        let learned = a.refused(&mut cooldowns, &limit, at(0), at(50), Seed::new(1));
        assert_eq!(learned.keys, [key("account:main")]);
        let until = start(&mut cooldowns, &b, 51).unwrap_err().until;
        a.ended(
            &mut cooldowns,
            &Permit::default(),
            &Outcome::Failed(fault(Kind::QuotaExceeded, None, None)),
            Duration::from_secs(60),
            at(60),
            Seed::new(1),
        );
        assert_eq!(start(&mut cooldowns, &b, 61).unwrap_err().until, until);
        let rest = cooldowns.check(&key("account:main"), at(61)).unwrap();
        assert_eq!(rest.streak(), 1, "one failure, seen twice");
        let own = fault(Kind::AgentError, None, None);
        assert_eq!(a.refused(&mut cooldowns, &own, at(0), at(70), Seed::new(1)), RunEffects::default());
    }

    #[test]
    fn five_failures_of_its_own_park_the_agent_and_a_hundred_limits_park_nothing() {
        let mut cooldowns = cooldowns();
        let who = ladder("a");
        for n in 0..100 {
            end(&mut cooldowns, &who, Some(fault(Kind::QuotaExceeded, None, Some(1))), n * 10_000);
        }
        assert!(start(&mut cooldowns, &who, 99 * 10_000 + 100).is_ok());
        for n in 0..5 {
            end(&mut cooldowns, &who, Some(fault(Kind::AgentError, None, None)), 2_000_000 + n * 10_000);
        }
        let held = start(&mut cooldowns, &who, 3_000_000).unwrap_err();
        assert_eq!(held.why, StartRefusalReason::Parked);
        assert!(held.event.log_line().ends_with("koboshi resume agent:a/site"), "{held}");
        assert!(start(&mut cooldowns, &ladder("b"), 3_000_000).is_ok(), "its sibling is free");
    }

    proptest! {
        /// Whatever happens, an agent that may start has no key in cooldown, and a refusal states until when, unless
        /// parked.
        #[test]
        fn nobody_starts_on_a_key_that_rests(steps in proptest::collection::vec((0_usize..3, 0_usize..6, 1_i64..400), 1..60)) {
            let kinds = [Kind::QuotaExceeded, Kind::RateLimited, Kind::AgentError, Kind::Overloaded, Kind::Unauthorized];
            let all: Vec<Ladder> = (0..3).map(|n| ladder(&format!("a{n}"))).collect();
            let (mut cooldowns, mut now) = (cooldowns(), 0);
            for (who, what, pause) in steps {
                now += pause;
                let who = &all[who];
                match start(&mut cooldowns, who, now) {
                    Ok(permit) => {
                        for key in who.keys() {
                            prop_assert!(cooldowns.check(key, at(now)).is_none());
                        }
                        let outcome = kinds.get(what).map_or(Outcome::Good, |kind| Outcome::Failed(fault(*kind, None, Some(30))));
                        who.ended(&mut cooldowns, &permit, &outcome, Duration::from_secs(20), at(now), Seed::new(7));
                    }
                    Err(held) => prop_assert_eq!(held.until.is_none(), held.why == StartRefusalReason::Parked),
                }
            }
        }
    }
}

//! Each row of the table, and what must hold for every fault.

use super::*;
use crate::fault::{Advice, Sub};
use crate::wait::{Form, Wait, WaitZone};
use proptest::prelude::*;

const OTHERS: Remaining = Remaining { attempts: 4, others: 1, lesser: true };
const ALONE: Remaining = Remaining { attempts: 4, others: 0, lesser: false };

fn fault(kind: Kind) -> Fault {
    let mut fault = Fault::of(kind, "test");
    if kind == Kind::Internal {
        // A provider's own 500 has the flags of `unavailable`.
        fault.advice = Advice { same: true, other: true, later: true, health: true };
    }
    fault
}

fn waiting(kind: Kind, seconds: u64) -> Fault {
    let after = Duration::from_secs(seconds);
    let until = Timestamp::UNIX_EPOCH.saturating_add(after).unwrap();
    Fault {
        wait: Some(Wait { after, until, form: Form::Countdown, zone: WaitZone::Unneeded }),
        ..fault(kind)
    }
}

fn first() -> History {
    History {
        spent: AttemptCount { on_target: 1, in_all: 1 },
        pause: None,
        reasks: 0,
        trims: 0,
        deadline: None,
        retry_paid: true,
        silence: Some(Duration::ZERO),
    }
}

fn second() -> History {
    History { spent: AttemptCount { on_target: 2, in_all: 2 }, ..first() }
}

fn decide(fault: &Fault, history: &History, left: Remaining) -> Remedy {
    remedy(fault, history, left, &RemedyPolicy::default(), Moment::START, Seed::new(1))
}

/// A connection that dies after half a minute of silence would cost the client half a minute once more.
#[test]
fn a_cut_after_a_long_silence_goes_elsewhere_at_once() {
    let cut = fault(Kind::ConnectionClosed);
    let after = |silence| decide(&cut, &History { silence, ..first() }, OTHERS);
    assert_eq!(after(Some(Duration::from_secs(30))), Remedy::Elsewhere);
    assert!(matches!(after(Some(Duration::from_secs(1))), Remedy::Again { .. }));
    assert!(matches!(after(None), Remedy::Again { .. }), "content had come: the target is not silent");
    let alone = decide(&cut, &History { silence: Some(Duration::from_secs(30)), ..first() }, ALONE);
    assert!(matches!(alone, Remedy::Again { .. }), "there is no other target");
}

#[test]
fn a_transient_fault_gets_one_quick_retry_while_others_are_left() {
    for kind in [Kind::Unavailable, Kind::Overloaded, Kind::ConnectionClosed, Kind::Internal] {
        let fault = fault(kind);
        assert!(
            matches!(decide(&fault, &first(), OTHERS), Remedy::Again { after } if after <= Duration::from_millis(100)),
            "{kind:?}"
        );
        assert_eq!(decide(&fault, &second(), OTHERS), Remedy::Elsewhere, "{kind:?}");
    }
}

#[test]
fn a_silent_target_is_not_asked_again_while_another_can_answer() {
    assert_eq!(decide(&fault(Kind::Timeout), &first(), OTHERS), Remedy::Elsewhere);
    assert!(matches!(decide(&fault(Kind::Timeout), &first(), ALONE), Remedy::Again { .. }));
}

#[test]
fn alone_a_target_gets_all_its_attempts_and_no_pause_after_the_last() {
    let fault = fault(Kind::Unavailable);
    assert!(matches!(decide(&fault, &first(), ALONE), Remedy::Again { .. }));
    assert!(matches!(decide(&fault, &second(), ALONE), Remedy::Again { .. }));
    let third = History { spent: AttemptCount { on_target: 3, in_all: 3 }, ..first() };
    assert_eq!(decide(&fault, &third, ALONE), Remedy::Stop);
}

#[test]
fn a_short_stated_wait_is_waited_out_a_long_one_is_not_shortened() {
    let short = waiting(Kind::RateLimited, 2);
    assert!(
        matches!(decide(&short, &first(), OTHERS), Remedy::Wait { after, .. } if after == Duration::from_secs(2))
    );
    let long = waiting(Kind::RateLimited, 30);
    assert_eq!(decide(&long, &first(), OTHERS), Remedy::Elsewhere);
    assert_eq!(decide(&long, &first(), ALONE), Remedy::Stop);
    assert_eq!(decide(&long, &first(), Remaining { lesser: true, ..ALONE }), Remedy::Degrade);
}

#[test]
fn a_wait_past_the_deadline_is_no_wait() {
    let deadline = Some(Moment::START.after(Duration::from_secs(1)));
    let history = History { deadline, ..first() };
    assert_eq!(decide(&waiting(Kind::RateLimited, 2), &history, OTHERS), Remedy::Elsewhere);
}

#[test]
fn dead_keys_and_empty_accounts_go_elsewhere_at_once() {
    for kind in [Kind::Unauthorized, Kind::PermissionDenied, Kind::QuotaExceeded, Kind::ModelNotFound] {
        assert_eq!(decide(&fault(kind), &first(), OTHERS), Remedy::Elsewhere, "{kind:?}");
        assert_eq!(decide(&fault(kind), &first(), ALONE), Remedy::Stop, "{kind:?}");
    }
}

#[test]
fn a_wrong_request_is_given_back_and_never_dressed_up() {
    assert_eq!(decide(&fault(Kind::InvalidRequest), &first(), OTHERS), Remedy::Stop);
    let mut capability = fault(Kind::InvalidRequest);
    (capability.sub, capability.advice.other) = (Some(Sub::Capability), true);
    assert_eq!(decide(&capability, &first(), OTHERS), Remedy::Elsewhere);
}

#[test]
fn a_filter_is_routed_around_only_where_that_is_allowed() {
    let fault = fault(Kind::ContentFiltered);
    assert_eq!(decide(&fault, &first(), OTHERS), Remedy::Stop);
    let policy = RemedyPolicy { route_around_filters: true, ..RemedyPolicy::default() };
    assert_eq!(remedy(&fault, &first(), OTHERS, &policy, Moment::START, Seed::new(1)), Remedy::Elsewhere);
}

#[test]
fn a_context_that_is_too_large_is_trimmed_last_and_not_for_ever() {
    let fault = fault(Kind::ContextTooLarge);
    let policy = RemedyPolicy { max_trims: 1, ..RemedyPolicy::default() };
    let decide =
        |history: &History, left| remedy(&fault, history, left, &policy, Moment::START, Seed::new(1));
    assert_eq!(decide(&first(), OTHERS), Remedy::Elsewhere);
    assert_eq!(decide(&first(), ALONE), Remedy::Trim);
    assert_eq!(decide(&History { trims: 1, ..first() }, ALONE), Remedy::Stop);
}

#[test]
fn the_third_broken_tool_call_ends_it() {
    let fault = fault(Kind::ToolArgumentsInvalid);
    assert_eq!(decide(&fault, &first(), ALONE), Remedy::Reask);
    assert_eq!(decide(&fault, &History { reasks: 1, ..second() }, ALONE), Remedy::Reask);
    assert_eq!(decide(&fault, &History { reasks: 2, ..second() }, ALONE), Remedy::Stop);
    assert_eq!(decide(&fault, &History { reasks: 2, ..second() }, OTHERS), Remedy::Elsewhere);
}

#[test]
fn an_empty_account_of_retries_means_elsewhere() {
    let history = History { retry_paid: false, ..first() };
    assert_eq!(decide(&fault(Kind::Unavailable), &history, OTHERS), Remedy::Elsewhere);
    assert_eq!(decide(&fault(Kind::Unavailable), &history, ALONE), Remedy::Stop);
}

fn any_history() -> impl Strategy<Value = History> {
    (0_u32..8, 0_u32..8, 0_u32..4, 0_u32..4, proptest::option::of(0_u64..20_000), any::<bool>()).prop_map(
        |(on_target, more, reasks, trims, deadline, retry_paid)| History {
            spent: AttemptCount { on_target, in_all: on_target + more },
            pause: None,
            reasks,
            trims,
            deadline: deadline.map(|millis| Moment::START.after(Duration::from_millis(millis))),
            retry_paid,
            silence: None,
        },
    )
}

#[test]
fn an_expired_credential_is_refreshed_once() {
    let expired = Fault::of(Kind::TokenExpired, "test");
    let ask = |on_target, others| {
        let spent = AttemptCount { on_target, in_all: on_target };
        let history = History { spent, ..first() };
        remedy(
            &expired,
            &history,
            Remaining { attempts: 4, others: u32::from(others), lesser: false },
            &RemedyPolicy::default(),
            Moment::START,
            Seed::new(1),
        )
    };
    assert!(matches!(ask(1, true), Remedy::Again { .. }) && matches!(ask(1, false), Remedy::Again { .. }));
    assert_eq!((ask(2, true), ask(2, false)), (Remedy::Elsewhere, Remedy::Stop));
}

#[test]
fn a_rate_limit_without_a_wait_is_not_asked_again_while_another_target_is_left() {
    let limited = Fault::of(Kind::RateLimited, "test");
    let spent = AttemptCount { on_target: 1, in_all: 1 };
    let history = History { spent, ..first() };
    assert_eq!(decide(&limited, &history, OTHERS), Remedy::Elsewhere);
    let alone = decide(&limited, &history, ALONE);
    assert!(matches!(alone, Remedy::Again { .. }));
}

proptest! {
    #[test]
    fn what_holds_for_every_fault(
        kind in 0..Kind::ALL.len(), wait in proptest::option::of(0_u64..100), history in any_history(),
        attempts in 0_u32..8, others in 0_u32..8, lesser in any::<bool>(), seed in any::<u64>(),
    ) {
        let fault = wait.map_or_else(|| fault(Kind::ALL[kind]), |seconds| waiting(Kind::ALL[kind], seconds));
        let policy = RemedyPolicy { max_trims: 2, ..RemedyPolicy::default() };
        let left = Remaining { attempts, others, lesser };
        let given = remedy(&fault, &history, left, &policy, Moment::START, Seed::new(seed));
        prop_assert_eq!(given, remedy(&fault, &history, left, &policy, Moment::START, Seed::new(seed)), "the same facts, the same answer");
        match given {
            Remedy::Again { after } | Remedy::Wait { after, .. } => {
                prop_assert!(fault.advice.same && history.retry_paid);
                prop_assert!(history.spent.on_target < policy.backoff.attempts && attempts > 0);
                prop_assert!(!fault.advice.other || attempts > others, "those that were not asked yet are still reached");
                prop_assert!(history.deadline.is_none_or(|deadline| Moment::START.after(after) < deadline), "an attempt follows every pause");
                prop_assert!(fault.wait.is_none_or(|wait| after >= wait.after), "a hint is a floor");
            }
            Remedy::Elsewhere => prop_assert!(others > 0 && fault.advice.other && attempts > 0),
            Remedy::Degrade => prop_assert!(lesser),
            Remedy::Trim => prop_assert!(history.trims < policy.max_trims && fault.kind == Kind::ContextTooLarge),
            Remedy::Reask => prop_assert!(history.reasks < policy.max_reasks && fault.kind == Kind::ToolArgumentsInvalid),
            Remedy::Stop => {}
        }
    }
}

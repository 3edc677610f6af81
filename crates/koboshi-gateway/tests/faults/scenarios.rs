//! The table of scenarios that `koboshi drill` plays, over real sockets: with a healthy provider behind the one that falls the client gets
//! the whole answer, and alone an answer or one clear error, as the row says.

use koboshi_sim::{Asks, Reach, Scenario, ScenarioFall, scenarios};

use crate::common::*;

/// Rows that need no store in trouble, no network of their own and no conversation: those are played elsewhere, see the rows' names in
/// `keys`, `limits`, `stores` and `guard`.
fn played() -> impl Iterator<Item = (&'static Scenario, &'static str)> {
    scenarios().iter().filter(|row| row.asks != Asks::Loop).filter_map(|row| match row.fall {
        // Sixty times as fast as in the table, so that no test waits.
        ScenarioFall::Play("slow-first?after=45s") => Some((row, "slow-first?after=100ms")),
        ScenarioFall::Play("rate-429?retry_after=20&times=1") => {
            Some((row, "rate-429?retry_after=1&times=1"))
        }
        ScenarioFall::Play(name) => Some((row, name)),
        _ => None,
    })
}

fn stage(fall: &str, fallback: &str) -> Stage {
    let chain = [&*format!("one/{fall}"), fallback];
    let chain: Vec<&str> = chain.into_iter().filter(|link| !link.is_empty()).collect();
    Stage::with(&chain, |config| {
        timeouts(config, "one", |limits| {
            (limits.first_token, limits.unary, limits.idle) = (Some(ms(400)), Some(ms(400)), Some(ms(400)));
        });
    })
}

fn question(asks: Asks) -> serde_json::Value {
    match asks {
        Asks::Tool => with_tools(true, "look up the weather"),
        asks => chat(asks != Asks::Whole),
    }
}

#[test]
fn with_a_healthy_provider_behind_it_every_row_ends_in_the_whole_answer() {
    for (row, fall) in played().filter(|(row, _)| row.reach != Reach::Everything && !row.error_is_right) {
        let stage = stage(fall, "two/ok");
        for _ in 0..row.requests {
            let body = question(row.asks);
            let answer = stage.ask(&body);
            assert_eq!(answer.status, 200, "{}: {answer:?}", row.name);
            match row.asks {
                Asks::Tool => assert_calls(&answer, &body),
                _ => assert_whole(&answer, &body),
            }
        }
    }
}

#[test]
fn alone_every_row_ends_in_the_whole_answer_or_in_one_clear_error() {
    for (row, fall) in played() {
        let stage = stage(fall, "");
        for _ in 0..row.requests {
            let body = question(row.asks);
            let answer = stage.ask(&body);
            match answer.error() {
                None if row.asks == Asks::Tool => assert_calls(&answer, &body),
                None => assert_whole(&answer, &body),
                Some(error) => {
                    let (kind, message) = (&error["koboshi"]["kind"], &error["message"]);
                    assert!(kind.is_string() && message.is_string(), "{}: {error}", row.name);
                    assert!(!answer.is_stream() || !answer.text().contains("[DONE]"), "{}", row.name);
                }
            }
        }
    }
}

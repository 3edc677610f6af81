//! When tokens are fetched, on virtual time.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;

use super::*;
use crate::http::upstream::{Upstream, sim};
use hyper_util::client::proxy::matcher::Matcher;
use tokio::task::LocalSet;
use tokio::time::{advance, sleep};

/// The scripted answers, in order, each after a while; then numbered tokens that last an hour.
pub(crate) struct Script {
    said: Mutex<VecDeque<Result<(&'static str, u64), Kind>>>,
    asked: Mutex<u32>,
    takes: Duration,
}

impl Script {
    pub(super) async fn ask(&self) -> Result<Grant, Box<Fault>> {
        sleep(self.takes).await;
        let number = {
            let mut asked = self.asked.lock().unwrap();
            *asked += 1;
            *asked
        };
        match self.said.lock().unwrap().pop_front() {
            Some(Ok((token, lasts))) => {
                Ok(Grant { token: token.to_owned(), lasts: Some(Duration::from_secs(lasts)) })
            }
            Some(Err(kind)) => Err(fault(kind, "scripted")),
            None => Ok(Grant { token: format!("t{number}"), lasts: Some(Duration::from_secs(3600)) }),
        }
    }
}

fn token(said: &[Result<(&'static str, u64), Kind>]) -> Arc<Token> {
    let script = Script {
        said: Mutex::new(said.iter().cloned().collect()),
        asked: Mutex::default(),
        takes: Duration::from_secs(2),
    };
    Token::new("p".into(), Source::Scripted(script))
}

fn asked(token: &Token) -> u32 {
    match &token.source {
        Source::Scripted(script) => *script.asked.lock().unwrap(),
        _ => 0,
    }
}

fn form_client() -> Rc<FormClient> {
    let proxies = Arc::new(Matcher::builder().build());
    Rc::clone(Upstream::new(None, proxies, Arc::new(sim::SimProvider::new())).form_client())
}

/// Runs a test on a clock that advances only while all tasks wait.
fn on_a_clock<F: Future<Output = ()>>(test: impl FnOnce(Rc<FormClient>) -> F) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    LocalSet::new().block_on(&runtime, async { test(form_client()).await });
}

async fn get(token: &Arc<Token>, form_client: &Rc<FormClient>) -> String {
    let issued = match token.ready() {
        Some(issued) => issued,
        None => token.get(form_client, &Log::silent()).await.unwrap(),
    };
    issued.bearer().to_str().unwrap().to_owned()
}

#[test]
fn only_the_first_request_waits_for_a_token() {
    on_a_clock(|form_client| async move {
        let token = token(&[]);
        assert!(token.ready().is_none(), "nothing is fetched before it is needed");
        assert_eq!(get(&token, &form_client).await, "Bearer t1");
        for hour in 2..5 {
            // The next one is there before the old one has expired, without a request in between.
            sleep(Duration::from_secs(3600 - 5 * 60 + 3)).await;
            let issued = token.ready().expect("a request does not wait");
            assert_eq!(issued.bearer().to_str().unwrap(), format!("Bearer t{hour}"));
        }
        assert_eq!(asked(&token), 4);
    });
}

#[test]
fn a_short_life_is_renewed_in_its_last_fifth() {
    on_a_clock(|form_client| async move {
        let token = token(&[Ok(("short", 100))]);
        assert_eq!(get(&token, &form_client).await, "Bearer short");
        sleep(Duration::from_secs(79)).await;
        assert_eq!(asked(&token), 1);
        sleep(Duration::from_secs(4)).await;
        assert_eq!(asked(&token), 2);
        assert_eq!(get(&token, &form_client).await, "Bearer t2");
    });
}

#[test]
fn a_failure_in_the_background_is_tried_again_while_the_old_one_serves() {
    on_a_clock(|form_client| async move {
        let token = token(&[Ok(("old", 1000)), Err(Kind::Unavailable), Err(Kind::Unavailable)]);
        assert_eq!(get(&token, &form_client).await, "Bearer old");
        sleep(Duration::from_secs(803)).await;
        assert_eq!((asked(&token), get(&token, &form_client).await.as_str()), (2, "Bearer old"));
        sleep(Duration::from_secs(1 + 2 + 2 + 2 + 1)).await;
        assert_eq!((asked(&token), get(&token, &form_client).await.as_str()), (4, "Bearer t4"));
    });
}

#[test]
fn a_token_that_has_run_out_is_not_sent() {
    on_a_clock(|form_client| async move {
        let gone: Vec<_> = std::iter::repeat_n(Err(Kind::Unavailable), 20).collect();
        let token = token(&[&[Ok(("old", 100))][..], &gone].concat());
        get(&token, &form_client).await;
        sleep(Duration::from_secs(91)).await;
        assert!(token.ready().is_none());
        let fault = token.get(&form_client, &Log::silent()).await.err().unwrap();
        assert_eq!(fault.kind, Kind::Unavailable, "the request gets the reason");
    });
}

#[test]
fn many_at_once_fetch_once_and_share_a_failure() {
    on_a_clock(|form_client| async move {
        for (said, failed) in [(vec![], false), (vec![Err(Kind::Unauthorized)], true)] {
            let token = token(&said);
            let seen = Rc::new(RefCell::new(Vec::new()));
            let all: Vec<_> = (0..10)
                .map(|_| {
                    let (token, form_client, seen) =
                        (Arc::clone(&token), Rc::clone(&form_client), Rc::clone(&seen));
                    tokio::task::spawn_local(async move {
                        let got = token.get(&form_client, &Log::silent()).await;
                        seen.borrow_mut().push(got.is_err());
                    })
                })
                .collect();
            for one in all {
                one.await.unwrap();
            }
            assert_eq!((asked(&token), seen.borrow().as_slice()), (1, [failed; 10].as_slice()));
        }
    });
}

fn refusal(kind: Kind, status: u16) -> Box<Fault> {
    let mut fault = fault(kind, "refused");
    fault.status = Some(status);
    fault
}

#[test]
fn a_refused_token_is_replaced() {
    on_a_clock(|form_client| async move {
        let token = token(&[]);
        let first = token.get(&form_client, &Log::silent()).await.unwrap();
        let said = token.judge(&first, refusal(Kind::TokenExpired, 401));
        assert_eq!(said.kind, Kind::TokenExpired);
        assert!(token.ready().is_none());
        assert_eq!(get(&token, &form_client).await, "Bearer t2");
        // A late refusal of the old token does not affect the new one.
        let said = token.judge(&first, refusal(Kind::Unauthorized, 401));
        assert_eq!(said.kind, Kind::TokenExpired, "it may be sent again");
        assert!(token.ready().is_some());
    });
}

#[test]
fn a_plain_refusal_is_the_tokens_fault_only_when_it_is_old() {
    on_a_clock(|form_client| async move {
        let token = token(&[]);
        let issued = token.get(&form_client, &Log::silent()).await.unwrap();
        let said = token.judge(&issued, refusal(Kind::Unauthorized, 401));
        assert_eq!(said.kind, Kind::Unauthorized, "a fresh one has not run out");
        assert!(token.ready().is_some());
        advance(FRESH_TOKEN_AGE).await;
        assert_eq!(token.judge(&issued, refusal(Kind::PermissionDenied, 403)).kind, Kind::PermissionDenied);
        let said = token.judge(&issued, refusal(Kind::Unauthorized, 401));
        assert_eq!((said.kind, said.status, said.advice.same), (Kind::TokenExpired, Some(401), true));
        assert!(token.ready().is_none());
    });
}

#[test]
fn no_token_is_fetched_for_a_plan_that_is_gone() {
    on_a_clock(|form_client| async move {
        let token = token(&[]);
        get(&token, &form_client).await;
        let weak = Arc::downgrade(&token);
        drop(token);
        sleep(Duration::from_secs(7200)).await;
        assert!(weak.upgrade().is_none());
    });
}

#[test]
fn a_token_without_a_stated_end_is_fetched_every_few_minutes() {
    let issued = |lasts| IssuedToken::of(&Grant { token: "t".to_owned(), lasts }, Instant::now()).unwrap();
    on_a_clock(|_| async move {
        let now = Instant::now();
        assert_eq!(issued(None).renewal - now, UNSTATED);
        let odd = issued(Some(Duration::MAX));
        assert!(odd.renewal > now && odd.end > now, "an absurd end is no panic");
    });
}

//! Chaos: a primary that falls in every way, and many clients that must not notice.
//!
//! The gateway between them is the test's: in its own process, or a real one that is killed in the middle. Every answer is
//! checked by its content. A client whose connection dies while the gateway is being killed asks again; one that dies at any
//! other time is a fault.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use koboshi::chance::Seed;
use koboshi_sim::{Ask, Play, play};
use serde_json::Value;

use crate::client::{Answer, Client};
use crate::questions::{assert_whole, chat, with_tools};
use crate::wait::until;

/// Every way to fall that another target can make good.
pub const WAYS: [&str; 30] = [
    "fail-500", "fail-502", "fail-503", "overloaded", "rate-429?retry_after=20ms", "reset", "silence",
    "slow-first?after=60s", "slow-first?after=60s&head=late", "cut?after=0", "cut?after=1", "cut?after=2",
    "cut?after=17&bytes=11", "cut?after=44", "half", "half?clean=yes", "fin?after=1", "fin?after=9",
    "bad-chunk?after=0", "bad-chunk?after=5", "in-band-error?after=0", "in-band-error?after=1",
    "in-band-error?after=30", "empty", "html", "no-done", "stall?after=1", "stall?after=12", "cut-tool",
    "broken-tool-args?form=truncated",
];

/// The models that the crowd asks for: as it is, with a fallback that continues a text, and with nothing sent before
/// the answer is whole.
pub const ROUTES: [&str; 3] = ["m", "prefilled", "complete"];

/// What a primary plays of whose attempts 30 % fall: every call draws, and every way comes in turn.
#[must_use]
pub fn primary(ask: &Ask<'_>) -> Play {
    let seed = Seed::new(5).nth(ask.tally.nth);
    let way = usize::try_from(ask.tally.nth).unwrap() % WAYS.len();
    let model = if seed.fraction() < 0.3 { WAYS[way] } else { "ok" };
    play(&Ask { model, ..*ask })
}

/// The question with this number: streamed or not, with tools or without, for each of the routes.
#[must_use]
pub fn question(number: u64) -> Value {
    let stream = number.is_multiple_of(2);
    let words = format!("question {} about the doll", number % 50);
    let mut body = if number.is_multiple_of(5) { with_tools(stream, &words) } else { chat(stream) };
    body["messages"][0]["content"] = words.into();
    body["model"] = ROUTES[usize::try_from(number % 7).unwrap() % ROUTES.len()].into();
    body
}

/// The answer to a question of the crowd is whole and right.
pub fn check(answer: &Answer, body: &Value) {
    if body.get("tools").is_none() {
        return assert_whole(answer, body);
    }
    // A call that was asked for again may differ, but it is valid.
    assert_eq!((answer.status, answer.broken, answer.error()), (200, None, None), "{answer:?}");
    assert_eq!(answer.finish().as_deref(), Some("tool_calls"), "{answer:?}");
    assert!(!answer.is_stream() || answer.is_done(), "{answer:?}");
    let calls = answer.calls();
    assert_eq!(calls.len(), 1, "{answer:?}");
    let arguments: Value = serde_json::from_str(&calls[0].1).unwrap();
    assert_eq!(calls[0].0, "look_up");
    assert!(arguments["city"].is_string() && arguments["count"].is_i64(), "{arguments}");
}

/// Many clients that ask at the same time.
#[derive(Debug)]
pub struct Crowd {
    address: SocketAddr,
    /// Odd while the gateway is being killed.
    lives: AtomicU64,
    next: AtomicU64,
    answered: AtomicU64,
    repeated: AtomicU64,
    /// Answers of a gateway that was started again.
    fresh: AtomicU64,
}

impl Crowd {
    /// A crowd before the gateway at this address.
    #[must_use]
    pub fn before(address: SocketAddr) -> Self {
        Self {
            address,
            lives: AtomicU64::new(0),
            next: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
            fresh: AtomicU64::new(0),
        }
    }

    /// Asks this many questions with this many clients, and checks every answer. `then` gets the number of answers up to now, each
    /// number once.
    pub fn ask(&self, clients: usize, questions: u64, then: impl Fn(u64) + Sync) {
        std::thread::scope(|scope| {
            for _ in 0..clients {
                scope.spawn(|| {
                    let mut line = self.line();
                    loop {
                        let number = self.next.fetch_add(1, Ordering::Relaxed);
                        if number >= questions {
                            return;
                        }
                        self.ask_one(&mut line, number);
                        then(self.answered.fetch_add(1, Ordering::Relaxed) + 1);
                    }
                });
            }
        });
    }

    /// How many questions were asked twice, because the gateway was killed while they were in flight.
    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.repeated.load(Ordering::Relaxed)
    }

    /// How many answers came from a gateway that was started again.
    #[must_use]
    pub fn answered_after_kill(&self) -> u64 {
        self.fresh.load(Ordering::Relaxed)
    }

    /// Kills the gateway: `kill` returns when it is dead. Connections that are open now may break.
    pub fn while_killed(&self, kill: impl FnOnce()) {
        self.lives.fetch_add(1, Ordering::SeqCst);
        kill();
        self.lives.fetch_add(1, Ordering::SeqCst);
    }

    /// A connection, and the gateway's life in which it was made; none is made to one that is being killed.
    fn line(&self) -> (Client, u64) {
        until("the gateway listens", || {
            let life = self.lives.load(Ordering::SeqCst);
            let client = life.is_multiple_of(2).then(|| Client::try_to(self.address).ok());
            client.flatten().map(|client| (client, life))
        })
    }

    fn ask_one(&self, line: &mut (Client, u64), number: u64) {
        let body = question(number);
        loop {
            let sent = line.0.try_send("POST", "/v1/chat/completions", &[], body.to_string().as_bytes());
            let answer = sent.ok().map(|()| line.0.read());
            match answer {
                Some(answer) if answer.broken.is_none() => {
                    self.fresh.fetch_add(u64::from(line.1 > 0), Ordering::Relaxed);
                    return check(&answer, &body);
                }
                answer => {
                    let now = self.lives.load(Ordering::SeqCst);
                    assert!(line.1 != now, "question {number} broke on a gateway that lives: {answer:?}");
                    self.repeated.fetch_add(1, Ordering::Relaxed);
                    *line = self.line();
                }
            }
        }
    }
}

/// The sum of all lines of a metric.
#[must_use]
pub fn total(metrics: &str, name: &str) -> f64 {
    let lines = metrics.lines().filter(|line| {
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with('{') || rest.starts_with(' '))
    });
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

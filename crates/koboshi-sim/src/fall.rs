//! How the provider falls under a name, and whether it does so this time.
//!
//! Every parameter is read before chance is asked, so that a wrong one is refused in each call and not in some. `flap`
//! and `chaos` lead to other names through their text: there is one way to read a fall.

use std::time::Duration;

use koboshi::chance::Seed;

use crate::chance::{below, pick};
use crate::order::{Amount, InvalidName, Order};
use crate::play::{End, Tally};

/// No answer has more pieces of text: a whole one sits in memory.
pub(crate) const MAX_CHUNKS: u64 = 100_000;

/// What a name asks for in this call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plan {
    pub(crate) options: PlayOptions,
    pub(crate) fall: Fall,
}

/// What holds whether it falls or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PlayOptions {
    pub(crate) latency: Duration,
    pub(crate) gap: Duration,
    pub(crate) chunks: Option<u64>,
    pub(crate) say: u64,
    /// A question with tools on offer is answered by a call.
    pub(crate) makes_up_calls: bool,
    pub(crate) refuses_prefill: bool,
}

/// One way to fall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fall {
    /// It does not.
    Ok,
    /// An error instead of an answer.
    Error { trouble: ErrorCase, wait: Option<Duration> },
    /// Too many tokens; without a limit always.
    Context { limit: Option<u64> },
    /// The answer is stopped by the filter.
    Filter { after: u64 },
    /// The connection dies before any answer.
    Reset,
    /// No answer.
    Silence,
    /// The first content comes late, perhaps with the head.
    SlowFirst { after: Duration, late_head: bool },
    /// The body goes no further than this.
    Break { at: CutPlace, end: End },
    /// A frame that is no JSON.
    BadChunk { after: u64, extra: bool },
    /// The end mark is missing.
    NoDone { open: bool },
    /// An error inside a good answer.
    InBand { after: u64 },
    /// Arguments of tool calls that are no JSON.
    BrokenArgs { form: Form, always: bool },
    /// The last call once more.
    Loop { stubborn: bool },
    /// Nothing in it.
    Empty,
    /// A page.
    Html,
}

/// Errors that come instead of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorCase {
    Status(u16),
    Rate,
    Quota,
    Billing,
    Overloaded,
    Auth,
    Filter,
}

/// Where a body breaks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutPlace {
    /// After this many frames and this many bytes of the next one.
    Frame { after: u64, bytes: u64 },
    /// Half-way.
    Half,
    /// Inside the arguments of a tool call, after this many pieces of them.
    Call { after: Option<u64> },
}

/// What broken arguments look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    TrailingComma,
    Unquoted,
    Truncated,
    Python,
    Prose,
}

impl Plan {
    /// How long an answer that is no stream takes.
    pub(crate) const fn whole_latency(&self) -> Duration {
        match self.fall {
            Fall::SlowFirst { after, .. } => self.options.latency.saturating_add(after),
            _ => self.options.latency,
        }
    }

    pub(crate) fn read(model: &str, tally: Tally) -> Result<Self, InvalidName> {
        let order = Order::read(model)?;
        let options = PlayOptions {
            latency: order.length("latency")?.unwrap_or_default(),
            gap: order.length("gap")?.unwrap_or_default(),
            chunks: order.count("chunks", MAX_CHUNKS)?,
            say: order.count("say", MAX_CHUNKS)?.unwrap_or(0),
            makes_up_calls: order.word("tools", &["yes", "no"])? == "yes",
            refuses_prefill: order.word("prefill", &["continue", "refuse"])? == "refuse",
        };
        let seed = Seed::new(order.count("seed", u64::MAX)?.unwrap_or(0)).nth(tally.nth);
        let share = order.share("p")?.unwrap_or(1.0);
        let times = order.count("times", u64::MAX)?;
        let fall = fall(&order, tally, seed.nth(1))?;
        let falls = times.is_none_or(|times| tally.nth < times) && seed.fraction() < share;
        Ok(Self { options, fall: if falls { fall } else { Fall::Ok } })
    }
}

fn fall(order: &Order<'_>, tally: Tally, seed: Seed) -> Result<Fall, InvalidName> {
    let error = |trouble, wait| Ok(Fall::Error { trouble, wait });
    let after = |default: u64| Ok(order.count("after", u64::MAX)?.unwrap_or(default));
    let breaks = |default: u64, end| {
        let place =
            CutPlace::Frame { after: after(default)?, bytes: order.count("bytes", u64::MAX)?.unwrap_or(0) };
        Ok(Fall::Break { at: place, end })
    };
    match order.name.name {
        name if name.starts_with("fail-") => {
            error(ErrorCase::Status(order.status), order.wait("retry_after", None)?)
        }
        "rate-429" => error(ErrorCase::Rate, order.wait("retry_after", Some(Duration::from_secs(1)))?),
        "quota" => error(ErrorCase::Quota, order.wait("retry_after", Some(Duration::from_secs(6 * 3600)))?),
        "billing" => error(ErrorCase::Billing, None),
        "overloaded" => error(ErrorCase::Overloaded, order.wait("retry_after", None)?),
        "auth-401" => error(ErrorCase::Auth, None),
        "filter-400" => error(ErrorCase::Filter, None),
        "context" => Ok(Fall::Context { limit: order.count("limit", u64::MAX)? }),
        "filter" => Ok(Fall::Filter { after: after(3)? }),
        "reset" => Ok(Fall::Reset),
        "silence" => Ok(Fall::Silence),
        "slow-first" => Ok(Fall::SlowFirst {
            after: order.length("after")?.unwrap_or(Duration::from_secs(20)),
            late_head: order.word("head", &["early", "late"])? == "late",
        }),
        "stall" => breaks(3, End::Stall),
        "cut" => breaks(20, End::Cut),
        "fin" => breaks(3, End::Clean),
        "cut-tool" => {
            Ok(Fall::Break { at: CutPlace::Call { after: order.count("after", u64::MAX)? }, end: End::Cut })
        }
        "half" => {
            let end = if order.flag("clean")? { End::Clean } else { End::Cut };
            Ok(Fall::Break { at: CutPlace::Half, end })
        }
        "bad-chunk" => Ok(Fall::BadChunk { after: after(3)?, extra: order.flag("extra")? }),
        "no-done" => Ok(Fall::NoDone { open: order.flag("open")? }),
        "in-band-error" => Ok(Fall::InBand { after: after(1)? }),
        "broken-tool-args" => Ok(Fall::BrokenArgs { form: form(order)?, always: order.flag("always")? }),
        "loop" => Ok(Fall::Loop { stubborn: order.flag("stubborn")? }),
        "empty" => Ok(Fall::Empty),
        "html" => Ok(Fall::Html),
        "flap" => flap(order, tally, seed),
        "chaos" => chaos(order, tally, seed),
        _ => Ok(Fall::Ok),
    }
}

const FORMS: &[(&str, Form)] = &[
    ("trailing-comma", Form::TrailingComma),
    ("unquoted", Form::Unquoted),
    ("truncated", Form::Truncated),
    ("python", Form::Python),
    ("prose", Form::Prose),
];

fn form(order: &Order<'_>) -> Result<Form, InvalidName> {
    let words: Vec<&'static str> = FORMS.iter().map(|(word, _)| *word).collect();
    let word = order.word("form", &words)?;
    Ok(FORMS.iter().find(|(name, _)| *name == word).map_or(Form::TrailingComma, |(_, form)| *form))
}

fn flap(order: &Order<'_>, tally: Tally, seed: Seed) -> Result<Fall, InvalidName> {
    let way = named(order, "way", order.text("way").unwrap_or("fail-503"), tally, seed)?;
    let down = order.amount("down")?;
    let up = order.amount("up")?;
    let is_down = match (down.or(up), up.or(down)) {
        (None, None) => tally.nth % 10 < 5,
        (Some(Amount::Calls(down)), Some(Amount::Calls(up))) => {
            tally.nth.checked_rem(down.saturating_add(up)).is_some_and(|at| at < down)
        }
        (Some(Amount::Time(down)), Some(Amount::Time(up))) => {
            let round = down.saturating_add(up).as_nanos();
            tally.elapsed.as_nanos().checked_rem(round).is_some_and(|at| at < down.as_nanos())
        }
        _ => {
            return Err(InvalidName::Param(
                "Parameters 'down' and 'up' need the same unit: calls, or time.".to_owned(),
            ));
        }
    };
    Ok(if is_down { way } else { Fall::Ok })
}

/// The fall under another name, as a parameter gives it.
fn named(order: &Order<'_>, key: &str, name: &str, tally: Tally, seed: Seed) -> Result<Fall, InvalidName> {
    let nests = name.contains('?') || matches!(name, "flap" | "chaos");
    match Order::read(name) {
        Ok(inner) if !nests => fall(&inner, tally, seed),
        _ => Err(InvalidName::Param(format!(
            "Invalid value '{name}' of parameter '{key}' of '{}': give a name without parameters, other than flap and chaos.",
            order.name.name
        ))),
    }
}

/// Every way that `chaos` knows.
const WAYS: &[&str] = &[
    "fail-500", "fail-502", "fail-503", "rate-429", "quota", "billing", "overloaded", "auth-401", "context",
    "filter", "filter-400", "reset", "silence", "slow-first", "stall", "cut", "cut-tool", "fin", "bad-chunk",
    "no-done", "in-band-error", "broken-tool-args", "empty", "html", "half",
];

fn chaos(order: &Order<'_>, tally: Tally, seed: Seed) -> Result<Fall, InvalidName> {
    let ways: Vec<&str> = match order.text("ways") {
        None | Some("all") => WAYS.to_vec(),
        Some(ways) => ways.split(',').collect(),
    };
    for way in &ways {
        named(order, "ways", way, tally, seed)?;
    }
    let way = pick(seed.nth(2), &ways).copied().unwrap_or("ok");
    let number = below(seed.nth(3), 45);
    let drawn = match way {
        "stall" | "cut" | "fin" | "bad-chunk" | "in-band-error" | "filter" => format!("{way}?after={number}"),
        "slow-first" => format!("{way}?after={}ms", 200 + number * 40),
        "rate-429" => {
            format!("{way}?retry_after={}", pick(seed.nth(4), &["none", "1", "2", "30"]).unwrap_or(&"1"))
        }
        "broken-tool-args" => {
            format!("{way}?form={}", pick(seed.nth(4), FORMS).map_or("python", |(word, _)| *word))
        }
        _ => way.to_owned(),
    };
    Order::read(&drawn).and_then(|inner| fall(&inner, tally, seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn falls(model: &str, nth: u64) -> bool {
        Plan::read(model, Tally { nth, ..Tally::default() }).unwrap().fall != Fall::Ok
    }

    #[test]
    fn a_share_of_the_calls_falls_the_same_ones_each_time() {
        let fallen = |model: &str| (0..1000).filter(|nth| falls(model, *nth)).collect::<Vec<_>>();
        let some = fallen("fail-503?p=0.3&seed=7");
        assert!((230..370).contains(&some.len()), "{}", some.len());
        assert_eq!(some, fallen("fail-503?p=0.3&seed=7"));
        assert_ne!(some, fallen("fail-503?p=0.3&seed=8"));
        assert_eq!((fallen("reset?p=0").len(), fallen("reset?p=1").len()), (0, 1000));
    }

    #[test]
    fn the_first_calls_fall_and_then_none() {
        let fallen: Vec<u64> = (0..9).filter(|nth| falls("cut?times=2", *nth)).collect();
        assert_eq!(fallen, [0, 1]);
    }

    #[test]
    fn flapping_goes_by_calls_or_by_time() {
        let fallen: Vec<u64> = (0..9).filter(|nth| falls("flap?down=2&up=3", *nth)).collect();
        assert_eq!(fallen, [0, 1, 5, 6]);
        let down = |seconds| {
            let tally = Tally { elapsed: Duration::from_secs(seconds), ..Tally::default() };
            Plan::read("flap?down=30s&up=10s&way=reset", tally).unwrap().fall == Fall::Reset
        };
        assert_eq!([0, 29, 30, 39, 40, 69, 70].map(down), [true, true, false, false, true, true, false]);
        assert!(!falls("flap?down=0&up=0", 3), "nothing to do is no panic");
    }

    #[test]
    fn chaos_falls_in_every_way() {
        let all: Vec<Fall> = (0..2000)
            .map(|nth| Plan::read("chaos?seed=1", Tally { nth, ..Tally::default() }).unwrap().fall)
            .collect();
        for way in WAYS {
            let kind = Plan::read(way, Tally::default()).unwrap().fall;
            let same = |fall: &&Fall| std::mem::discriminant(*fall) == std::mem::discriminant(&kind);
            assert!(all.iter().find(same).is_some(), "{way}");
        }
        let only: Vec<Fall> = (0..50)
            .map(|nth| {
                Plan::read("chaos?ways=reset,silence", Tally { nth, ..Tally::default() }).unwrap().fall
            })
            .collect();
        assert!(only.contains(&Fall::Reset) && only.contains(&Fall::Silence));
        assert!(only.iter().all(|fall| matches!(fall, Fall::Reset | Fall::Silence)));
    }

    #[test]
    fn the_defaults_of_the_table_are_those_of_the_code() {
        // Words for what cannot be written as a value.
        const WORDS: &[&str] = &["about 40", "always", "half"];
        for name in crate::name::names() {
            let model = name.example.split('?').next().unwrap();
            let plan = |model: &str| Plan::read(model, Tally { nth: 3, ..Tally::default() }).unwrap();
            let params = name.params.iter().chain(crate::name::COMMON);
            for param in params.filter(|param| !WORDS.contains(&param.default)) {
                let message = format!("{model}?{}={}", param.name, param.default);
                assert_eq!(plan(&message), plan(model), "{message}");
            }
        }
    }

    #[test]
    fn wrong_parameters_are_refused_in_every_call() {
        for model in
            ["chaos?ways=reset,nonsense", "flap?way=flap", "flap?down=5&up=5s", "cut?after=x&p=0", "ok?p=2"]
        {
            for nth in 0..5 {
                let read = Plan::read(model, Tally { nth, ..Tally::default() });
                assert!(matches!(read, Err(InvalidName::Param(_))), "{model} {read:?}");
            }
        }
    }
}

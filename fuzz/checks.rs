//! What must hold for any bytes at all. The fuzz targets call these functions for hours; the ordinary tests
//! (`crates/koboshi/tests/any_bytes.rs`) call the same ones for a moment, on stable Rust.

use std::time::Duration;

use jiff::Zoned;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi::breaker::{Breaker, BreakerPolicy, BreakerSnapshot, Mode};
use koboshi::chance::Seed;
use koboshi::classify::{AgentLog, Answer, Classifier, RuleSource, Rules, ToolOutput};
use koboshi::cooldown::{Class, Cooldown, CooldownPolicy, Cooldowns, Failure};
use koboshi::fault::Fault;
use koboshi::gate::{Cost, Gate, GatePolicy, Holds, MAX_HOLD, allowances};
use koboshi::key::ScopeKey;
use koboshi::models::{ModelSource, Models};
use koboshi::redact::{Redactor, shorten, without_echoes};
use koboshi::time::Moment;
use koboshi::wait::{self, Clock, MAX_WAIT};

/// Everything the checks need, made once.
pub(crate) struct Bench {
    classifier: Classifier,
    redactor: Redactor,
    zones: TimeZoneDatabase,
    now: Zoned,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let zones = TimeZoneDatabase::bundled();
        let now =
            "2026-11-15T12:00:00Z".parse::<jiff::Timestamp>().expect("an instant").to_zoned(TimeZone::UTC);
        let rules = Rules::builtin().expect("the built-in rules are sound");
        Self { classifier: Classifier::new(rules, zones.clone()), redactor: Redactor::new(), zones, now }
    }

    /// No reader panics, and every fault keeps its promises.
    pub(crate) fn classify(&self, data: &[u8]) {
        let text = String::from_utf8_lossy(data);
        // The first bytes choose the circumstances, so that a fuzzer can reach all of them.
        let status = 100 + u16::from(data.first().copied().unwrap_or_default()) * 2;
        let flags = data.get(1).copied().unwrap_or_default();
        let half = text.len() / 2;
        let half = (0..=half).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let (name, value) = text.split_at(half);
        let headers = [("retry-after", value), (name, value)];
        let answers = [
            Answer {
                status: Some(status),
                headers: &headers,
                body: &text,
                stream: flags & 1 == 1,
                transport: None,
            },
            Answer { status: Some(200), body: &text, stream: flags & 1 == 1, ..Answer::default() },
            Answer { transport: Some(&text), ..Answer::default() },
        ];
        for answer in &answers {
            self.keeps_promises(self.classifier.answer(answer, &self.now), &text);
        }
        self.keeps_promises(self.classifier.frame(None, &text, &self.now), &text);
        for exit_code in [None, Some(0), Some(1), Some(i32::from(flags))] {
            let log = AgentLog { text: &text, exit_code, since: None };
            self.keeps_promises(self.classifier.log(&log, &self.now), &text);
        }
        for is_error in [None, Some(true), Some(false)] {
            let fault = self.classifier.tool(&ToolOutput { text: &text, is_error }, &self.now);
            assert!(is_error != Some(true) || fault.is_some(), "a flagged error is always a fault");
            self.keeps_promises(fault, &text);
        }
    }

    fn keeps_promises(&self, fault: Option<Fault>, text: &str) {
        let Some(fault) = fault else { return };
        assert!(fault.evidence.span.start <= fault.evidence.span.end);
        assert!(fault.evidence.span.end <= text.len(), "the evidence stands in the input");
        assert!(fault.wait.is_none_or(|wait| wait.after <= MAX_WAIT));
        assert!(fault.detail.chars().count() <= 400, "what is kept is bounded");
        assert_eq!(self.redactor.redact(&fault.detail), fault.detail, "what is kept is redacted");
    }

    /// The grammar of waits never panics and stays within its bounds.
    pub(crate) fn wait(&self, data: &[u8]) {
        let text = String::from_utf8_lossy(data);
        let clock = Clock { now: &self.now, zones: &self.zones };
        for stated in wait::stated_waits(&text, clock) {
            assert!(stated.wait.after <= MAX_WAIT);
            assert!(text.get(stated.span).is_some(), "the span can be cut out");
        }
        if let Some(duration) = wait::parse_duration(&text) {
            let printed = wait::print_duration(duration);
            let again = wait::parse_duration(&printed).expect("what we print we can read");
            assert_eq!(wait::print_duration(again), printed);
        }
        let headers = wait::headers_in_text(&text);
        let _ = wait::header_wait(headers.iter().copied(), clock);
        let _ = wait::exhausted_bucket_wait(headers.iter().copied(), clock);
        let (name, value) = text.split_once('=').unwrap_or(("retry_after", &text));
        let _ = wait::field_wait(name, value, clock);
    }

    /// Redaction is stable and never grows without bound.
    pub(crate) fn redact(&self, data: &[u8]) {
        let text = String::from_utf8_lossy(data);
        let once = self.redactor.redact(&text);
        assert_eq!(self.redactor.redact(&once), once, "nothing is left to redact");
        assert!(without_echoes(&text).len() <= text.len(), "what is cut makes it shorter");
        for limit in [0, 1, 8, 9, 40, 400] {
            assert!(shorten(&once, limit).chars().count() <= limit);
        }
    }

    /// A models file is taken or refused with its place, and any name is looked up in it.
    pub(crate) fn models(&self, data: &[u8]) {
        let text = String::from_utf8_lossy(data);
        match Models::with_user(&[ModelSource { name: "fuzz.yaml", text: &text }]) {
            Ok(models) => {
                let _ = (models.facts(&text, &text), models.belongs_to("openai", &text));
            }
            Err(error) => assert!(!error.message.is_empty()),
        }
    }

    /// A rule file is taken or refused with its place, never a panic.
    pub(crate) fn rules(&self, data: &[u8]) {
        let text = String::from_utf8_lossy(data);
        if let Err(error) = Rules::with_user(&[RuleSource { name: "fuzz.yaml", text: &text }]) {
            assert!(!error.message.is_empty());
        }
    }

    /// Headers of any answer teach a gate something or nothing; it never stays closed for ever.
    pub(crate) fn headers(&self, data: &[u8]) {
        let text = String::from_utf8_lossy(data);
        let clock = Clock { now: &self.now, zones: &self.zones };
        let lines = || text.lines().filter_map(|line| line.split_once(':'));
        let policy = GatePolicy::default();
        let gate = Gate::new(policy, Moment::START);
        for (limit, allowance) in allowances(lines(), clock) {
            gate.learn(limit, allowance, Moment::START);
        }
        let cost = Cost::estimate(text.len(), 100);
        if let Ok(reservation) = gate.reserve(cost, Moment::START) {
            reservation.settle(cost, Moment::START);
        }
        let later = Moment::START.after(policy.forget_after + Duration::from_secs(1));
        assert!(gate.reserve(cost, later).is_ok(), "what was learned is forgotten in the end");
    }

    /// Stored state that another program wrote: read or refused, and what was read can be used and merged.
    pub(crate) fn stored(&self, data: &[u8]) {
        let now = self.now.timestamp();
        if let Ok(read) = serde_json::from_slice::<Cooldown>(data) {
            let mut record = read.clone();
            let policy = CooldownPolicy::default();
            let _ = record.standing(now);
            record.fail(&Failure::of_class(Class::Error), &policy, now, Seed::new(1));
            record.reconcile(&read);
            assert_eq!(read.merge(&read), read);
            let mut table = Cooldowns::new(policy).expect("a sound policy");
            let key = "account:main".parse().expect("a key");
            table.adopt(&key, &read, now);
            let _ = table.start(&key, true, now, Seed::new(1));
            table.forget_quiet(now);
        }
        if let Ok(holds) = serde_json::from_slice::<Holds>(data) {
            let gate = Gate::new(GatePolicy::default(), Moment::START);
            gate.adopt(&holds, Moment::START, now);
            let later = Moment::START.after(MAX_HOLD + Duration::from_secs(1));
            assert!(gate.check(later).is_ok(), "no stored hold closes for ever");
        }
        if let Ok(snapshot) = serde_json::from_slice::<BreakerSnapshot>(data) {
            let breaker =
                Breaker::new(BreakerPolicy::BOTH, Seed::new(1), Moment::START).expect("a sound policy");
            breaker.restore(&snapshot, Moment::START, now);
            let later = Moment::START.after(Duration::from_secs(31));
            let forced = snapshot.mode == Mode::ForcedOpen;
            assert!(forced || breaker.admit(later).is_ok(), "no stored opening outlasts the cap");
        }
        if let Ok(key) = String::from_utf8_lossy(data).parse::<ScopeKey>() {
            assert_eq!(key.to_string().parse::<ScopeKey>().ok(), Some(key));
        }
    }
}

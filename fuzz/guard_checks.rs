//! What must hold of the loop guard for any history at all. The fuzz target calls it for hours; the ordinary tests
//! (`crates/koboshi/tests/guard_any.rs`) call the same for a moment, on stable Rust.

use jiff::Zoned;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi::classify::{Classifier, Rules};
use koboshi::guard::{
    Call, DigestCache, Guard, GuardPolicy, HISTORY, Judgement, LOOK_BACK, Outcome, Rule, Tracker, Turn,
    Verdict,
};
use koboshi::redact::Redactor;

/// Everything the checks need, made once.
pub(crate) struct GuardBench {
    pub(crate) classifier: Classifier,
    guard: Guard,
    cache: DigestCache,
    redactor: Redactor,
    pub(crate) now: Zoned,
}

impl GuardBench {
    pub(crate) fn new() -> Self {
        let rules = Rules::builtin().expect("the built-in rules are sound");
        Self {
            classifier: Classifier::new(rules, TimeZoneDatabase::bundled()),
            guard: Guard::new(GuardPolicy::default()).expect("the defaults are sound"),
            cache: DigestCache::new(64),
            redactor: Redactor::new(),
            now: jiff::Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC),
        }
    }

    /// Any bytes as a history: `\x1e` ends a call, `\x1f` a field. No panic, and every judgement keeps its promises.
    pub(crate) fn history(&self, data: &[u8]) {
        let text = String::from_utf8_lossy(data);
        let calls: Vec<Call<'_>> = text.split('\u{1e}').take(400).map(call).collect();
        let judgement = self.guard.judge(&calls, &self.classifier, &self.now);
        self.keeps_promises(&judgement, &calls);
        let known = self.guard.judge_with(&self.cache, &calls, &self.classifier, &self.now);
        assert_eq!(known, judgement, "known and read again are the same");
        self.remembers_the_same(&judgement, &calls);
        self.tracks(&calls);
    }

    fn keeps_promises(&self, judgement: &Judgement, calls: &[Call<'_>]) {
        assert_eq!(judgement.verdict, judgement.would, "nothing is only observed here");
        let gravest = judgement.findings.first().map_or(Verdict::Pass, |finding| finding.verdict);
        assert_eq!(judgement.verdict, gravest, "the gravest finding decides");
        let turn = calls.last().map(|call| call.turn);
        for finding in &judgement.findings {
            assert!(finding.verdict != Verdict::Pass && !finding.entries.is_empty());
            assert!(finding.entries.windows(2).all(|two| two[0] < two[1]), "entries are in order, each once");
            assert!(finding.entries.iter().all(|at| *at < calls.len() && Some(calls[*at].turn) == turn));
            assert!(finding.entries.last().is_some_and(|last| calls.len() - last <= LOOK_BACK));
            let counted = matches!(finding.rule, Rule::Depth | Rule::Width);
            assert!(counted || finding.count as usize <= LOOK_BACK);
            assert_eq!(finding.verdict == Verdict::Stop, finding.count >= finding.limit + u32::from(counted));
            for text in [&finding.example, &finding.fingerprint.text] {
                assert!(text.chars().count() <= 400, "what is kept is bounded");
                assert_eq!(self.redactor.redact(text), *text, "what is kept is redacted");
            }
        }
        assert_eq!(judgement.suggestion().is_some(), judgement.verdict == Verdict::Stop);
    }

    /// Call by call, or all at once: the same.
    fn remembers_the_same(&self, judgement: &Judgement, calls: &[Call<'_>]) {
        let mut turn = Turn::new();
        for call in calls {
            turn.push(self.guard.read(call, &self.classifier, &self.now));
        }
        assert!(turn.digests().len() <= LOOK_BACK);
        assert_eq!(self.guard.assess(&turn), *judgement);
    }

    fn tracks(&self, calls: &[Call<'_>]) {
        let mut tracker = Tracker::new(self.guard.clone());
        let mut turn = 0;
        for call in calls {
            if call.turn != turn {
                tracker.user_turn();
                assert!(!tracker.stop_retrying(), "a new user turn always passes");
                turn = call.turn;
            }
            let outcome =
                Outcome { tool: call.tool, args: call.args, output: call.output, batch: call.batch };
            let handled =
                tracker.handle_function_result(&outcome, call.is_error, &self.classifier, &self.now);
            assert!(handled.stop_retrying || handled.judgement.verdict != Verdict::Stop);
        }
        assert!(tracker.history().len() <= HISTORY);
        let dump = tracker.dump();
        assert_eq!(dump.stop_retrying, dump.stopped_by.is_some());
    }
}

/// The first byte of a call chooses its circumstances, so that a fuzzer can reach all of them.
fn call(text: &str) -> Call<'_> {
    let mut fields = text.splitn(3, '\u{1f}');
    let head = fields.next().unwrap_or_default();
    let first = head.bytes().next().unwrap_or_default();
    Call {
        tool: head,
        args: fields.next().unwrap_or_default(),
        output: fields.next().unwrap_or_default(),
        is_error: [None, Some(true), Some(false), None][usize::from(first & 3)],
        turn: u32::from(first & 4 == 4 && first & 64 == 64),
        batch: (first & 8 == 8).then_some(u32::from(first >> 6)),
    }
}

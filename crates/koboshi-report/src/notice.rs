//! Notices in words: a heading and a few lines, for any channel.
//!
//! A text has the code of the fault, what is affected, since and until when, and one thing to do. What a fact says
//! besides is shown apart, shortened and redacted, because a notice leaves the machine.

use std::time::Duration;

use jiff::tz::TimeZone;
use koboshi::fault::{Confidence, Fault, Kind, Scope, Sub};
use koboshi::notice::{Damage, Message, Notice, Severity, Stage, Trigger};
use koboshi::redact::Redactor;
use koboshi::spend::Amount;

use crate::phrase::{Lang, Phrases};
use crate::when::{local_time, past_time};

/// The most characters of what a fact says besides.
const MAX_DETAIL: usize = 300;
/// How many notices of a message are written out.
pub const MAX_SHOWN: usize = 20;

/// What texts of one channel have in common.
pub struct NoticeWords<'w> {
    /// The phrases.
    pub phrases: &'w Phrases,
    /// The language.
    pub lang: Lang,
    /// The zone of times.
    pub zone: TimeZone,
    /// The prefix of codes.
    pub prefix: &'w str,
    /// The currency of costs.
    pub currency: &'w str,
    /// Takes secrets out.
    pub redactor: &'w Redactor,
    /// The command that resumes a key, as a person pastes it into a shell.
    pub resume: &'w dyn Fn(&str) -> String,
}

/// A notice in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeText {
    /// One line.
    pub title: String,
    /// What else there is to say, line by line.
    pub lines: Vec<String>,
    /// What else is known, if anything.
    pub detail: Option<String>,
}

impl NoticeWords<'_> {
    fn say(&self, id: &str, args: &[(&str, &str)]) -> String {
        self.phrases.text(self.lang, id, args).unwrap_or_else(|| id.to_owned())
    }

    /// One notice.
    #[must_use]
    pub fn text(&self, notice: &Notice) -> NoticeText {
        let detail = self.redactor.excerpt(&notice.detail, MAX_DETAIL);
        NoticeText {
            title: self.title(notice),
            lines: if notice.stage == Stage::End { self.ended(notice) } else { self.lasting(notice) },
            detail: Some(detail).filter(|detail| !detail.is_empty()),
        }
    }

    /// The one line for a whole message: that of its only notice, or how many there are.
    #[must_use]
    pub fn heading(&self, message: &Message) -> String {
        if let [only] = message.notices.as_slice() {
            return self.title(only);
        }
        let stages = message.stages();
        let count = |stage| stages.get(&stage).copied().unwrap_or(0).to_string();
        let numbers = [
            ("severity", self.severity(message.severity())),
            ("count", message.notices.len().to_string()),
            ("began", count(Stage::Start)),
            ("worse", count(Stage::Escalation)),
            ("over", count(Stage::End)),
        ];
        let numbers: Vec<(&str, &str)> = numbers.iter().map(|(name, text)| (*name, text.as_str())).collect();
        self.say("notice-many", &numbers)
    }

    /// The notices of a message that are written out, and what is said of the others.
    #[must_use]
    pub fn texts(&self, message: &Message) -> (Vec<NoticeText>, Vec<String>) {
        let shown = message.notices.iter().take(MAX_SHOWN).map(|one| self.text(one)).collect();
        let mut rest = Vec::new();
        let more = message.notices.len().saturating_sub(MAX_SHOWN);
        if more > 0 {
            rest.push(self.say("notice-more", &[("count", &more.to_string())]));
        }
        if message.dropped > 0 {
            rest.push(self.say("notice-dropped", &[("count", &message.dropped.to_string())]));
        }
        (shown, rest)
    }

    /// A message as plain text, for mail.
    #[must_use]
    pub fn plain(&self, message: &Message) -> String {
        let (texts, rest) = self.texts(message);
        let mut parts: Vec<String> = texts
            .into_iter()
            .map(|text| {
                let detail = text.detail.map(|detail| format!("> {detail}"));
                let lines = std::iter::once(text.title).chain(text.lines).chain(detail);
                lines.collect::<Vec<_>>().join("\n")
            })
            .collect();
        parts.extend(rest);
        parts.join("\n\n")
    }

    fn severity(&self, severity: Severity) -> String {
        self.say(&format!("notice-severity-{}", severity.name()), &[])
    }

    fn title(&self, notice: &Notice) -> String {
        let id = match (notice.stage, notice.trigger) {
            (Stage::End, Trigger::Budget) => "notice-over-budget",
            (Stage::End, Trigger::Route) => "notice-over-route",
            (_, Trigger::Route) => "notice-route",
            (Stage::End, _) => "notice-over",
            (_, Trigger::Breaker) => "notice-breaker",
            (_, Trigger::Cooldown) => "notice-cooldown",
            (_, Trigger::Park) => "notice-park",
            (_, Trigger::Budget) if notice.severity == Severity::Critical => "notice-budget-spent",
            (_, Trigger::Budget) => "notice-budget-near",
        };
        let said = self.say(id, &[("subject", &self.subject(&notice.subject))]);
        let severity = self.severity(notice.severity);
        let kind = notice.kind.as_deref().and_then(Kind::from_name);
        match kind.filter(|_| notice.stage != Stage::End) {
            Some(kind) => format!("[{severity}] {}: {said}", kind.code(self.prefix)),
            None => format!("[{severity}] {said}"),
        }
    }

    /// What it is about: budgets have clients and periods, everything else is a key that commands take.
    fn subject(&self, subject: &str) -> String {
        if let Some(route) = subject.strip_prefix("route:") {
            return self.say("notice-the-route", &[("name", route)]);
        }
        let of_client = subject.strip_prefix("client:").and_then(|rest| rest.rsplit_once('/'));
        let Some((name, period)) = of_client else { return subject.to_owned() };
        self.say(&format!("notice-client-{period}"), &[("name", name)])
    }

    fn lasting(&self, notice: &Notice) -> Vec<String> {
        let mut lines = Vec::new();
        if notice.stage == Stage::Escalation {
            lines.push(self.say("notice-worse", &[]));
        }
        let fault = fault(notice);
        lines.extend(fault.as_ref().map(|fault| self.phrases.fault_message(self.lang, fault)));
        let time = |time: jiff::Timestamp| local_time(self.lang, &time.to_zoned(self.zone.clone()));
        let past = |time: jiff::Timestamp| past_time(self.lang, &time.to_zoned(self.zone.clone()));
        lines.push(match notice.until {
            Some(until) => {
                self.say("notice-until", &[("since", &past(notice.since)), ("until", &time(until))])
            }
            None => self.say("notice-since", &[("since", &past(notice.since))]),
        });
        if notice.trigger == Trigger::Route {
            lines.push(self.say("notice-route-next", &[]));
        }
        if notice.trigger == Trigger::Park {
            lines.push(self.say("notice-resume", &[("command", &(self.resume)(&notice.subject))]));
        }
        lines.extend(fault.as_ref().map(|fault| self.phrases.fault_suggestion(self.lang, fault)));
        lines
    }

    fn ended(&self, notice: &Notice) -> Vec<String> {
        let ended = notice.ended.unwrap_or(notice.at);
        let lasted = Duration::try_from(ended.duration_since(notice.since)).unwrap_or_default();
        let past = |time: jiff::Timestamp| past_time(self.lang, &time.to_zoned(self.zone.clone()));
        let (since, until) = (past(notice.since), past(ended));
        let length = self.phrases.countdown(self.lang, lasted);
        let shown = [("since", since.as_str()), ("until", until.as_str()), ("length", length.as_str())];
        let mut lines = vec![self.say("notice-lasted", &shown)];
        lines.extend(notice.damage.map(|damage| self.damage(&damage)));
        lines
    }

    fn at_least(&self, count: u64, is_partial: bool) -> String {
        let count = count.to_string();
        if is_partial { self.say("notice-at-least", &[("count", &count)]) } else { count }
    }

    fn damage(&self, damage: &Damage) -> String {
        if *damage == (Damage { is_partial: damage.is_partial, ..Damage::default() }) {
            return self.say("notice-cost-nothing", &[]);
        }
        let money = |parts| format!("{:.4} {}", Amount::of_parts(parts).units(), self.currency);
        let shown = [
            ("faults", self.at_least(damage.faults, damage.is_partial)),
            ("lost", damage.lost_attempts.to_string()),
            ("lost-cost", money(damage.lost_cost)),
            ("lesser-cost", money(damage.lesser_cost)),
        ];
        let shown: Vec<(&str, &str)> = shown.iter().map(|(name, text)| (*name, text.as_str())).collect();
        self.say("notice-cost", &shown)
    }
}

/// The fault of a notice, as far as its sentences need it.
fn fault(notice: &Notice) -> Option<Fault> {
    let mut fault = Fault::of(notice.kind.as_deref().and_then(Kind::from_name)?, "notice");
    fault.sub = notice.sub.as_deref().and_then(Sub::from_name);
    if notice.subject.starts_with("model:") {
        fault.scope = Scope::Model;
    }
    if notice.bare_status.is_some() {
        (fault.status, fault.confidence) = (notice.bare_status, Confidence::Low);
    }
    Some(fault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    fn notice(stage: Stage, trigger: Trigger) -> Notice {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        Notice {
            id: "account:main/x/start".to_owned(),
            stage,
            subject: "account:main".to_owned(),
            trigger,
            severity: Severity::Critical,
            kind: Some("quota_exceeded".to_owned()),
            sub: None,
            bare_status: None,
            since: at("2026-11-18T03:00:00Z"),
            until: Some(at("2026-11-18T08:00:00Z")),
            ended: (stage == Stage::End).then(|| at("2026-11-18T05:02:03Z")),
            detail: "usage limit for sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".to_owned(),
            damage: (stage == Stage::End).then(|| Damage { faults: 12, lost_cost: 5, ..Damage::default() }),
            at: at("2026-11-18T05:03:03Z"),
        }
    }

    fn said(lang: Lang, notice: &Notice) -> String {
        let (phrases, redactor) = (Phrases::new().unwrap(), Redactor::new());
        let zone = TimeZone::fixed(jiff::tz::offset(9));
        let words = NoticeWords {
            phrases: &phrases,
            lang,
            zone,
            prefix: "KBS",
            currency: "USD",
            redactor: &redactor,
            resume: &|key| format!("koboshi resume '{key}' --store /srv/koboshi.db"),
        };
        let notices = vec![notice.clone()];
        let message =
            Message { id: "m".to_owned(), notices, dropped: 3, next: notice.at, ..Message::default() };
        format!("{}\n{}", words.heading(&message), words.plain(&message))
    }

    #[test]
    fn a_notice_says_what_where_until_when_and_what_to_do() {
        let phrases = Phrases::new().unwrap();
        for (lang, expected) in [
            (Lang::En, ["[CRITICAL] KBS-3002: account:main", "2026-11-18 12:00 UTC+09", "17:00 UTC+09"]),
            (
                Lang::Ja,
                ["[重大] KBS-3002: account:main", "2026-11-18 12:00（日本時間）", "17:00（日本時間）"],
            ),
        ] {
            let text = said(lang, &notice(Stage::Start, Trigger::Cooldown));
            for part in expected {
                assert!(text.contains(part), "{part}: {text}");
            }
            assert!(text.contains(&phrases.suggestion(lang, Kind::QuotaExceeded, None)), "{text}");
            assert!(!text.contains("aaaaaaaa") && !text.contains('{') && !text.contains("notice-"), "{text}");
            let parked = said(lang, &notice(Stage::Escalation, Trigger::Park));
            assert!(parked.contains("koboshi resume 'account:main' --store /srv/koboshi.db"), "{parked}");
            let end = said(lang, &notice(Stage::End, Trigger::Cooldown));
            assert!(end.contains("12") && !end.contains("notice-") && !end.contains('{'), "{end}");
        }
    }

    #[test]
    fn an_empty_balance_is_no_quota_that_comes_back_and_a_bare_status_claims_nothing() {
        for (lang, waiting, status) in
            [(Lang::En, "Waiting will not help", "402"), (Lang::Ja, "待っても", "402")]
        {
            let empty = Notice { sub: Some("billing".to_owned()), ..notice(Stage::Start, Trigger::Park) };
            let text = said(lang, &empty);
            let reset = Phrases::new().unwrap().suggestion(lang, Kind::QuotaExceeded, None);
            assert!(text.contains(waiting) && !text.contains(&reset), "{text}");
            let bare = said(lang, &Notice { bare_status: Some(402), ..empty });
            assert!(bare.contains(status) && !bare.contains(waiting) && !bare.contains(&reset), "{bare}");
        }
        let day = Notice {
            subject: "model:one/m".to_owned(),
            sub: Some("day".to_owned()),
            ..notice(Stage::Start, Trigger::Cooldown)
        };
        assert!(said(Lang::En, &day).contains("for this model is used up for today"));
    }

    #[test]
    fn every_trigger_and_stage_has_words_in_both_languages() {
        for lang in Lang::ALL {
            for stage in Stage::ALL {
                for trigger in Trigger::ALL {
                    for severity in Severity::ALL {
                        let notice = Notice {
                            severity: *severity,
                            kind: None,
                            subject: "client:laptop/month".to_owned(),
                            ..notice(*stage, *trigger)
                        };
                        let text = said(*lang, &notice);
                        assert!(
                            text.contains("laptop") && !text.contains("notice-") && !text.contains('{'),
                            "{text}"
                        );
                    }
                }
            }
        }
    }
}

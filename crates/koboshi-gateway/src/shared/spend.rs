//! What the answers of this process cost, on its way to the store, and what the keys of the fleet have spent.
//!
//! A request adds what an attempt cost to sums in memory; a thread sends them to the store a few times a second, as numbered batches that the
//! store takes once. The same thread reads what all processes spent, where a key has a limit. A budget is checked against what the store knew
//! then and what was counted here since: so a fleet exceeds one by what is in flight and what was counted elsewhere within a tick or two.
//! A killed process loses what it counted since its last tick.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use koboshi::spend::{Amount, BudgetUse, Period, Price, SpentAmounts, Tokens};
use koboshi_store::{KeyCalls, Store, StoreError, UsageBatch, UsageCounts, UsageKey, UsageRow, minute_of};
use koboshi_wire::step::Usage;

use crate::route::auth::KeyLimits;

/// More sums of one day are counted under [`OTHERS`]: names of agents and models come from clients.
const MAX_SUMS: usize = 5000;
/// How many lines are looked through for an attempt; further ones are counted by their names at once.
const MAX_LINES: usize = 32;
/// More tokens of one attempt are not believed: sums over a month must not overflow, whatever a provider states.
const MAX_TOKENS: u64 = 1_000_000_000;
/// The name for what is not counted by its own name.
const OTHERS: &str = "(others)";

/// On whose account an attempt is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Payer {
    /// The name of the client's key.
    pub(crate) key: Arc<str>,
    /// The route, as the config names it.
    pub(crate) route: Arc<str>,
    pub(crate) agent: Option<Arc<str>>,
    /// It is for a lesser answer.
    pub(crate) is_lesser: bool,
}

/// What an attempt used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AttemptUsage {
    pub(crate) usage: Usage,
    /// The provider did not state it.
    pub(crate) is_estimated: bool,
    /// No client got its answer.
    pub(crate) is_lost: bool,
}

/// Why a key may not ask now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SpendRefusal {
    /// Its budget is spent until then.
    Budget(BudgetUse, Timestamp),
    /// It made all the requests of this minute, which ends then.
    Rate(u32, Timestamp),
}

/// A budget that is nearly or wholly spent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BudgetNews {
    pub(crate) key: Arc<str>,
    pub(crate) of: BudgetUse,
    pub(crate) renewal: Timestamp,
}

/// What is known of one key's spending.
#[derive(Debug, Default)]
struct Account {
    /// According to the store.
    known: SpentAmounts,
    /// Counted here, and not in `known`: in the batch on its way, and after it.
    sending: SpentAmounts,
    pending: SpentAmounts,
    /// The same for the calls of this minute.
    known_calls: i64,
    sending_calls: i64,
    pending_calls: i64,
}

impl Account {
    fn spent(&self) -> SpentAmounts {
        self.known.plus(self.sending).plus(self.pending)
    }

    fn calls(&self) -> i64 {
        self.known_calls + self.sending_calls + self.pending_calls
    }
}

/// What attempts of the same names have used since the last batch, before it is counted by those names.
///
/// Requests share the strings of their plan and targets, so a line is found by their addresses: to copy and hash the names took longer than all
/// else that is counted here. Cores have strings of their own, and so lines of their own; they are added up with the next batch.
#[derive(Debug)]
struct Line {
    payer: Payer,
    model: Arc<str>,
    counts: UsageCounts,
}

impl Line {
    fn is_of(&self, payer: &Payer, model: &Arc<str>) -> bool {
        // What is paid for a lesser answer is one of the counts. A claim of a client is a string of its own each time.
        Arc::ptr_eq(&self.model, model)
            && Arc::ptr_eq(&self.payer.key, &payer.key)
            && Arc::ptr_eq(&self.payer.route, &payer.route)
            && self.payer.agent == payer.agent
    }
}

#[derive(Debug, Default)]
struct Sums {
    zone: Option<TimeZone>,
    limits: HashMap<Arc<str>, KeyLimits>,
    today: Date,
    /// The first instants of today and of tomorrow.
    began: Option<Timestamp>,
    tomorrow: Option<Timestamp>,
    minute: i64,
    accounts: HashMap<Arc<str>, Account>,
    /// All of today.
    lines: Vec<Line>,
    pending: HashMap<UsageKey, UsageCounts>,
    pending_calls: HashMap<(Arc<str>, i64), i64>,
    sending: Option<UsageBatch>,
    number: u64,
    /// The sums of today that have names of their own.
    named: HashSet<UsageKey>,
    /// What has been reported already.
    told: HashSet<(Arc<str>, Period, Date, bool)>,
}

/// The spending of this process and the fleet.
pub(crate) struct Spending {
    source: String,
    sums: Mutex<Sums>,
    /// Whether any key has a limit: mostly none has, and then no request takes the lock before it is sent.
    has_limits: AtomicBool,
    /// Held while the store is asked: batches go one after the other.
    turn: Mutex<()>,
}

impl Spending {
    /// `source` is a name that no other process has, before or after this one.
    pub(crate) fn new(source: String) -> Self {
        Self { source, sums: Mutex::default(), has_limits: AtomicBool::new(false), turn: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes by these limits and this zone from now on.
    pub(crate) fn adopt(&self, limits: HashMap<Arc<str>, KeyLimits>, zone: TimeZone) {
        let mut sums = self.lock();
        if sums.zone.as_ref() != Some(&zone) {
            sums.count_lines();
            (sums.zone, sums.tomorrow) = (Some(zone), None);
        }
        self.has_limits.store(!limits.is_empty(), Ordering::Release);
        sums.limits = limits;
    }

    /// Counts a request of this key, or says why it may not be made.
    pub(crate) fn admit(&self, key: &str, now: Timestamp) -> Result<(), SpendRefusal> {
        if !self.has_limits.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut sums = self.lock();
        let Some((name, limits)) = sums.limits.get_key_value(key) else { return Ok(()) };
        let (name, limits) = (Arc::clone(name), limits.clone());
        sums.turn_to(now);
        let (today, minute, zone) = (sums.today, sums.minute, sums.zone());
        let account = sums.accounts.entry(Arc::clone(&name)).or_default();
        if let Some(over) = limits.budget.exhausted(account.spent()) {
            return Err(SpendRefusal::Budget(over, over.period.renewal(today, &zone)));
        }
        let Some(rate) = limits.rate else { return Ok(()) };
        if account.calls() >= i64::from(rate) {
            let end = Timestamp::from_second((minute + 1).saturating_mul(60)).unwrap_or(now);
            return Err(SpendRefusal::Rate(rate, end));
        }
        account.pending_calls += 1;
        *sums.pending_calls.entry((name, minute)).or_default() += 1;
        Ok(())
    }

    /// Adds what an attempt used that was sent at this time.
    pub(crate) fn add(
        &self,
        payer: Payer,
        model: &Arc<str>,
        price: Option<Price>,
        used: AttemptUsage,
        sent: Timestamp,
    ) {
        let AttemptUsage { usage, is_estimated, is_lost } = used;
        let [input, output, cached, stored, reasoning] =
            [usage.input, usage.output, usage.cached, usage.stored, usage.reasoning]
                .map(|tokens| tokens.min(MAX_TOKENS));
        let cost = price.map(|price| price.cost(Tokens { input, output, cached, stored }));
        let (parts, all) = (cost.map_or(0, Amount::parts), count(input.saturating_add(output)));
        let when = |holds: bool, value: i64| if holds { value } else { 0 };
        let counts = UsageCounts {
            attempts: 1,
            input: count(input),
            output: count(output),
            cached: count(cached),
            stored: count(stored),
            reasoning: count(reasoning),
            cost: parts,
            unpriced: when(cost.is_none(), all),
            estimated: when(is_estimated, all),
            estimated_attempts: when(is_estimated, 1),
            lost_attempts: when(is_lost, 1),
            lost_cost: when(is_lost, parts),
            lesser_cost: when(payer.is_lesser, parts),
        };
        let mut sums = self.lock();
        sums.turn_to(sent);
        let is_today = sums.is_today(sent);
        if is_today && !sums.limits.is_empty() {
            sums.charge(&payer.key, Amount::of_parts(parts));
        }
        if !is_today {
            let of = usage_key(&payer, model, sums.day_of(sent));
            sums.count(of, &counts);
        } else if let Some(line) = sums.lines.iter_mut().find(|line| line.is_of(&payer, model)) {
            line.counts.add(&counts);
        } else {
            if sums.lines.len() >= MAX_LINES {
                sums.count_lines();
            }
            sums.lines.push(Line { payer, model: Arc::clone(model), counts });
        }
    }

    /// Sends what was counted, and reads what the fleet spent where `reads` says so and a key has a limit.
    pub(crate) fn sync(&self, store: &dyn Store, reads: bool, now: Timestamp) -> Result<(), StoreError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some(batch) = self.lock().next_batch(&self.source) else { break };
            store.usage().add(&batch, now)?;
            self.lock().was_sent();
        }
        let (today, minute) = {
            let mut sums = self.lock();
            sums.turn_to(now);
            if !reads || sums.limits.is_empty() {
                return Ok(());
            }
            (sums.today, sums.minute)
        };
        let spent = store.usage().spent(Period::Month.first(today), today)?;
        let calls = store.usage().calls(minute)?;
        let mut sums = self.lock();
        if sums.today == today {
            for one in spent {
                if let Some(account) = sums.account(&one.key) {
                    account.known =
                        SpentAmounts { day: Amount::of_parts(one.day), month: Amount::of_parts(one.all) };
                }
            }
        }
        if sums.minute == minute {
            for one in calls {
                if let Some(account) = sums.account(&one.key) {
                    account.known_calls = one.calls;
                }
            }
        }
        drop(sums);
        Ok(())
    }

    /// The budgets of which little or nothing is left and no report was made yet, each once.
    pub(crate) fn news(&self, now: Timestamp) -> Vec<BudgetNews> {
        let mut sums = self.lock();
        sums.turn_to(now);
        let (today, zone) = (sums.today, sums.zone());
        let mut found = Vec::new();
        for (key, limits) in &sums.limits {
            let spent = sums.accounts.get(key).map(Account::spent).unwrap_or_default();
            for of in limits.budget.uses(spent).filter(BudgetUse::is_near) {
                found.push(BudgetNews { key: Arc::clone(key), of, renewal: of.period.renewal(today, &zone) });
            }
        }
        found.retain(|news| {
            let period = news.of.period;
            sums.told.insert((Arc::clone(&news.key), period, period.first(today), news.of.is_exhausted()))
        });
        found
    }
}

impl Sums {
    fn zone(&self) -> TimeZone {
        self.zone.clone().unwrap_or(TimeZone::UTC)
    }

    /// What is known of a key that has a limit.
    fn account(&mut self, key: &str) -> Option<&mut Account> {
        let (name, _) = self.limits.get_key_value(key)?;
        Some(self.accounts.entry(Arc::clone(name)).or_default())
    }

    /// Begins a new day and a new minute where it is time. Never goes back: a clock that was set back must not renew a budget twice.
    fn turn_to(&mut self, now: Timestamp) {
        let minute = minute_of(now);
        if minute > self.minute {
            self.minute = minute;
            for account in self.accounts.values_mut() {
                (account.known_calls, account.sending_calls, account.pending_calls) = (0, 0, 0);
            }
        }
        if self.tomorrow.is_some_and(|tomorrow| now < tomorrow) {
            return;
        }
        self.count_lines();
        let (zone, before) = (self.zone(), self.today);
        let zoned = now.to_zoned(zone.clone());
        self.today = zoned.date();
        self.began = zoned.start_of_day().ok().map(|began| began.timestamp());
        self.tomorrow = Some(Period::Day.renewal(self.today, &zone));
        if self.today == before {
            return;
        }
        let is_same_month = Period::Month.first(before) == Period::Month.first(self.today);
        self.named.clear();
        self.told.retain(|(_, period, _, _)| *period == Period::Month && is_same_month);
        for account in self.accounts.values_mut() {
            for spent in [&mut account.known, &mut account.sending, &mut account.pending] {
                spent.day = Amount::ZERO;
                if !is_same_month {
                    spent.month = Amount::ZERO;
                }
            }
        }
    }

    /// Whether an attempt that was sent at this time belongs to today. A clock may have been set back.
    fn is_today(&self, sent: Timestamp) -> bool {
        self.began.is_some_and(|began| began <= sent) && self.tomorrow.is_some_and(|tomorrow| sent < tomorrow)
    }

    fn day_of(&self, sent: Timestamp) -> Date {
        sent.to_zoned(self.zone()).date()
    }

    /// Charges a key that has a limit.
    fn charge(&mut self, key: &Arc<str>, cost: Amount) {
        if let Some(account) = self.account(key) {
            account.pending = account.pending.plus(SpentAmounts { day: cost, month: cost });
        }
    }

    /// Counts by names.
    fn count(&mut self, of: UsageKey, counts: &UsageCounts) {
        // What waits for the store was bounded before.
        if let Some(waiting) = self.pending.get_mut(&of) {
            waiting.add(counts);
        } else {
            let of = self.bounded(of);
            self.pending.entry(of).or_default().add(counts);
        }
    }

    /// Counts all lines by their names.
    fn count_lines(&mut self) {
        for line in std::mem::take(&mut self.lines) {
            let of = usage_key(&line.payer, &line.model, self.today);
            self.count(of, &line.counts);
        }
    }

    /// The same within the bound of names.
    fn bounded(&mut self, of: UsageKey) -> UsageKey {
        if self.named.contains(&of) || of.day != self.today {
            return of;
        }
        if self.named.len() < MAX_SUMS {
            self.named.insert(of.clone());
            return of;
        }
        let others = |name: &str| if name.is_empty() { String::new() } else { OTHERS.to_owned() };
        UsageKey { model: OTHERS.to_owned(), agent: others(&of.agent), ..of }
    }

    /// The batch on its way, or a new one of what was counted since.
    fn next_batch(&mut self, source: &str) -> Option<UsageBatch> {
        self.count_lines();
        if self.sending.is_none() && !(self.pending.is_empty() && self.pending_calls.is_empty()) {
            self.number += 1;
            let rows = self.pending.drain().map(|(of, counts)| UsageRow { of, counts }).collect();
            let calls = self.pending_calls.drain();
            let calls = calls
                .map(|((key, minute), calls)| KeyCalls { key: key.to_string(), minute, calls })
                .collect();
            for account in self.accounts.values_mut() {
                account.sending = std::mem::take(&mut account.pending);
                account.sending_calls = std::mem::take(&mut account.pending_calls);
            }
            self.sending = Some(UsageBatch { source: source.to_owned(), number: self.number, rows, calls });
        }
        self.sending.clone()
    }

    /// The store has the batch.
    fn was_sent(&mut self) {
        self.sending = None;
        for account in self.accounts.values_mut() {
            account.known = account.known.plus(std::mem::take(&mut account.sending));
            account.known_calls += std::mem::take(&mut account.sending_calls);
        }
    }
}

/// What an attempt is counted by.
fn usage_key(payer: &Payer, model: &str, day: Date) -> UsageKey {
    UsageKey {
        day,
        key: payer.key.to_string(),
        model: model.to_owned(),
        route: payer.route.to_string(),
        agent: payer.agent.as_deref().unwrap_or_default().to_owned(),
    }
}

fn count(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use koboshi::spend::Budget;
    use koboshi_store::MemoryStore;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn node(name: &str, limits: KeyLimits) -> Spending {
        let spending = Spending::new(name.to_owned());
        let zone = TimeZone::fixed(jiff::tz::offset(9));
        spending.adopt(HashMap::from([("laptop".into(), limits)]), zone);
        spending
    }

    fn budget(day: f64, month: f64) -> KeyLimits {
        KeyLimits { budget: Budget { day: Amount::of(day), month: Amount::of(month) }, rate: None }
    }

    fn payer(agent: Option<&str>) -> Payer {
        Payer { key: "laptop".into(), route: "m".into(), agent: agent.map(Into::into), is_lesser: false }
    }

    /// One dollar.
    fn spend(spending: &Spending, now: Timestamp) {
        let usage = Usage { input: 1_000_000, ..Usage::default() };
        let used = AttemptUsage { usage, ..AttemptUsage::default() };
        spending.add(payer(None), &"one/m".into(), Price::of(1.0, 1.0), used, now);
    }

    #[test]
    fn a_budget_counts_what_this_and_other_processes_spent_and_is_renewed_at_midnight_of_its_zone() {
        let store = MemoryStore::default();
        let (one, two) = (node("one", budget(2.0, 3.0)), node("two", budget(2.0, 3.0)));
        let now = at("2026-11-18T12:00:00Z");
        spend(&one, now);
        assert_eq!(one.admit("laptop", now), Ok(()));
        one.sync(&store, true, now).unwrap();
        two.sync(&store, true, now).unwrap();
        spend(&two, now);
        let midnight = at("2026-11-18T15:00:00Z");
        let Err(SpendRefusal::Budget(over, until)) = two.admit("laptop", now) else { panic!("it is spent") };
        assert_eq!((over.period, until), (Period::Day, midnight));
        assert_eq!(one.admit("laptop", now), Ok(()), "it does not know yet");
        two.sync(&store, true, now).unwrap();
        one.sync(&store, true, now).unwrap();
        assert!(one.admit("laptop", now).is_err());
        assert_eq!(one.admit("phone", now), Ok(()), "a key without limits");
        assert_eq!(one.admit("laptop", midnight), Ok(()));
        spend(&one, midnight);
        let Err(SpendRefusal::Budget(over, until)) = one.admit("laptop", midnight) else {
            panic!("the month's")
        };
        assert_eq!((over.period, until), (Period::Month, at("2026-11-30T15:00:00Z")));
        one.sync(&store, true, midnight).unwrap();
        assert!(one.admit("laptop", midnight).is_err());
    }

    #[test]
    fn calls_of_a_minute_are_limited_for_all_processes_together() {
        let store = MemoryStore::default();
        let limits = KeyLimits { budget: Budget::default(), rate: Some(3) };
        let (one, two) = (node("one", limits.clone()), node("two", limits));
        let now = at("2026-11-18T12:00:10Z");
        for _ in 0..2 {
            assert_eq!(one.admit("laptop", now), Ok(()));
        }
        one.sync(&store, true, now).unwrap();
        two.sync(&store, true, now).unwrap();
        assert_eq!(two.admit("laptop", now), Ok(()));
        assert_eq!(two.admit("laptop", now), Err(SpendRefusal::Rate(3, at("2026-11-18T12:01:00Z"))));
        assert_eq!(two.admit("laptop", at("2026-11-18T12:01:00Z")), Ok(()));
    }

    #[test]
    fn people_are_told_once_that_little_is_left_and_once_that_nothing_is() {
        let one = node("one", budget(5.0, 100.0));
        let now = at("2026-11-18T12:00:00Z");
        let told = |spending: &Spending, now| -> Vec<bool> {
            spending.news(now).iter().map(|news| news.of.is_exhausted()).collect()
        };
        for _ in 0..3 {
            spend(&one, now);
        }
        assert_eq!(told(&one, now), [] as [bool; 0]);
        spend(&one, now);
        assert_eq!((told(&one, now), told(&one, now)), (vec![false], vec![]));
        spend(&one, now);
        assert_eq!((told(&one, now), told(&one, now)), (vec![true], vec![]));
        let tomorrow = at("2026-11-19T12:00:00Z");
        (0..4).for_each(|_| spend(&one, tomorrow));
        assert_eq!(told(&one, tomorrow), [false], "a new day");
    }

    #[test]
    fn nothing_is_counted_twice_or_lost_where_the_store_fails_for_a_while() {
        let store = MemoryStore::default();
        let one = node("one", budget(9.0, 9.0));
        let now = at("2026-11-18T12:00:00Z");
        spend(&one, now);
        // It was written, but the answer was lost.
        let batch = one.lock().next_batch("one").unwrap();
        store.usage().add(&batch, now).unwrap();
        spend(&one, now);
        one.sync(&store, true, now).unwrap();
        let all = store.usage().totals(Date::MIN, Date::MAX).unwrap();
        assert_eq!((all.len(), all[0].counts.attempts, all[0].counts.cost), (1, 2, 2 * Amount::PARTS));
        assert_eq!(one.lock().accounts["laptop"].spent().day, Amount::of(2.0).unwrap());
    }

    #[test]
    fn what_all_cores_counted_is_one_row_for_each_day() {
        let one = node("one", budget(9.0, 9.0));
        let (before, midnight) = (at("2026-11-18T14:59:59Z"), at("2026-11-18T15:00:00Z"));
        // Each call has strings of its own, as each core has; the last one was sent on the day before.
        for now in [before, before, midnight, before] {
            spend(&one, now);
        }
        let batch = one.lock().next_batch("one").unwrap();
        let mut rows: Vec<_> =
            batch.rows.iter().map(|row| (row.of.day.to_string(), row.counts.attempts)).collect();
        rows.sort();
        assert_eq!(rows, [("2026-11-18".to_owned(), 3), ("2026-11-19".to_owned(), 1)]);
    }

    #[test]
    fn attempts_with_the_same_strings_share_a_line_and_lines_have_a_bound() {
        let one = node("one", budget(9.0, 9.0));
        let now = at("2026-11-18T12:00:00Z");
        let (payer, model) = (payer(None), Arc::from("one/m"));
        let add = |payer: Payer| one.add(payer, &model, None, AttemptUsage::default(), now);
        let of = |agent: String| Payer { agent: Some(agent.into()), ..payer.clone() };
        for _ in 0..3 {
            add(payer.clone());
            add(of("a".to_owned()));
        }
        assert_eq!(one.lock().lines.len(), 2);
        for number in 0..3 * MAX_LINES {
            add(of(number.to_string()));
            assert!(one.lock().lines.len() <= MAX_LINES);
        }
        let batch = one.lock().next_batch("one").unwrap();
        let attempts =
            |agent: &str| batch.rows.iter().find(|row| row.of.agent == agent).unwrap().counts.attempts;
        assert_eq!((attempts(""), attempts("a"), attempts("7")), (3, 3, 1));
        assert_eq!(batch.rows.len(), 2 + 3 * MAX_LINES);
    }

    #[test]
    fn names_that_clients_make_up_do_not_fill_the_store() {
        let one = node("one", budget(9.0, 9.0));
        let now = at("2026-11-18T12:00:00Z");
        for number in 0..MAX_SUMS + 500 {
            let agent = format!("agent-{number}");
            one.add(payer(Some(&agent)), &"one/m".into(), None, AttemptUsage::default(), now);
        }
        let batch = one.lock().next_batch("one").unwrap();
        assert_eq!(batch.rows.len(), MAX_SUMS + 1);
        let others = batch.rows.iter().find(|row| row.of.agent == OTHERS).unwrap();
        assert_eq!((others.counts.attempts, &*others.of.model), (500, OTHERS));
    }
}

//! What answers cost, added up as an operator asks: the same table from a running gateway and from its store alone.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use koboshi::spend::{Amount, Period, SpentAmounts};
use koboshi_config::Config;
use koboshi_store::{Store, StoreError, UsageCounts, UsageRow};
use serde::{Deserialize, Serialize};
#[cfg(test)]
use utoipa::ToSchema;

use super::AdminRequest;
use crate::reply::refusal::Refusal;

/// What usage is added up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SpendBy {
    /// The client's key.
    #[default]
    Key,
    /// Provider and model.
    Model,
    /// The route.
    Route,
    /// The agent.
    Agent,
    /// The day.
    Day,
}

impl SpendBy {
    /// The names of all.
    pub const NAMES: [&str; 5] = ["key", "model", "route", "agent", "day"];

    /// The one with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Key, Self::Model, Self::Route, Self::Agent, Self::Day];
        all.into_iter().zip(Self::NAMES).find(|(_, known)| *known == name).map(|(by, _)| by)
    }

    fn name_of(self, row: &UsageRow) -> String {
        let of = &row.of;
        match self {
            Self::Key => of.key.clone(),
            Self::Model => of.model.clone(),
            Self::Route => of.route.clone(),
            Self::Agent if of.agent.is_empty() => "-".to_owned(),
            Self::Agent => of.agent.clone(),
            Self::Day => of.day.to_string(),
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpendQuery {
    /// What usage is added up by.
    pub by: SpendBy,
    /// The first day; else the first one of this month.
    pub from: Option<Date>,
    /// The last day; else today.
    pub to: Option<Date>,
}

/// One line of a report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct SpendRow {
    /// The key, model, route, agent or day.
    pub name: String,
    /// Attempts that were sent to providers.
    pub attempts: i64,
    /// Tokens sent, cached ones included.
    pub input_tokens: i64,
    /// Tokens received, thinking included.
    pub output_tokens: i64,
    /// Of the sent ones, read from the provider's cache.
    pub cached_tokens: i64,
    /// Of the sent ones, written to the provider's cache.
    pub stored_tokens: i64,
    /// Of the received ones, thinking.
    pub reasoning_tokens: i64,
    /// What the tokens with a known price cost.
    pub cost: f64,
    /// Tokens whose price is unknown: they are in no cost.
    pub unpriced_tokens: i64,
    /// Tokens that no provider stated, of answers that were cut.
    pub estimated_tokens: i64,
    /// Attempts with such tokens.
    pub estimated_attempts: i64,
    /// Attempts whose answer no client got.
    pub lost_attempts: i64,
    /// What these cost.
    pub lost_cost: f64,
    /// What lesser answers cost.
    pub lesser_cost: f64,
}

impl SpendRow {
    fn of(name: String, counts: &UsageCounts) -> Self {
        let money = |parts| Amount::of_parts(parts).units();
        Self {
            name,
            attempts: counts.attempts,
            input_tokens: counts.input,
            output_tokens: counts.output,
            cached_tokens: counts.cached,
            stored_tokens: counts.stored,
            reasoning_tokens: counts.reasoning,
            cost: money(counts.cost),
            unpriced_tokens: counts.unpriced,
            estimated_tokens: counts.estimated,
            estimated_attempts: counts.estimated_attempts,
            lost_attempts: counts.lost_attempts,
            lost_cost: money(counts.lost_cost),
            lesser_cost: money(counts.lesser_cost),
        }
    }
}

/// How much of a key's budget is used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct BudgetRow {
    /// The name of the key.
    pub key: String,
    /// `day` or `month`.
    pub period: String,
    /// What may be spent.
    pub limit: f64,
    /// What was spent.
    pub spent: f64,
    /// The share of it: 1 and more is refused.
    pub share: f64,
    /// When it is renewed.
    #[cfg_attr(test, schema(value_type = String))]
    pub renews_at: Timestamp,
}

/// What answers cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ToSchema))]
pub struct SpendReport {
    /// What it is added up by.
    pub by: SpendBy,
    /// The first day.
    #[cfg_attr(test, schema(value_type = String))]
    pub from: Date,
    /// The last day.
    #[cfg_attr(test, schema(value_type = String))]
    pub to: Date,
    /// The zone of the days.
    pub zone: String,
    /// The currency of all costs.
    pub currency: String,
    /// The dearest first; days in their order.
    pub rows: Vec<SpendRow>,
    /// All rows together.
    pub total: SpendRow,
    /// The budgets of keys, as they are now.
    pub budgets: Vec<BudgetRow>,
}

impl SpendReport {
    /// Reads a store, as this config counts.
    ///
    /// # Errors
    /// The store cannot be read now.
    pub fn read(
        store: &dyn Store,
        config: &Config,
        zone: &TimeZone,
        query: SpendQuery,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let today = now.to_zoned(zone.clone()).date();
        let month = Period::Month.first(today);
        let (from, to) = (query.from.unwrap_or(month), query.to.unwrap_or(today));
        // Where no last day is named: a gateway that counts in another zone may be a day ahead of this reader.
        let last = query.to.or_else(|| today.tomorrow().ok()).unwrap_or(today);
        let mut sums: BTreeMap<String, UsageCounts> = BTreeMap::new();
        let mut total = UsageCounts::default();
        for row in store.usage().totals(from, last)? {
            sums.entry(query.by.name_of(&row)).or_default().add(&row.counts);
            total.add(&row.counts);
        }
        let mut rows: Vec<_> = sums.into_iter().map(|(name, counts)| SpendRow::of(name, &counts)).collect();
        if query.by != SpendBy::Day {
            rows.sort_by(|left, right| {
                let tokens = |row: &SpendRow| row.input_tokens.saturating_add(row.output_tokens);
                right.cost.total_cmp(&left.cost).then_with(|| tokens(right).cmp(&tokens(left)))
            });
        }
        Ok(Self {
            by: query.by,
            from,
            to,
            zone: config.spend.zone.clone(),
            currency: config.spend.currency.clone(),
            rows,
            total: SpendRow::of("total".to_owned(), &total),
            budgets: budgets(store, config, zone, today, month)?,
        })
    }
}

fn budgets(
    store: &dyn Store,
    config: &Config,
    zone: &TimeZone,
    today: Date,
    month: Date,
) -> Result<Vec<BudgetRow>, StoreError> {
    let limited = || config.keys.iter().filter(|(_, key)| key.budget.is_limited());
    if limited().next().is_none() {
        return Ok(Vec::new());
    }
    let all = store.usage().spent(month, today)?;
    let of_key = |(name, key): (&String, &koboshi_config::gateway::ClientKey)| {
        let spent = all.iter().find(|one| one.key == *name);
        let spent = spent.map_or_else(SpentAmounts::default, |one| SpentAmounts {
            day: Amount::of_parts(one.day),
            month: Amount::of_parts(one.all),
        });
        let rows = key.budget.uses(spent).map(|used| BudgetRow {
            key: name.clone(),
            period: used.period.name().to_owned(),
            limit: used.limit.units(),
            spent: used.spent.units(),
            share: used.share(),
            renews_at: used.period.renewal(today, zone),
        });
        rows.collect::<Vec<_>>()
    };
    Ok(limited().flat_map(of_key).collect())
}

/// What answers cost: tokens and money by key, model, route, agent or day, and how much of each budget is used.
#[cfg_attr(test, utoipa::path(get, path = super::paths::SPEND, tag = "spend",
    params(("by" = Option<String>, Query, description = "key (default), model, route, agent or day"),
           ("from" = Option<String>, Query, description = "The first day, such as 2026-11-01; else the first one of this month"),
           ("to" = Option<String>, Query, description = "The last day; else today")),
    responses((status = 200, description = "What was spent; what was counted in the last second by other gateways may be missing", body = SpendReport),
              (status = 503, description = "The store cannot be read now"))))]
pub(super) async fn read(request: &AdminRequest<'_>, query: &str) -> Result<SpendReport, Refusal> {
    let query = parse(query)?;
    let state = &request.core.state;
    let (plan, spending, now) = (state.plan(), std::sync::Arc::clone(&state.spending), state.wall());
    let zone = state.spend_zone(&plan);
    let report = request.ask_store(move |_, store| {
        // What this process counted; if the store is unreachable, its own answer says so.
        let _ = spending.sync(store, false, now);
        SpendReport::read(store, &plan.config, &zone, query, now)
    });
    report.await
}

fn parse(text: &str) -> Result<SpendQuery, Refusal> {
    let mut query = SpendQuery::default();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        let day = |name| value.parse().map(Some).map_err(|_| Refusal::query_day(name));
        match &*name {
            "by" => {
                let names = SpendBy::NAMES.join(", ");
                query.by = SpendBy::from_name(&value).ok_or_else(|| Refusal::query_choice("by", &names))?;
            }
            "from" => query.from = day("from")?,
            "to" => query.to = day("to")?,
            _ => return Err(Refusal::query(&name, "by, from, to")),
        }
    }
    // A range of more days than are kept is a mistake, and would be a long answer.
    let (from, to) = (query.from.unwrap_or(Date::MIN), query.to.unwrap_or(Date::MAX));
    if from > to
        || (query.from.is_some()
            && from.checked_add(800.days()).is_ok_and(|last| last < to)
            && query.to.is_some())
    {
        return Err(Refusal::query_day("from"));
    }
    Ok(query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read_from_its_address() {
        let query = parse("by=model&from=2026-11-01&to=2026-11-18").unwrap();
        assert_eq!((query.by, query.from), (SpendBy::Model, Some(jiff::civil::date(2026, 11, 1))));
        assert_eq!(parse("").unwrap(), SpendQuery::default());
        for (text, param) in [
            ("by=tenant", "by"),
            ("from=soon", "from"),
            ("to=2026-13-01", "to"),
            ("from=2026-11-02&to=2026-11-01", "from"),
            ("wat=1", "query"),
        ] {
            assert_eq!(
                parse(text).map_err(|refusal| refusal.param.unwrap()),
                Err(param.to_owned()),
                "{text}"
            );
        }
    }
}

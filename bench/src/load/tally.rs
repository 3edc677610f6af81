//! What was measured, as JSON. Times are microseconds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::ask::Asks;
use crate::exchange::Answer;

/// One request.
pub(crate) struct Row {
    /// When it was due.
    pub(crate) due: u64,
    /// When it was over.
    pub(crate) over: u64,
    /// What came.
    pub(crate) answer: Answer,
    /// Why it broke off.
    pub(crate) error: Option<String>,
}

impl Row {
    /// The whole right answer, and nothing but it.
    fn whole(&self, asks: &Asks) -> bool {
        let events = &self.answer.events;
        let right = if asks.stream {
            events.finished && events.done && events.error.is_none() && events.text == asks.text.as_bytes()
        } else {
            memchr::memmem::find(&self.answer.body, asks.text.as_bytes()).is_some()
        };
        self.answer.status == 200 && self.error.is_none() && self.answer.complete && right
    }

    fn json(&self, asks: &Asks) -> Value {
        let events = &self.answer.events;
        let body = String::from_utf8_lossy(&self.answer.body);
        let told = (self.answer.status != 200).then(|| body.chars().take(300).collect::<String>());
        json!({
            "due": self.due,
            "status": self.answer.status,
            "first_us": events.first.map(|first| micros(first.saturating_sub(self.due))),
            "gap_us": micros(events.gap),
            "total_us": micros(self.over.saturating_sub(self.due)),
            "pieces": events.pieces,
            "finished": events.finished,
            "done": events.done,
            "whole": self.whole(asks),
            "error": self.error.clone().or_else(|| events.error.clone()).or(told),
        })
    }
}

/// All requests of a run.
#[derive(Default)]
pub(crate) struct Tally {
    rows: Vec<Row>,
}

impl Tally {
    /// One more.
    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Everything, over the seconds that were measured.
    pub(crate) fn json(&self, asks: &Asks, seconds: f64, rows: bool) -> Value {
        let mut status = BTreeMap::<String, u64>::new();
        let mut errors = BTreeMap::<String, u64>::new();
        for row in &self.rows {
            *status.entry(row.answer.status.to_string()).or_default() += 1;
            if let Some(error) = &row.error {
                *errors.entry(error.clone()).or_default() += 1;
            }
        }
        let good = || self.rows.iter().filter(|row| row.answer.status == 200 && row.error.is_none());
        let streams = || good().map(|row| &row.answer.events);
        let mut told = json!({
            "requests": self.rows.len(),
            "seconds": seconds,
            "status": status,
            "errors": errors,
            "latency_us": quantiles(good().map(|row| row.over.saturating_sub(row.due)).collect()),
            "first_us": quantiles(
                good().filter_map(|row| Some(row.answer.events.first?.saturating_sub(row.due))).collect()
            ),
            "delay_us": quantiles(streams().flat_map(|events| events.delays.iter().copied()).collect()),
            "pieces": streams().map(|events| events.pieces).sum::<u64>(),
            "done": streams().filter(|events| events.done).count(),
        });
        if let Some(told) = told.as_object_mut().filter(|_| rows) {
            told.insert("rows".to_owned(), self.rows.iter().map(|row| row.json(asks)).collect());
        }
        told
    }
}

fn micros(nanos: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a run are far below 2^52")]
    let micros = (nanos / 100) as f64 / 10.0;
    micros
}

fn quantiles(mut nanos: Vec<u64>) -> Value {
    nanos.sort_unstable();
    let at = |permille: usize| nanos.get((nanos.len() * permille / 1000).min(nanos.len().saturating_sub(1)));
    let Some(((p50, p90), (p99, max))) = at(500).zip(at(900)).zip(at(990).zip(nanos.last())) else {
        return Value::Null;
    };
    json!({"n": nanos.len(), "p50": micros(*p50), "p90": micros(*p90), "p99": micros(*p99), "max": micros(*max)})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let told = quantiles((1..=1000).rev().map(|micros| micros * 1000).collect());
        assert_eq!(told, json!({"n": 1000, "p50": 501.0, "p90": 901.0, "p99": 991.0, "max": 1000.0}));
        assert_eq!(quantiles(Vec::new()), Value::Null);
    }
}

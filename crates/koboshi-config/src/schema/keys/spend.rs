//! `spend`, and what a client's key may spend.

use koboshi::spend::Amount;

use super::super::{Field, Form, Key, Range};
use super::build::{at, count, narrow, number, of_entry, section, text, texts};
use super::forms::NAME;
use crate::words::words;

/// More than any key may spend in a month.
const BUDGET: Range<f64> = Range::of(0.0, 100_000_000.0);

/// One limit of a key's budget.
macro_rules! budget_of {
    ($period:ident) => {
        Field {
            get: |c, name| c.keys.get(name).and_then(|key| key.budget.$period).map(Amount::units),
            set: |c, name, units| {
                if let Some(key) = c.keys.get_mut(name) {
                    key.budget.$period = units.and_then(Amount::of);
                }
            },
        }
    };
}

/// A text of the section.
macro_rules! at_text {
    ($name:ident) => {
        Field {
            get: |c, _| Some(c.spend.$name.clone()),
            set: |c, _, text| {
                if let Some(text) = text {
                    c.spend.$name = text;
                }
            },
        }
    };
}

const CURRENCY: Form = Form {
    description: words("3 capital letters such as `USD`", "`USD` のような大文字 3 文字"),
    pattern: "^[A-Z]{3}$",
    holds: |text| text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase()),
    hint: |text| {
        let is_small = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic());
        is_small.then_some(words("write it in capital letters", "大文字で書いてください"))
    },
};

pub(super) const ZONE: Form = Form {
    description: words(
        "the name of a time zone such as `Asia/Tokyo` or `UTC`",
        "`Asia/Tokyo` や `UTC` のようなタイムゾーン名",
    ),
    pattern: "^[A-Za-z][A-Za-z0-9+_-]{0,30}(/[A-Za-z0-9+_-]{1,30}){0,2}$",
    holds: |text| {
        let is_part = |part: &str, max: usize| {
            (1..=max).contains(&part.len())
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+_-".contains(&byte))
        };
        let mut parts = text.split('/');
        text.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && parts.next().is_some_and(|first| is_part(first, 31))
            && parts.clone().count() <= 2
            && parts.all(|part| is_part(part, 30))
    },
    hint: |_| None,
};

pub(super) fn budgets() -> Vec<Key> {
    vec![
        section("keys.*.budget", "What the key may spend, on all gateways of a store together; see `spend`"),
        number("keys.*.budget.day", BUDGET, budget_of!(day), "In a day, in the currency of `spend.currency`")
            .unset("no limit", "制限なし"),
        number("keys.*.budget.month", BUDGET, budget_of!(month), "In a month of the calendar")
            .unset("no limit", "制限なし"),
        count(
            "keys.*.rate",
            Range::of(1, 1_000_000),
            Field {
                get: |c, name| c.keys.get(name).and_then(|key| key.rate).map(u64::from),
                set: |c, name, rate| {
                    if let Some(key) = c.keys.get_mut(name) {
                        key.rate = rate.map(narrow);
                    }
                },
            },
            "How many requests the key may make in a minute, on all gateways of a store together",
        )
        .unset("no limit", "制限なし"),
        texts(
            "keys.*.routes",
            NAME,
            Range::of(0, 1000),
            of_entry!(keys, routes),
            "Names of routes and models that the key may ask for; `*` stands for anything",
        )
        .unset("all", "すべて"),
    ]
}

pub(super) fn spend() -> Vec<Key> {
    vec![
        section("spend", "How the cost of answers is counted"),
        text(
            "spend.currency",
            CURRENCY,
            at_text!(currency),
            "The currency of budgets and costs; another one than dollars needs `per_dollar`",
        ),
        number(
            "spend.per_dollar",
            Range::above(0.0, 1_000_000.0),
            at!(spend.per_dollar),
            "How much of that currency a US dollar is worth: the prices of models are in dollars",
        ),
        text(
            "spend.zone",
            ZONE,
            at_text!(zone),
            "Time zone in which days and months begin, such as `Asia/Tokyo`; the same for all gateways of a store",
        ),
    ]
}

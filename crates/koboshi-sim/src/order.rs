//! A model's name, read: which entry of the table it is, and its parameters.
//!
//! Values are read where they are needed, by the kind of value needed there; each getter names the parameter in its
//! error. A parameter that the table does not have is refused here, so that a typing mistake is not a silent `ok`.

use std::time::Duration;

use crate::name::{COMMON, Name, names};

/// No name is longer.
const MAX_NAME: usize = 1000;
/// No stated length is longer: a year.
const MAX_TIME: Duration = Duration::from_secs(366 * 24 * 3600);

/// What is wrong with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InvalidName {
    /// There is no such name.
    Unknown,
    /// A parameter cannot be used; what is wrong with it, in a sentence.
    Param(String),
}

/// A name and its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Order<'a> {
    pub(crate) name: &'static Name,
    /// The status of a `fail-…`.
    pub(crate) status: u16,
    params: Vec<(&'a str, &'a str)>,
}

/// Calls, or a length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    Calls(u64),
    Time(Duration),
}

impl<'a> Order<'a> {
    pub(crate) fn read(model: &'a str) -> Result<Self, InvalidName> {
        if model.len() > MAX_NAME {
            return Err(InvalidName::Unknown);
        }
        let (name, query) = model.split_once('?').unwrap_or((model, ""));
        let failing = name.strip_prefix("fail-").map(status);
        let known = match failing {
            Some(Some(_)) => find(name).or_else(|| find("fail-STATUS")),
            Some(None) => None,
            None => find(name),
        };
        let name = known.ok_or(InvalidName::Unknown)?;
        let mut params: Vec<(&str, &str)> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let known = COMMON.iter().chain(name.params).any(|param| param.name == key);
            if !known {
                let all: Vec<&str> = name.params.iter().chain(COMMON).map(|param| param.name).collect();
                return Err(InvalidName::Param(format!(
                    "Unknown parameter '{key}' of '{}'. It has: {}.",
                    name.name,
                    all.join(", ")
                )));
            }
            if params.iter().any(|(before, _)| *before == key) {
                return Err(InvalidName::Param(format!("Parameter '{key}' is given twice.")));
            }
            params.push((key, value));
        }
        Ok(Self { name, status: failing.flatten().unwrap_or(0), params })
    }

    /// The text of a parameter, if it is given.
    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        self.params.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    /// A parameter read by `read`, or nothing if it is not given.
    fn read_as<T>(
        &self,
        key: &str,
        form: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, InvalidName> {
        let Some(value) = self.text(key) else { return Ok(None) };
        match read(value) {
            Some(read) => Ok(Some(read)),
            None => {
                Err(InvalidName::Param(format!("Invalid value '{value}' of parameter '{key}': give {form}.")))
            }
        }
    }

    pub(crate) fn count(&self, key: &str, max: u64) -> Result<Option<u64>, InvalidName> {
        self.read_as(key, &format!("a whole number from 0 to {max}"), |value| {
            value.parse().ok().filter(|count| *count <= max)
        })
    }

    pub(crate) fn length(&self, key: &str) -> Result<Option<Duration>, InvalidName> {
        self.read_as(key, "a length of time such as 250ms, 20s or 2m", length)
    }

    /// A stated wait: seconds, a length, or `none`.
    pub(crate) fn wait(&self, key: &str, default: Option<Duration>) -> Result<Option<Duration>, InvalidName> {
        let read = |value: &str| match value {
            "none" => Some(None),
            _ => length(value).or_else(|| seconds(value)).map(Some),
        };
        Ok(self.read_as(key, "seconds such as 2, a length such as 250ms, or none", read)?.unwrap_or(default))
    }

    pub(crate) fn amount(&self, key: &str) -> Result<Option<Amount>, InvalidName> {
        let read =
            |value: &str| value.parse().map(Amount::Calls).ok().or_else(|| length(value).map(Amount::Time));
        self.read_as(key, "a number of calls such as 5, or a length such as 30s", read)
    }

    pub(crate) fn share(&self, key: &str) -> Result<Option<f64>, InvalidName> {
        self.read_as(key, "a number from 0 to 1", |value| {
            value.parse().ok().filter(|share| (0.0..=1.0).contains(share))
        })
    }

    pub(crate) fn flag(&self, key: &str) -> Result<bool, InvalidName> {
        Ok(self.word(key, &["no", "yes"])? == "yes")
    }

    /// One of these words; the first is the default.
    pub(crate) fn word(&self, key: &str, words: &[&'static str]) -> Result<&'static str, InvalidName> {
        let read = |value: &str| words.iter().copied().find(|word| *word == value);
        let form = format!("one of {}", words.join(", "));
        Ok(self.read_as(key, &form, read)?.unwrap_or_else(|| words.first().copied().unwrap_or_default()))
    }
}

fn find(name: &str) -> Option<&'static Name> {
    names().iter().find(|entry| entry.name == name)
}

fn status(digits: &str) -> Option<u16> {
    let three = digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|status| three && (400..600).contains(status))
}

fn seconds(value: &str) -> Option<Duration> {
    let plain = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds = value.parse().ok().filter(|_| plain)?;
    Duration::try_from_secs_f64(seconds).ok().filter(|length| *length <= MAX_TIME)
}

fn length(value: &str) -> Option<Duration> {
    const UNITS: &[(&str, f64)] = &[("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let (number, factor) =
        UNITS.iter().find_map(|(unit, factor)| Some((value.strip_suffix(unit)?, *factor)))?;
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = number.parse().ok().filter(|_| plain)?;
    Duration::try_from_secs_f64(number * factor).ok().filter(|length| *length <= MAX_TIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(model: &str, ask: impl FnOnce(&Order<'_>) -> Result<(), InvalidName>) -> String {
        match Order::read(model).and_then(|order| ask(&order)) {
            Err(InvalidName::Param(says)) => says,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lengths_have_units_and_counts_have_none() {
        let order = Order::read("ok?latency=1.5s&chunks=7").unwrap();
        assert_eq!(order.length("latency"), Ok(Some(Duration::from_millis(1500))));
        assert_eq!(order.count("chunks", 10), Ok(Some(7)));
        assert_eq!(order.length("gap"), Ok(None));
        let says = complaint("ok?gap=5", |order| order.length("gap").map(drop));
        assert!(says.contains("'gap'") && says.contains("'5'") && says.contains("250ms"), "{says}");
    }

    #[test]
    fn what_the_table_does_not_have_is_refused_by_name() {
        assert_eq!(Order::read("no-such").unwrap_err(), InvalidName::Unknown);
        assert_eq!(Order::read("fail-STATUS").unwrap_err(), InvalidName::Unknown);
        assert_eq!(Order::read("fail-200").unwrap_err(), InvalidName::Unknown);
        assert_eq!(Order::read(&"a".repeat(2000)).unwrap_err(), InvalidName::Unknown);
        let says = complaint("cut?aftr=3", |_| Ok(()));
        assert!(says.contains("'aftr'") && says.contains("after"), "{says}");
        assert!(complaint("ok?p=1&p=0", |_| Ok(())).contains("twice"));
    }

    #[test]
    fn any_failing_status_has_a_name() {
        assert_eq!(Order::read("fail-503").unwrap().name.name, "fail-503");
        let odd = Order::read("fail-418?retry_after=none").unwrap();
        assert_eq!((odd.name.name, odd.status), ("fail-STATUS", 418));
        assert_eq!(odd.wait("retry_after", Some(Duration::ZERO)), Ok(None));
    }
}

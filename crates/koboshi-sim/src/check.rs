//! Checks the name of a model before a request uses it: returns what is wrong with it, in parts that can be shown in any language.

use crate::fall::Plan;
use crate::name::{COMMON, Param};
use crate::order::{InvalidName, Order};
use crate::play::Tally;

/// What is wrong with the name of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// There is no such name.
    Unknown {
        /// The name, without parameters.
        name: String,
    },
    /// The name has no such parameter.
    Param {
        /// The name, as the table writes it.
        name: &'static str,
        /// The parameter.
        param: String,
        /// Those that it has.
        known: Vec<&'static str>,
    },
    /// The value of a parameter cannot be read.
    Value {
        /// The parameter.
        param: &'static Param,
        /// Its value.
        value: String,
    },
    /// A parameter is given twice, or two of them do not fit together.
    Together,
}

/// Checks the name of a model, without `sim/`, and at its parameters.
///
/// ```
/// use koboshi_sim::{NameError, check};
///
/// assert_eq!(check("cut?after=3"), Ok(()));
/// assert!(matches!(check("fail-999"), Err(NameError::Unknown { .. })));
/// assert!(matches!(check("cut?aftr=3"), Err(NameError::Param { param, .. }) if param == "aftr"));
/// assert!(matches!(check("cut?after=soon"), Err(NameError::Value { param, .. }) if param.name == "after"));
/// ```
///
/// # Errors
/// The first thing that is wrong.
pub fn check(model: &str) -> Result<(), NameError> {
    let (name, query) = model.split_once('?').unwrap_or((model, ""));
    let known = match Order::read(name) {
        Ok(order) => order.name,
        Err(_) => return Err(NameError::Unknown { name: name.to_owned() }),
    };
    let params = || known.params.iter().chain(COMMON);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let Some(param) = params().find(|param| param.name == key) else {
            let known_params = params().map(|param| param.name).collect();
            return Err(NameError::Param { name: known.name, param: key.to_owned(), known: known_params });
        };
        if Plan::read(&format!("{name}?{pair}"), Tally::default()).is_err() {
            return Err(NameError::Value { param, value: value.to_owned() });
        }
    }
    match Plan::read(model, Tally::default()) {
        Ok(_) => Ok(()),
        Err(InvalidName::Unknown) => Err(NameError::Unknown { name: name.to_owned() }),
        Err(InvalidName::Param(_)) => Err(NameError::Together),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::names;

    #[test]
    fn every_name_of_the_table_can_be_asked_for() {
        for name in names() {
            assert_eq!(check(name.example), Ok(()), "{}", name.example);
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_parts() {
        assert_eq!(check("flap?down=5&up=5s"), Err(NameError::Together));
        assert_eq!(check("ok?p=1&p=1"), Err(NameError::Together));
        assert!(matches!(check(&"x".repeat(2000)), Err(NameError::Unknown { .. })));
        assert!(matches!(check("ok?p=2"), Err(NameError::Value { .. })));
    }
}

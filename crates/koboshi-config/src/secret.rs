//! Secrets, and the variables that they come from.
//!
//! A config file is committed, mailed and pasted; a secret must not be in it. `${NAME}` takes the value of a
//! variable, `${NAME:-default}` has a default for when it is unset or empty, and `$${` is a literal `${`. A variable that is
//! unset or empty without a default is an error: an empty password is never intended. The caller passes
//! a lookup for variables, so tests and embedders need no environment.
//!
//! A [`Secret`] is never printed: `Debug` and `Display` print a mask, and comparing two takes the same time
//! wherever they differ. Only [`Secret::expose`] returns the text. It is *not* wiped from memory.

use std::fmt;

use subtle::ConstantTimeEq;

/// The mask of a printed secret.
const HIDDEN: &str = "***";

/// A text that is never printed.
///
/// ```
/// use koboshi_config::secret::Secret;
///
/// let secret = Secret::new("hunter2");
/// assert_eq!(format!("{secret} {secret:?}"), "*** Secret(***)");
/// assert_eq!(secret.expose(), "hunter2");
/// ```
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. Do not log it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({HIDDEN})")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// Why the variables of a text cannot be filled in. `at` is where the `${` begins, in bytes of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExpandError {
    /// The variable has no value.
    Unset { name: String, at: usize },
    /// The variable has an empty value.
    Empty { name: String, at: usize },
    /// No `}` follows.
    Open { at: usize },
    /// The text in the braces is no name.
    Name { written: String, at: usize },
}

/// Fills in the variables of a text.
pub(crate) fn expand(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, ExpandError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        if let Some(after) = from.strip_prefix("$${") {
            out.push_str("${");
            rest = after;
        } else if let Some(after) = from.strip_prefix("${") {
            let at = text.len() - from.len();
            let Some((inside, after)) = after.split_once('}') else { return Err(ExpandError::Open { at }) };
            out.push_str(&value_of(inside, at, lookup)?);
            rest = after;
        } else {
            out.push('$');
            rest = from.get(1..).unwrap_or_default();
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn value_of(inside: &str, at: usize, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, ExpandError> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    if !is_name(name) || default.is_some_and(|default| default.contains("${")) {
        return Err(ExpandError::Name { written: inside.to_owned(), at });
    }
    let name_of = || name.to_owned();
    match (lookup(name), default) {
        (Some(value), _) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (Some(_), None) => Err(ExpandError::Empty { name: name_of(), at }),
        (None, None) => Err(ExpandError::Unset { name: name_of(), at }),
    }
}

/// Whether a text can be the name of a variable.
pub(crate) fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether a text is exactly one variable, so that it can be shown.
pub(crate) fn is_one_variable(text: &str) -> bool {
    text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).is_some_and(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<String> {
        match name {
            "HOST" => Some("db".to_owned()),
            "EMPTY" => Some(String::new()),
            "TRAP" => Some("${HOST}".to_owned()),
            _ => None,
        }
    }

    fn expanded(text: &str) -> Result<String, ExpandError> {
        expand(text, &lookup)
    }

    #[test]
    fn variables_are_filled_in() {
        for (text, value) in [
            ("redis://${HOST}:6379", "redis://db:6379"),
            ("${HOST}${HOST}", "dbdb"),
            ("${NONE:-other}", "other"),
            ("${EMPTY:-other}", "other"),
            ("${EMPTY:-}", ""),
            ("$${HOST} costs 5$ or $HOST", "${HOST} costs 5$ or $HOST"),
            ("日本${HOST}", "日本db"),
            ("", ""),
        ] {
            assert_eq!(expanded(text).as_deref(), Ok(value), "{text}");
        }
    }

    #[test]
    fn a_value_is_not_looked_at_again() {
        assert_eq!(expanded("${TRAP}").as_deref(), Ok("${HOST}"), "variables cannot pull in others");
    }

    #[test]
    fn what_cannot_be_filled_in_says_where() {
        let name = |name: &str| name.to_owned();
        assert_eq!(expanded("a ${NONE}"), Err(ExpandError::Unset { name: name("NONE"), at: 2 }));
        assert_eq!(expanded("${EMPTY}"), Err(ExpandError::Empty { name: name("EMPTY"), at: 0 }));
        assert_eq!(expanded("x${HOST"), Err(ExpandError::Open { at: 1 }));
        for wrong in ["${}", "${a b}", "${1A}", "${A:-${B}}"] {
            assert!(matches!(expanded(wrong), Err(ExpandError::Name { .. })), "{wrong}");
        }
    }

    #[test]
    fn a_secret_is_never_printed() {
        let secret = Secret::new("sk-very-secret");
        assert!(!format!("{secret}{secret:?}{:?}", Some(&secret)).contains("very"));
        assert_eq!(secret, Secret::new("sk-very-secret"));
        assert_ne!(secret, Secret::new("sk-very-secreT"));
        assert_ne!(secret, Secret::new("sk"));
    }
}

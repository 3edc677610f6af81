//! JSON as an automaton whose state is one small value, so that the search can go on from any place of a text, after any edit.
//!
//! It knows the structure only: the words and numbers between the marks are checked by `strict` on the whole result.

/// The deepest nesting: one bit for each open bracket.
const MAX_DEPTH: u8 = 127;

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expect {
    Value,
    /// A value, or the end of an array that has none yet.
    FirstValue,
    Key,
    /// A key, or the end of an object that has none yet.
    FirstKey,
    Colon,
    /// A comma, or the end of what is open.
    Separator,
    /// Inside a string; whether it is a key.
    Text {
        is_key: bool,
    },
    /// Behind the backslash of an escape.
    Escape {
        is_key: bool,
    },
    /// Inside a number or a word such as `true`.
    Scalar,
    /// Behind the end of the object.
    Nothing,
}

/// The state between two bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    pub(super) expect: Expect,
    /// A bit for each open bracket: set for an object.
    open: u128,
    depth: u8,
}

impl State {
    pub(super) const START: Self = Self { expect: Expect::Value, open: 0, depth: 0 };

    pub(super) const fn is_over(self) -> bool {
        matches!(self.expect, Expect::Nothing)
    }

    pub(super) const fn is_in_string(self) -> bool {
        matches!(self.expect, Expect::Text { .. } | Expect::Escape { .. })
    }

    /// Whether the innermost open bracket is an array's.
    pub(super) const fn is_in_array(self) -> bool {
        self.depth > 0 && self.open & 1 == 0
    }

    const fn then(self, expect: Expect) -> Self {
        Self { expect, ..self }
    }

    fn opened(self, is_object: bool) -> Option<Self> {
        // The arguments of a call are one object.
        if self.depth >= MAX_DEPTH || (self.depth == 0 && !is_object) {
            return None;
        }
        let expect = if is_object { Expect::FirstKey } else { Expect::FirstValue };
        Some(Self { expect, open: self.open << 1 | u128::from(is_object), depth: self.depth + 1 })
    }

    fn closed(self, is_object: bool) -> Option<Self> {
        if self.depth == 0 || self.is_in_array() == is_object {
            return None;
        }
        let depth = self.depth - 1;
        let expect = if depth == 0 { Expect::Nothing } else { Expect::Separator };
        Some(Self { expect, open: self.open >> 1, depth })
    }

    /// The state behind one more byte; none if it cannot stand here.
    pub(super) fn step(self, byte: u8) -> Option<Self> {
        match self.expect {
            Expect::Text { is_key } => match byte {
                b'"' if is_key => Some(self.then(Expect::Colon)),
                b'"' => Some(self.then(Expect::Separator)),
                b'\\' => Some(self.then(Expect::Escape { is_key })),
                0..=0x1f => None,
                _ => Some(self),
            },
            Expect::Escape { is_key } => {
                b"\"\\/bfnrtu".contains(&byte).then(|| self.then(Expect::Text { is_key }))
            }
            Expect::Scalar if byte.is_ascii_alphanumeric() || b"+-.".contains(&byte) => Some(self),
            Expect::Scalar => self.then(Expect::Separator).step(byte),
            _ if b" \t\r\n".contains(&byte) => Some(self),
            Expect::Value | Expect::FirstValue => match byte {
                b'{' => self.opened(true),
                b'[' => self.opened(false),
                b']' if self.expect == Expect::FirstValue => self.closed(false),
                b'"' if self.depth > 0 => Some(self.then(Expect::Text { is_key: false })),
                b'-' | b'0'..=b'9' | b't' | b'f' | b'n' if self.depth > 0 => Some(self.then(Expect::Scalar)),
                _ => None,
            },
            Expect::Key | Expect::FirstKey => match byte {
                b'"' => Some(self.then(Expect::Text { is_key: true })),
                b'}' if self.expect == Expect::FirstKey => self.closed(true),
                _ => None,
            },
            Expect::Colon => (byte == b':').then(|| self.then(Expect::Value)),
            Expect::Separator => match byte {
                b',' if self.is_in_array() => Some(self.then(Expect::Value)),
                b',' => Some(self.then(Expect::Key)),
                b'}' => self.closed(true),
                b']' => self.closed(false),
                _ => None,
            },
            Expect::Nothing => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(text: &str) -> Option<State> {
        text.bytes().try_fold(State::START, State::step)
    }

    #[test]
    fn whole_objects_end_and_others_do_not() {
        for text in [r#"{}"#, r#" {"a": [1, {"b": "}\"]"}], "c": true} "#, r#"{"a":[[],{}]}"#] {
            assert!(end(text).is_some_and(State::is_over), "{text}");
        }
        for text in ["[]", "1", "{]", r#"{"a" 1}"#, r#"{"a":1,}"#, r#"{"a":[1,]}"#, "{}}", r#"{"a":"\x"}"#] {
            assert!(end(text).is_none(), "{text}");
        }
        for text in ["{", r#"{"a"#, r#"{"a":[1]"#] {
            assert!(end(text).is_some_and(|state| !state.is_over()), "{text}");
        }
    }

    #[test]
    fn nesting_has_an_end() {
        assert!(end(&format!("{{\"a\":{}", "[".repeat(126))).is_some());
        assert!(end(&format!("{{\"a\":{}", "[".repeat(127))).is_none());
    }
}

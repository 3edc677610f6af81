//! Why a frame or an answer could not be read.
//!
//! It says where and never shows what: the text belongs to a conversation and may hold anything.

/// What an upstream sent does not follow the dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The bytes are no text.
    #[error("not UTF-8 from byte {at} on")]
    NotUtf8 {
        /// The first byte that does not fit.
        at: usize,
    },
    /// It ends in the middle of a JSON value: a sign of a cut connection.
    #[error("the JSON ends too early, at line {line} column {column}")]
    Cut {
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
    },
    /// It is no JSON.
    #[error("not JSON at line {line} column {column}")]
    NotJson {
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
    },
    /// It is JSON, but no object.
    #[error("not a JSON object")]
    NotAnObject,
}

impl Malformed {
    /// What serde_json says, without the words of the input.
    pub(crate) fn of(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        match error.classify() {
            serde_json::error::Category::Eof => Self::Cut { line, column },
            _ => Self::NotJson { line, column },
        }
    }
}

impl From<std::str::Utf8Error> for Malformed {
    fn from(error: std::str::Utf8Error) -> Self {
        Self::NotUtf8 { at: error.valid_up_to() }
    }
}

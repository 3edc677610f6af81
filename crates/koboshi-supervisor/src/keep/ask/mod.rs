//! Who is asked whether an agent is wanted: a program by its exit status, or a tool of an MCP server.
//!
//! The supervisor itself never waits for an answer. A program is a child that it looks after with the rest; servers are asked by a thread of
//! its own, which rings when there is something new. What an answer means is the core's to say.

mod http;
mod program;
mod server;

use std::ffi::OsString;
use std::fmt;
use std::time::Duration;

pub(super) use program::ProgramAsker;
pub(super) use server::Servers;

/// What is asked, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Who is asked.
    pub whom: Whom,
    /// How often.
    pub every: Duration,
}

impl Question {
    /// The secret that is sent with it.
    pub(super) fn token(&self) -> Option<&str> {
        match &self.whom {
            Whom::Server { place: ServerPlace::Address { token: Some(Token(token)), .. }, .. } => Some(token),
            _ => None,
        }
    }
}

/// Who knows whether an agent is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whom {
    /// A program and its arguments: exit status 0 means that it is wanted.
    Program(Vec<OsString>),
    /// A tool of an MCP server.
    Server {
        /// The server.
        place: ServerPlace,
        /// The tool.
        tool: String,
    },
}

/// Where an MCP server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerPlace {
    /// A program that speaks on its standard streams.
    Command(Vec<OsString>),
    /// An address that speaks streamable HTTP.
    Address {
        /// The address.
        url: String,
        /// What it is asked with.
        token: Option<Token>,
    },
}

/// A secret that a server is asked with; it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// This text is a secret.
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The secret itself.
    pub(in crate::keep) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

//! What the program around the gateway does for operators: only it knows the config file and the signals.

use koboshi_report::phrase::Lang;
use serde_json::Value;

/// The program around a gateway. Every call may block.
pub trait Host: Send + Sync {
    /// What `koboshi check` says about the config, as its JSON.
    fn check(&self, lang: Lang) -> Value;

    /// Asks for the config to be read again; the gateway learns the outcome by [`Gateway`](crate::Gateway)'s own methods.
    ///
    /// # Errors
    /// It cannot be asked for.
    fn reload(&self) -> Result<(), String>;

    /// Asks for the end: running streams finish first.
    ///
    /// # Errors
    /// It cannot be asked for.
    fn drain(&self) -> Result<(), String>;
}

/// How the last attempt to read the config again ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reloading {
    InUse,
    Unchanged,
    Refused(String),
}

impl Reloading {
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::InUse => "in_use",
            Self::Unchanged => "unchanged",
            Self::Refused(_) => "refused",
        }
    }
}

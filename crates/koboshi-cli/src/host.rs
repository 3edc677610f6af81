//! What this program does for operators of its gateway: it checks the config file, and sends itself the signals that a person would send.

use std::path::PathBuf;

use koboshi_config::config::Language;
use koboshi_gateway::Host;
use koboshi_report::phrase::Lang;
use rustix::process::{Signal, getpid, kill_process};
use serde_json::Value;

use crate::check;

/// The program around a gateway.
pub(crate) struct GatewayHost {
    /// The config file, if it was started with one.
    pub(crate) file: Option<PathBuf>,
}

impl Host for GatewayHost {
    fn check(&self, lang: Lang) -> Value {
        let language = if lang == Lang::Ja { Language::Ja } else { Language::En };
        check::checked(self.file.as_deref(), language)
    }

    fn reload(&self) -> Result<(), String> {
        signal(Signal::HUP)
    }

    fn drain(&self) -> Result<(), String> {
        signal(Signal::TERM)
    }
}

/// Signals are handled already, in one place, with their order and their messages.
fn signal(signal: Signal) -> Result<(), String> {
    kill_process(getpid(), signal).map_err(|error| error.to_string())
}

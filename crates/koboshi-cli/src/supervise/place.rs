//! Which supervisor a command means: the one of a store on this machine, or the one of a gateway that is asked over the network.

use std::path::PathBuf;

use clap::Args;
use koboshi_config::Config;
use koboshi_config::words::Text;
use koboshi_supervisor::keep::{Action, Order, ask};
use serde_json::Value;

use crate::args::{ConfigFileArgs, LangArgs};
use crate::state::Gateway;
use crate::{Failure, settings, state};

#[derive(Debug, Args)]
pub(crate) struct SupervisorArgs {
    /// The store whose supervisor is meant [default: from the config, else the file of this user] [env: KOBOSHI_STORE]
    #[arg(long, value_name = "PLACE", conflicts_with = "url")]
    store: Option<String>,
    /// Ask a running `koboshi up` instead, such as http://127.0.0.1:4141 [env: KOBOSHI_URL]. Its admin key is read from
    /// KOBOSHI_ADMIN_KEY or --admin-key-file
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// A file with the admin key of that gateway [default: the variable KOBOSHI_ADMIN_KEY]
    #[arg(long, value_name = "FILE")]
    admin_key_file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) config: ConfigFileArgs,
    #[command(flatten)]
    pub(super) lang: LangArgs,
}

/// A supervisor that can be asked.
pub(super) enum Supervisor {
    /// By the folder of its runs.
    Local(PathBuf),
    Remote(Gateway),
}

impl SupervisorArgs {
    /// Why the config cannot be read, where only the config says which supervisor is meant.
    pub(super) fn unreadable_config(&self) -> Option<Failure> {
        let is_named =
            matches!(state::asked_url(self.url.as_deref(), self.store.as_deref()), Ok(Some(_)) | Err(_))
                || state::asked_store(self.store.as_deref()).is_some();
        if is_named {
            None
        } else {
            settings::load_without_keys(self.config.file.as_deref(), &self.lang).err()
        }
    }

    /// The supervisor that is meant, and the config of the one who asks. `lenient`: a config that cannot be used does not matter.
    pub(super) fn open(&self, lenient: bool) -> Result<(Supervisor, Config), Failure> {
        let url = state::asked_url(self.url.as_deref(), self.store.as_deref())?;
        let config = settings::load_without_keys(self.config.file.as_deref(), &self.lang);
        let config = if lenient || url.is_some() { config.unwrap_or_default() } else { config? };
        let supervisor = match url {
            Some(url) => {
                let lang = self.lang.get(&config);
                Supervisor::Remote(Gateway::at(&url, self.admin_key_file.as_deref(), lang)?)
            }
            None => {
                let store = state::asked_store(self.store.as_deref());
                Supervisor::Local(state::runs_folder(store.as_deref(), &config)?)
            }
        };
        Ok((supervisor, config))
    }
}

impl Supervisor {
    /// Gives an order; the answer is the same for every caller.
    pub(super) fn order(&self, action: Action, agent: Option<&str>) -> Result<Value, Failure> {
        match self {
            Self::Local(runs) => {
                let order = Order::new(action, agent.map(str::to_owned));
                ask(runs, &order)?.ok_or_else(no_supervisor)
            }
            Self::Remote(gateway) => gateway.order_agents(action, agent),
        }
    }
}

fn no_supervisor() -> Failure {
    Failure::of(Text::new(
        "no supervisor is running for this store: start one with koboshi supervise or koboshi up",
        "このストアのスーパーバイザーは動いていません。koboshi supervise または koboshi up で起動してください",
    ))
}

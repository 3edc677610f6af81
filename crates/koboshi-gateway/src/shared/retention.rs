//! How long the journal is kept.

use std::time::Duration;

use koboshi_config::config::StoreConfig;
use koboshi_store::Retention;

/// How long the journal is kept, according to the config.
#[must_use]
pub fn retention(config: &StoreConfig) -> Retention {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    Retention {
        journal: DAY.saturating_mul(config.journal.keep_days),
        entries: config.journal.keep_entries,
        ..Retention::default()
    }
}

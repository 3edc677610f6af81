//! What Koboshi's keys are called in Redis. All begin with one prefix, so that several fleets can share a server.

pub(super) struct Names {
    pub(super) records: String,
    pub(super) set_aside: String,
    pub(super) channel: String,
    pub(super) journal: String,
    pub(super) cache: String,
    pub(super) cache_until: String,
    pub(super) cache_bytes: String,
    pub(super) fence: String,
    pub(super) mark: String,
    /// When the lease of every owned session ends.
    pub(super) owned: String,
    /// The number of every session's last change, and of the last one of all.
    pub(super) changed: String,
    pub(super) changes: String,
    /// The channel on which changed sessions and inboxes are named.
    pub(super) announced: String,
    /// The days that have usage.
    pub(super) usage_days: String,
    prefix: String,
}

impl Names {
    pub(super) fn new(prefix: &str) -> Self {
        let name = |what: &str| format!("{prefix}{what}");
        Self {
            records: name("records"),
            set_aside: name("set-aside"),
            channel: name("changes"),
            journal: name("journal"),
            cache: name("cache"),
            cache_until: name("cache-until"),
            cache_bytes: name("cache-bytes"),
            fence: name("fence"),
            mark: name("mark"),
            owned: name("sessions-owned"),
            changed: name("sessions-changed"),
            changes: name("session-changes"),
            announced: name("sessions-announced"),
            usage_days: name("usage-days"),
            prefix: prefix.to_owned(),
        }
    }

    pub(super) fn lease(&self, name: &str) -> String {
        format!("{}lease:{name}", self.prefix)
    }

    pub(super) fn note(&self, name: &str) -> String {
        format!("{}note:{name}", self.prefix)
    }

    pub(super) fn session(&self, id: &str) -> String {
        format!("{}session:{id}", self.prefix)
    }

    /// The channel on which something is said to one process.
    pub(super) fn told(&self, process: &str) -> String {
        format!("{}told:{process}", self.prefix)
    }

    pub(super) fn session_events(&self, id: &str) -> String {
        format!("{}session-events:{id}", self.prefix)
    }

    pub(super) fn usage(&self, day: &str) -> String {
        format!("{}usage:{day}", self.prefix)
    }

    pub(super) fn usage_cost(&self, day: &str) -> String {
        format!("{}usage-cost:{day}", self.prefix)
    }

    pub(super) fn usage_source(&self, source: &str) -> String {
        format!("{}usage-source:{source}", self.prefix)
    }

    pub(super) fn usage_calls(&self, minute: i64) -> String {
        format!("{}usage-calls:{minute}", self.prefix)
    }

    pub(super) fn inbox(&self, owner: &str) -> String {
        format!("{}inbox:{owner}", self.prefix)
    }
}

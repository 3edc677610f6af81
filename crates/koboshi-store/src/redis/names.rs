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
            prefix: prefix.to_owned(),
        }
    }

    pub(super) fn lease(&self, name: &str) -> String {
        format!("{}lease:{name}", self.prefix)
    }

    pub(super) fn session(&self, id: &str) -> String {
        format!("{}session:{id}", self.prefix)
    }
}

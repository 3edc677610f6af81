//! What can go wrong with a store, with the place and the next step.
//!
//! Every message names the file or the server (without its password), what was being done, and what a person can do
//! about it. Text of a driver is redacted before it comes here. A message promises nothing: whether something is tried
//! again is known to the caller, a command or a ledger.

/// Why a store could not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A newer Koboshi wrote it.
    #[error(
        "{place} was written by a newer Koboshi (schema {found}, this one knows up to {known}): \
         update this Koboshi or use another file; nothing was changed"
    )]
    Newer {
        /// Which file.
        place: String,
        /// The schema of the file.
        found: i64,
        /// The newest schema that this program knows.
        known: i64,
    },
    /// It is broken, or no store at all.
    #[error(
        "{place} cannot be read as a Koboshi store ({why}): nothing was changed. Is this the right path? \
         If it is the store and it is damaged, move it away: a new one is made at the next start"
    )]
    Damaged {
        /// Which file.
        place: String,
        /// What was seen.
        why: String,
    },
    /// Others kept it locked for too long.
    #[error("{place} is in use by others, gave up while trying to {doing}: try again")]
    Busy {
        /// Which file.
        place: String,
        /// What was being done.
        doing: &'static str,
    },
    /// It cannot be reached now.
    #[error("{place} is away, could not {doing} ({why}): see that it runs and can be reached from here")]
    Away {
        /// Which server.
        place: String,
        /// What was being done.
        doing: &'static str,
        /// What was seen.
        why: String,
    },
    /// The server refuses the login.
    #[error(
        "{place} refused the login ({why}): the password is wrong or missing, it belongs into the address of the \
         store, like redis://:password@host:6379 (`store.redis` in koboshi.yaml, or --store)"
    )]
    Refused {
        /// Which server.
        place: String,
        /// The server's message.
        why: String,
    },
    /// A setting that cannot work.
    #[error("the store `{place}` cannot be used: {why}")]
    Setting {
        /// What was given.
        place: String,
        /// Why not, and what to write instead.
        why: String,
    },
    /// Anything else.
    #[error("{place}: could not {doing}: {why}")]
    Failed {
        /// Which file or server.
        place: String,
        /// What was being done.
        doing: &'static str,
        /// What was seen.
        why: String,
    },
}

impl StoreError {
    /// Whether it stays so until a person does something about the file: no ledger can begin with it.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Newer { .. })
    }

    /// Whether the same call may succeed later without any action by a person.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::Away { .. })
    }
}

//! Identifies a key, and its entry.
//!
//! Paths of the table have a `*` where the user's file has a name, and a name may contain dots. So a key is passed around as the
//! row of the table and the name; the path for people is built from them, safe to be shown.

use crate::schema::Key;

/// A key of the file.
#[derive(Debug, Clone)]
pub(crate) struct At {
    /// The row of the table.
    pub(crate) key: &'static Key,
    /// The name of its entry; empty outside of entries.
    pub(crate) entry: String,
    /// The path for people.
    pub(crate) shown: String,
}

/// Identifies a key: the table's path, and the name of the entry.
pub(crate) type Id = (&'static str, String);

impl At {
    /// A key of a section; without one, of the file.
    pub(crate) fn within(section: Option<&Self>, key: &'static Key) -> Self {
        let entry = section.map(|section| section.entry.clone()).unwrap_or_default();
        Self { key, entry, shown: Self::join(section, key.name()) }
    }

    /// An entry of a section, by its row, its name and the name as it can be shown.
    pub(crate) fn entry(section: Option<&Self>, row: &'static Key, name: &str, shown: &str) -> Self {
        Self { key: row, entry: name.to_owned(), shown: Self::join(section, shown) }
    }

    /// The path of a name in a section, for people.
    pub(crate) fn join(section: Option<&Self>, name: &str) -> String {
        section.map_or_else(|| name.to_owned(), |section| format!("{}.{name}", section.shown))
    }

    /// Its identity.
    pub(crate) fn id(&self) -> Id {
        (self.key.path, self.entry.clone())
    }
}

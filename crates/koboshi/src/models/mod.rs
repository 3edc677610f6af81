//! What is known of models, as data: limits, abilities, and which parameters they take.
//!
//! One file is built in (`models.yaml`), and a user's own file goes before it. Each fact comes from the first entry that is about the
//! model and states it; what no entry states is unknown. This module reads text and compares names: which file it is and what a config
//! adds is up to the caller.
//!
//! ```
//! use koboshi::models::{ModelSource, Models};
//!
//! let own = "models: [{match: house-model*, context_window: 32000}]";
//! let models = Models::with_user(&[ModelSource { name: "my-models.yaml", text: own }])?;
//! assert_eq!(models.facts("vllm", "house-model-2").context_window, Some(32_000));
//! assert_eq!(models.facts("anthropic", "claude-haiku-4-5").max_output_tokens, Some(64_000));
//! # Ok::<(), koboshi::models::ModelError>(())
//! ```

mod efforts;
mod facts;
mod file;
mod name;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use efforts::{Effort, Efforts};
pub use facts::{Facts, Sampling, Thinking};
pub use name::{fits, is_embedding};

use file::Names;
use name::Name;

use crate::spend::Price;

const BUILT_IN: ModelSource<'static> = ModelSource { name: "models.yaml", text: include_str!("models.yaml") };

/// A models file that cannot be used, and where it is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct ModelError {
    /// Name of the file, as given by the caller.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// Column, from 1.
    pub column: u64,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// A models file by name and text. Reading it from disk is the caller's job.
#[derive(Debug, Clone, Copy)]
pub struct ModelSource<'a> {
    /// Name for error messages.
    pub name: &'a str,
    /// The YAML text.
    pub text: &'a str,
}

/// Facts of some models, and where they are stated.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The file, as the caller named it; none for the one that is built in.
    pub file: Option<Arc<str>>,
    /// The line in which the entry begins.
    pub line: u64,
    /// What it states.
    pub facts: Facts,
    names: Names,
}

/// What is known of models.
#[derive(Debug, Clone)]
pub struct Models {
    entries: Vec<Entry>,
    prices: Vec<(Names, Price)>,
    vendors: Vec<(String, Vec<String>)>,
}

impl Models {
    /// The built-in facts.
    ///
    /// # Errors
    /// None: a test reads the file.
    pub fn builtin() -> Result<Self, ModelError> {
        Self::with_user(&[])
    }

    /// A user's own facts before the built-in ones. Later files go before earlier ones.
    ///
    /// # Errors
    /// The first thing that is wrong with a file, and where.
    pub fn with_user(user: &[ModelSource<'_>]) -> Result<Self, ModelError> {
        let mut models = Self { entries: Vec::new(), prices: Vec::new(), vendors: Vec::new() };
        for source in user.iter().rev() {
            models.add(file::read(*source, Some(&source.name.into()))?);
        }
        models.add(file::read(BUILT_IN, None)?);
        Ok(models)
    }

    fn add(&mut self, file: file::File) {
        self.entries.extend(file.entries);
        self.prices.extend(file.prices);
        self.vendors.extend(file.vendors);
    }

    /// The entries that are about a model of this provider, the first to decide first.
    pub fn entries<'m, 'n>(
        &'m self,
        provider: &'n str,
        model: &'n str,
    ) -> impl Iterator<Item = &'m Entry> + use<'m, 'n> {
        let name = Name::new(provider, model);
        self.entries.iter().filter(move |entry| entry.names.hold(&name))
    }

    /// What is known of a model of this provider.
    #[must_use]
    pub fn facts(&self, provider: &str, model: &str) -> Facts {
        self.entries(provider, model).fold(Facts::default(), |known, entry| known.or(entry.facts))
    }

    /// The list price of a model of this provider, in US dollars; none where it is unknown.
    #[must_use]
    pub fn price(&self, provider: &str, model: &str) -> Option<Price> {
        let name = Name::new(provider, model);
        self.prices.iter().find(|(names, _)| names.hold(&name)).map(|(_, price)| *price)
    }

    /// Whether models with such a name, compared as a whole, belong to this well-known provider.
    #[must_use]
    pub fn belongs_to(&self, provider: &str, model: &str) -> bool {
        let mut patterns =
            self.vendors.iter().filter(|(vendor, _)| vendor == provider).flat_map(|(_, patterns)| patterns);
        patterns.any(|pattern| fits(pattern, model))
    }

    /// Every well-known provider with the patterns of its models' names.
    pub fn vendors(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.vendors.iter().map(|(vendor, patterns)| (vendor.as_str(), patterns.as_slice()))
    }
}

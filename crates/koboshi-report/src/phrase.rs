//! Phrases in Japanese and English for every fault, tool error and label.
//!
//! The words are Fluent files in `phrases/`, embedded at build time: translators touch no Rust, and the
//! binary needs no files beside it. Every kind has a message (what failed, on which leg) and a suggestion
//! (one thing to do); where a [`Sub`] changes the advice it has an entry of its own that wins.
//!
//! A lookup never fails in front of a person: the sub falls back to its kind, the language to English, and
//! at last the id itself is shown. Tests make sure that none of this happens with the files as they are. No
//! number or time is put into a phrase here: callers hand in ready text (instants are written by [`crate::when`]).

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::time::Duration;

use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource};
use koboshi::fault::{Fault, Kind, Origin, Sub};
use koboshi::wait::print_duration;
use unic_langid::LanguageIdentifier;

use crate::fault_words::{is_bare, is_of_model};

/// A language that Koboshi speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lang {
    /// English.
    En,
    /// Japanese.
    Ja,
}

impl Lang {
    /// Every language.
    pub const ALL: &[Self] = &[Self::En, Self::Ja];

    /// The language of a tag or locale name: `ja`, `ja_JP.UTF-8`, `en-US`.
    #[must_use]
    pub fn from_tag(tag: &str) -> Option<Self> {
        let primary = tag.trim().split(['-', '_', '.', '@']).next()?;
        Self::ALL.iter().copied().find(|lang| primary.eq_ignore_ascii_case(lang.name()))
    }

    /// What stands between the parts of a list.
    #[must_use]
    pub const fn comma(self) -> &'static str {
        match self {
            Self::En => ", ",
            Self::Ja => "、",
        }
    }

    /// The tag of the language.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Ja => "ja",
        }
    }

    fn source(self) -> &'static str {
        match self {
            Self::En => include_str!("../phrases/en.ftl"),
            Self::Ja => include_str!("../phrases/ja.ftl"),
        }
    }
}

/// Why a phrase file could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PhraseError {
    /// The language tag is not one.
    #[error("the language tag {lang:?} cannot be read: {reason}")]
    Tag {
        /// The tag.
        lang: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is not Fluent, or holds an id twice.
    #[error("the phrases in {lang:?} cannot be used: {reason}")]
    File {
        /// The language of the file.
        lang: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

/// The phrases of all languages. Build once and share: lookups take `&self` and are thread-safe.
pub struct Phrases {
    en: FluentBundle<FluentResource>,
    ja: FluentBundle<FluentResource>,
}

// By hand: bundles cannot be printed.
impl std::fmt::Debug for Phrases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Phrases").finish_non_exhaustive()
    }
}

impl Phrases {
    /// Reads the embedded phrase files.
    ///
    /// # Errors
    /// If a file cannot be parsed or holds an id twice; a test rules it out for the files of a build.
    pub fn new() -> Result<Self, PhraseError> {
        Ok(Self { en: bundle(Lang::En)?, ja: bundle(Lang::Ja)? })
    }

    /// What failed, in one or two sentences.
    #[must_use]
    pub fn message(&self, lang: Lang, kind: Kind, sub: Option<Sub>) -> String {
        self.of_kind(lang, kind, sub, "message")
    }

    /// What to do about it.
    #[must_use]
    pub fn suggestion(&self, lang: Lang, kind: Kind, sub: Option<Sub>) -> String {
        self.of_kind(lang, kind, sub, "suggestion")
    }

    /// What a tool reported, by the category of its error.
    #[must_use]
    pub fn tool_message(&self, lang: Lang, category: &str) -> Option<String> {
        self.text(lang, &format!("tool-{category}.message"), &[])
    }

    /// What to do about a tool error of this category.
    #[must_use]
    pub fn tool_suggestion(&self, lang: Lang, category: &str) -> Option<String> {
        self.text(lang, &format!("tool-{category}.suggestion"), &[])
    }

    /// Who or what caused a fault: by kind and sub where that says more than the origin.
    #[must_use]
    pub fn cause(&self, lang: Lang, fault: &Fault) -> String {
        let kind = fault.kind.name();
        if is_bare(fault) {
            return self.text(lang, "cause-bare", &[]).unwrap_or_default();
        }
        if is_of_model(fault) {
            return self.text(lang, "cause-quota-exceeded-model", &[]).unwrap_or_default();
        }
        let finer = fault.sub.and_then(|sub| self.text(lang, &format!("cause-{kind}-{}", sub.name()), &[]));
        let own = || self.text(lang, &format!("cause-{kind}-own"), &[]);
        finer
            .or_else(|| (fault.origin == Origin::Koboshi).then(own).flatten())
            .or_else(|| self.text(lang, &format!("cause-{kind}"), &[]))
            .or_else(|| self.text(lang, &format!("origin-{}", fault.origin.name()), &[]))
            .unwrap_or_else(|| fault.origin.name().to_owned())
    }

    /// A length of time as a countdown: `1h 59m 33s`, `1 時間 59 分 33 秒`. Milliseconds matter to no reader, so they are shown only
    /// below one second; a part of a second counts as a whole one, so that no wait is shown too short.
    #[must_use]
    pub fn countdown(&self, lang: Lang, length: Duration) -> String {
        let seconds = length.as_secs().saturating_add(u64::from(length.subsec_nanos() > 0));
        let whole = if length < Duration::from_secs(1) { length } else { Duration::from_secs(seconds) };
        let short = print_duration(whole);
        match lang {
            Lang::En => short,
            Lang::Ja => {
                let units = [("ms", " ミリ秒"), ("d", " 日"), ("h", " 時間"), ("m", " 分"), ("s", " 秒")];
                let part = |part: &str| {
                    let unit = units.iter().find(|(short, _)| part.ends_with(short));
                    unit.map_or(part.to_owned(), |(short, long)| part.replace(short, long))
                };
                short.split(' ').map(part).collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// The phrase with this id, `None` if no language has it. `id.attribute` names an attribute, and `_`
    /// in an id is read as `-`, so that stable names such as `rate_limit` can be put into ids as they are.
    #[must_use]
    pub fn text(&self, lang: Lang, id: &str, args: &[(&str, &str)]) -> Option<String> {
        let id = dashed(id);
        self.own(lang, &id, args).or_else(|| self.own(Lang::En, &id, args))
    }

    fn of_kind(&self, lang: Lang, kind: Kind, sub: Option<Sub>, part: &str) -> String {
        let plain = dashed(&format!("kind-{}.{part}", kind.name())).into_owned();
        let finer =
            sub.map(|sub| dashed(&format!("kind-{}-{}.{part}", kind.name(), sub.name())).into_owned());
        [lang, Lang::En]
            .into_iter()
            .find_map(|lang| {
                let finer = finer.as_deref().and_then(|id| self.own(lang, id, &[]));
                finer.or_else(|| self.own(lang, &plain, &[]))
            })
            .unwrap_or(plain)
    }

    /// The phrase in this language only.
    fn own(&self, lang: Lang, id: &str, args: &[(&str, &str)]) -> Option<String> {
        let bundle = match lang {
            Lang::En => &self.en,
            Lang::Ja => &self.ja,
        };
        let (id, attribute) = id.split_once('.').map_or((id, None), |(id, name)| (id, Some(name)));
        let message = bundle.get_message(id)?;
        let pattern = match attribute {
            Some(name) => message.get_attribute(name)?.value(),
            None => message.value()?,
        };
        let args: FluentArgs<'_> = args.iter().map(|(name, value)| (*name, *value)).collect();
        // A variable that was not given stays visible as `{$name}`: better than no sentence at all.
        let mut errors = Vec::new();
        Some(bundle.format_pattern(pattern, Some(&args), &mut errors).into_owned())
    }
}

fn dashed(id: &str) -> Cow<'_, str> {
    if id.contains('_') { Cow::Owned(id.replace('_', "-")) } else { Cow::Borrowed(id) }
}

fn bundle(lang: Lang) -> Result<FluentBundle<FluentResource>, PhraseError> {
    let name = lang.name();
    let tag: LanguageIdentifier =
        name.parse().map_err(|error| PhraseError::Tag { lang: name, reason: format!("{error}") })?;
    let file = |reason: String| PhraseError::File { lang: name, reason };
    let resource = FluentResource::try_new(lang.source().to_owned())
        .map_err(|(_, errors)| file(format!("{errors:?}")))?;
    let mut bundle = FluentBundle::new_concurrent(vec![tag]);
    // The marks would end up as invisible characters in logs, JSON and terminals.
    bundle.set_use_isolating(false);
    bundle.add_resource(resource).map_err(|errors| file(format!("{errors:?}")))?;
    Ok(bundle)
}

//! Times, reasons and commands in the reader's language.

use jiff::{Timestamp, Zoned};
use koboshi::key::{ScopeKey, ScopeLevel};
use koboshi_config::Config;
use koboshi_config::config::Language;
use koboshi_report::phrase::{Lang, Phrases};
use koboshi_report::when;
use std::path::PathBuf;
use std::time::Duration;

use super::args::PlaceArgs;
use crate::say::store_place;
use crate::supervise::AgentWords;
use crate::{Failure, clock, shell};

/// Longer lengths are refused.
const MAX_LENGTH: Duration = Duration::from_secs(366 * 24 * 60 * 60);

pub(super) struct Say {
    phrases: Phrases,
    lang: Lang,
    pub(super) now: Zoned,
    /// The flags that another command for the same source needs.
    flags: String,
}

impl Say {
    pub(super) fn new(args: &PlaceArgs, config: &Config) -> Result<Self, Failure> {
        let phrases = Phrases::new().map_err(|error| Failure::new(error.to_string()))?;
        let now = args.now.clone().unwrap_or_else(clock::now);
        Ok(Self { phrases, lang: args.lang.get(config), now, flags: flags_of(args) })
    }

    /// A reader of tests.
    #[cfg(test)]
    pub(super) fn at(lang: Lang, now: Zoned) -> Self {
        Self { phrases: Phrases::new().unwrap(), lang, now, flags: String::new() }
    }

    /// The same language, as the config's type.
    pub(super) fn language(&self) -> Language {
        if self.lang == Lang::Ja { Language::Ja } else { Language::En }
    }

    /// A length of time.
    pub(super) fn countdown(&self, length: Duration) -> String {
        self.phrases.countdown(self.lang, length)
    }

    pub(super) fn text(&self, id: &str, args: &[(&str, &str)]) -> String {
        self.phrases.text(self.lang, id, args).unwrap_or_else(|| id.to_owned())
    }

    /// The command that resumes a key at the same source, as it must be typed.
    pub(super) fn resume_command(&self, key: &ScopeKey) -> String {
        format!("koboshi resume {}{}", shell::word(&key.to_string()), self.flags)
    }

    /// That nothing has this key.
    pub(super) fn unknown_key(&self, key: &ScopeKey) -> String {
        let id = if key.level() == ScopeLevel::Agent { "key-unknown-agent" } else { "key-unknown" };
        self.text(id, &[("key", &key.to_string())])
    }

    /// An instant as typed.
    pub(super) fn instant(&self, text: &str) -> Result<Timestamp, Failure> {
        let at = clock::parse(text);
        Ok(at.map_err(|_| Failure::new(self.text("time-no-instant", &[("text", text)])))?.timestamp())
    }

    /// A length of time as typed.
    pub(super) fn length(&self, text: &str) -> Result<Duration, Failure> {
        let is_zero = koboshi::wait::parse_duration(text).is_some_and(|length| length.is_zero());
        let id = if is_zero { "time-zero-length" } else { "time-no-length" };
        let length = parse_length(text).ok_or_else(|| Failure::new(self.text(id, &[("text", text)])))?;
        // The grammar of waits clamps longer ones to this; a user who types one means it.
        if length >= MAX_LENGTH {
            return Err(Failure::new(self.text("time-too-long", &[("text", text)])));
        }
        Ok(length)
    }

    /// The place of a store.
    pub(super) fn store_place(&self, place: &str) -> String {
        store_place(place, |id, args| self.text(id, args))
    }

    /// Names, one after the other.
    pub(super) fn list(&self, names: &[String]) -> String {
        names.join(self.lang.comma())
    }

    /// Joins sentences.
    pub(super) fn sentences(&self, sentences: &[String]) -> String {
        sentences.join(if self.lang == Lang::Ja { "" } else { " " })
    }

    /// An instant in the reader's zone, with the day where it is not today.
    pub(super) fn time(&self, at: Timestamp) -> String {
        let at = at.to_zoned(self.now.time_zone().clone());
        if self.lang == Lang::Ja {
            return when::exact_time(self.lang, &at);
        }
        let pattern = if at.date() == self.now.date() { "%H:%M:%S %Z" } else { "%Y-%m-%d %H:%M:%S %Z" };
        at.strftime(pattern).to_string()
    }

    /// The same without the date of today, for narrow screens.
    pub(super) fn short_time(&self, at: Timestamp) -> String {
        let zoned = at.to_zoned(self.now.time_zone().clone());
        if self.lang == Lang::Ja && zoned.date() == self.now.date() {
            return zoned.strftime("%H:%M:%S（%Z）").to_string();
        }
        self.time(at)
    }

    /// The end, and how much time is left.
    pub(super) fn until(&self, until: Timestamp) -> String {
        self.left("wait-until", until)
    }

    /// The same in another phrase.
    pub(super) fn left(&self, id: &str, until: Timestamp) -> String {
        let left = Duration::try_from(until.duration_since(self.now.timestamp())).unwrap_or(Duration::ZERO);
        if left.is_zero() {
            return self.time(until);
        }
        let left = self.phrases.countdown(self.lang, left);
        self.text(id, &[("time", &self.time(until)), ("left", &left)])
    }

    /// How long ago it was.
    pub(super) fn ago(&self, at: Timestamp) -> String {
        let ago = Duration::try_from(self.now.timestamp().duration_since(at)).unwrap_or(Duration::ZERO);
        self.phrases.countdown(self.lang, Duration::from_secs(ago.as_secs()))
    }
}

impl AgentWords for Say {
    fn phrase(&self, id: &str, args: &[(&str, &str)]) -> String {
        self.text(id, args)
    }

    fn time(&self, at: Timestamp) -> String {
        self.time(at)
    }
}

/// Text from a store, safe for a terminal: its author must not be able to move the cursor, change colours or reverse the
/// direction of the line.
pub(crate) fn plain(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if c.is_control() || turns(c) { ' ' } else { c }).collect()
}

/// `2h`, `90m`, `1h30m`: a length of time as typed.
pub(super) fn parse_length(text: &str) -> Option<Duration> {
    koboshi::wait::parse_duration(text).filter(|length| !length.is_zero())
}

/// The flags that lead another command to the same place. What comes from the environment need not be said again.
fn flags_of(args: &PlaceArgs) -> String {
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let given = [
        ("--store", args.store.clone()),
        ("--url", args.url.clone()),
        ("--admin-key-file", path(&args.admin_key_file)),
        ("--config", path(&args.config.file)),
    ];
    shell::flags(given)
}

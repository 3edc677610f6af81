//! What a model does, read from its name, so that it survives every gateway that forwards a name and nothing else.
//!
//! A name is words joined by `-`. Words that mean nothing here are labels: `p7-cut3` is `cut3`, counted under its own name.
//!
//! | Word | What it does |
//! |---|---|
//! | `wait60` | 60 ms before the head of the answer |
//! | `chunks200` | this many pieces of text |
//! | `gap5` | 5 ms between two pieces |
//! | `stamp` | each piece is `t` and the time it was written, in place of words |
//! | `fail503` | this status |
//! | `limit7` | 429 with `Retry-After: 7` |
//! | `hang` | the request is read and never answered |
//! | `reset` | the connection is reset before any byte of the answer |
//! | `cut3` | a stream's connection ends after three pieces, without the end of the body; half of a whole answer |

/// How a call falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fall {
    /// An answer with this status, and a wait in seconds if one is stated.
    Status(u16, Option<u64>),
    /// Silence.
    Hang,
    /// A reset before the answer.
    Reset,
    /// The end of the connection after this many pieces.
    Cut(usize),
}

impl Fall {
    /// The `way` of an outage: `503`, `429`, `hang`, `reset` or `cut`.
    pub(crate) fn named(way: &str) -> Option<Self> {
        match way {
            "hang" => Some(Self::Hang),
            "reset" => Some(Self::Reset),
            "cut" => Some(Self::Cut(0)),
            _ => way
                .parse()
                .ok()
                .filter(|status| (400..600).contains(status))
                .map(|status| Self::Status(status, None)),
        }
    }
}

/// What a model does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Milliseconds before the head.
    pub(crate) wait: u64,
    /// Pieces of text.
    pub(crate) chunks: usize,
    /// Milliseconds between two pieces.
    pub(crate) gap: u64,
    /// Pieces are times.
    pub(crate) stamp: bool,
    /// Every call falls so.
    pub(crate) fall: Option<Fall>,
}

impl Plan {
    /// Reads a name.
    pub(crate) fn of(name: &str) -> Self {
        let mut plan =
            Self { wait: 0, chunks: koboshi_bench::answer::USUAL, gap: 0, stamp: false, fall: None };
        for word in name.split('-') {
            plan.take(word);
        }
        plan
    }

    fn take(&mut self, word: &str) {
        let digits = word.find(|letter: char| letter.is_ascii_digit()).unwrap_or(word.len());
        let (verb, number) = word.split_at(digits);
        match (verb, number.parse::<u64>().ok()) {
            ("wait", Some(millis)) => self.wait = millis,
            ("chunks", Some(count)) => self.chunks = count.try_into().unwrap_or(usize::MAX),
            ("gap", Some(millis)) => self.gap = millis,
            ("stamp", None) => self.stamp = true,
            ("fail", Some(status)) => self.fall = Some(Fall::Status(status.try_into().unwrap_or(500), None)),
            ("limit", Some(seconds)) => self.fall = Some(Fall::Status(429, Some(seconds))),
            ("hang", None) => self.fall = Some(Fall::Hang),
            ("reset", None) => self.fall = Some(Fall::Reset),
            ("cut", Some(after)) => self.fall = Some(Fall::Cut(after.try_into().unwrap_or(usize::MAX))),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_join_and_labels_mean_nothing() {
        let plan = Plan::of("p7-wait60-chunks200-gap5-stamp");
        assert_eq!(plan, Plan { wait: 60, chunks: 200, gap: 5, stamp: true, fall: None });
        assert_eq!(Plan::of("x-cut3-chunks8").fall, Some(Fall::Cut(3)));
        assert_eq!(Plan::of("limit7").fall, Some(Fall::Status(429, Some(7))));
        assert_eq!(Plan::of("primary").fall, None);
        assert_eq!(Fall::named("cut"), Some(Fall::Cut(0)));
        assert_eq!(Fall::named("200"), None);
    }
}

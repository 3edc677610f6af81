//! The end of a protected call in a sentence for a person: what failed, after how many attempts, and what to do.

use koboshi::call::End;
use koboshi::fault::Kind;

use crate::phrase::{Lang, Phrases};

/// The sentence for a call that did not succeed.
///
/// ```
/// use koboshi::call::{End, FailedAttempt};
/// use koboshi::fault::{Fault, Kind};
/// use koboshi_report::phrase::{Lang, Phrases};
/// use koboshi_report::spent::spent;
///
/// let phrases = Phrases::new()?;
/// let failed = FailedAttempt { target: 0, fault: Box::new(Fault::of(Kind::Timeout, "example")) };
/// let sentence = spent(&phrases, Lang::En, &End::Failed(vec![failed; 3]));
/// assert!(sentence.starts_with("The AI provider did not answer within the time limit. (timeout, 3 attempts)"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn spent(phrases: &Phrases, lang: Lang, end: &End) -> String {
    let (kind, sub, attempts) = match end {
        End::Failed(failed) => {
            let last = failed.last();
            (
                last.map_or(Kind::Internal, |last| last.fault.kind),
                last.and_then(|last| last.fault.sub),
                failed.len(),
            )
        }
        _ => (Kind::CoolingDown, None, 0),
    };
    let count = attempts.to_string();
    let message = phrases.message(lang, kind, sub);
    let suggestion = phrases.suggestion(lang, kind, sub);
    let id = match attempts {
        0 if lang == Lang::Ja => return message + &suggestion,
        0 => return format!("{message} {suggestion}"),
        1 => "spent-one",
        _ => "spent-many",
    };
    let args = [
        ("message", message.as_str()),
        ("kind", kind.name()),
        ("count", &count),
        ("suggestion", &suggestion),
    ];
    phrases.text(lang, id, &args).unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use koboshi::call::FailedAttempt;
    use koboshi::fault::Fault;

    use super::*;

    fn failed(attempts: usize) -> End {
        End::Failed(vec![
            FailedAttempt {
                target: 0,
                fault: Box::new(Fault::of(Kind::ConnectionRefused, "test"))
            };
            attempts
        ])
    }

    #[test]
    fn it_names_the_kind_the_attempts_and_what_to_do() {
        let phrases = Phrases::new().unwrap();
        for (lang, one, many) in [(Lang::En, "1 attempt)", "4 attempts)"), (Lang::Ja, "1 回試行", "4 回試行")]
        {
            let said = spent(&phrases, lang, &failed(1));
            assert!(said.contains("connection_refused") && said.contains(one), "{said}");
            assert!(said.contains(&phrases.suggestion(lang, Kind::ConnectionRefused, None)), "{said}");
            assert!(spent(&phrases, lang, &failed(4)).contains(many));
            let none = spent(&phrases, lang, &End::Nothing);
            assert!(!none.contains("attempt") && !none.contains("試行"), "{none}");
        }
    }
}

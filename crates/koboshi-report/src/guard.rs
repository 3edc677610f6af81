//! The texts of the loop guard: the block for the person, the note for the model.
//!
//! The core decides what repeats and which steps help; this module writes the text. The block states what repeats and how often,
//! what that means, one example of a result (redacted by the core), numbered steps and a question. Notes begin
//! with the guard's mark, so that the guard recognises its own notes.

use koboshi::classify::{OwnCategory, Texts};
use koboshi::guard::{Finding, Forbids, NOTE_MARK, Reach, Rule, Step, Suggestion};

use crate::phrase::{Lang, Phrases};

/// The block for the person. `own` are the texts of a category that a rule file added.
#[must_use]
pub fn suggestion_block(
    phrases: &Phrases,
    lang: Lang,
    suggestion: &Suggestion,
    own: Option<&OwnCategory>,
) -> String {
    let category = suggestion.category.as_deref().unwrap_or("other");
    let mut block = what(phrases, lang, suggestion);
    if suggestion.category.is_some() {
        let meaning =
            own.map(|own| in_lang(&own.message, lang)).or_else(|| phrases.tool_message(lang, category));
        block.push('\n');
        block.push_str(&meaning.unwrap_or_default());
    }
    if !suggestion.example.is_empty() {
        block.push_str("\n\n");
        block.push_str(&text(phrases, lang, "guard-label-example", &[]));
        for line in suggestion.example.lines() {
            block.push_str("\n    ");
            block.push_str(line);
        }
    }
    block.push_str("\n\n");
    block.push_str(&text(phrases, lang, "guard-label-steps", &[]));
    for (number, step) in (1..).zip(&suggestion.steps) {
        block.push_str(&format!("\n{number}. {}", step_words(phrases, lang, *step, category, own)));
    }
    block.push_str("\n\n");
    block.push_str(&text(phrases, lang, &format!("guard-question-{}", suggestion.question.name()), &[]));
    block
}

/// One step in words. `category` is what the failures report, `own` the texts of one that a rule file added.
#[must_use]
pub fn step_words(
    phrases: &Phrases,
    lang: Lang,
    step: Step,
    category: &str,
    own: Option<&OwnCategory>,
) -> String {
    match step {
        Step::Category => own
            .map(|own| in_lang(&own.suggestion, lang))
            .or_else(|| phrases.tool_suggestion(lang, category))
            .or_else(|| phrases.tool_suggestion(lang, "other"))
            .unwrap_or_default(),
        step => text(phrases, lang, &format!("guard-step-{}", step.name()), &[]),
    }
}

/// What repeats and how often, in one sentence.
#[must_use]
pub fn what(phrases: &Phrases, lang: Lang, suggestion: &Suggestion) -> String {
    let count = suggestion.count.to_string();
    let limit = suggestion.limit.to_string();
    let calls = suggestion.reach.calls.to_string();
    let responses = suggestion.reach.responses.to_string();
    let tools = names(lang, suggestion.tools.iter().map(AsRef::as_ref));
    let args: [(&str, &str); 5] = [
        ("count", &count),
        ("limit", &limit),
        ("calls", &calls),
        ("responses", &responses),
        ("tools", &tools),
    ];
    text(phrases, lang, &format!("guard-what-{}", suggestion.rule.name()), &args)
}

/// The note to the model about a finding: what repeats, or at a stop what is forbidden from now on. Where no stop
/// follows, none is announced. `ways_out` are the tools that stay allowed when all others are forbidden.
#[must_use]
pub fn note(phrases: &Phrases, lang: Lang, finding: &Finding, reach: Reach, ways_out: &[&str]) -> String {
    let forbids = finding.forbids().filter(|_| finding.stops);
    // The stop is announced right before it, not earlier.
    let is_next = finding.stops && finding.count.saturating_add(1) >= finding.limit;
    let id = match (forbids, finding.rule, finding.stops) {
        (Some(Forbids::Calls), ..) => "guard-note-forbids-calls",
        (Some(Forbids::Tools), ..) => "guard-note-forbids-tools",
        (Some(Forbids::Turn), ..) if ways_out.is_empty() => "guard-note-stop",
        (Some(Forbids::Turn), ..) => "guard-note-stop-but",
        (_, Rule::Depth, true) => "guard-note-depth",
        (_, Rule::Depth, false) => "guard-note-depth-only",
        (_, Rule::Width, true) => "guard-note-width",
        (_, Rule::Width, false) => "guard-note-width-only",
        (_, _, true) if finding.fingerprint.text.is_empty() => "guard-note-repeats",
        (_, _, false) if finding.fingerprint.text.is_empty() => "guard-note-repeats-only",
        _ if is_next => "guard-note-errors",
        _ => "guard-note-errors-only",
    };
    let count = finding.count.to_string();
    let limit = finding.limit.to_string();
    let calls = reach.calls.to_string();
    let tools = names(lang, finding.tools.iter().map(AsRef::as_ref));
    let pattern = finding.fingerprint.text.replace('\n', " ");
    let others = names(lang, ways_out.iter().copied());
    let args: [(&str, &str); 6] = [
        ("count", &count),
        ("limit", &limit),
        ("calls", &calls),
        ("tools", &tools),
        ("pattern", &pattern),
        ("others", &others),
    ];
    format!("{NOTE_MARK} {}", text(phrases, lang, id, &args))
}

/// The result that the model reads for a call that was refused and not run. Without a reason of its own the call was refused because
/// another one of the same response was.
#[must_use]
pub fn refusal(
    phrases: &Phrases,
    lang: Lang,
    tool: &str,
    forbids: Option<Forbids>,
    ways_out: &[&str],
) -> String {
    let id = match forbids {
        Some(Forbids::Calls) => "guard-refused-call",
        Some(Forbids::Tools) => "guard-refused-tool",
        Some(Forbids::Turn) if ways_out.is_empty() => "guard-refused-turn",
        Some(Forbids::Turn) => "guard-refused-turn-but",
        None => "guard-refused-beside",
    };
    let others = names(lang, ways_out.iter().copied());
    format!("{NOTE_MARK} {}", text(phrases, lang, id, &[("tools", tool), ("others", &others)]))
}

/// How many tools are named; the rest is counted.
const MAX_NAMES: usize = 5;

fn names<'a>(lang: Lang, tools: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = tools.len().saturating_sub(MAX_NAMES);
    let mut named: Vec<String> = tools.take(MAX_NAMES).map(str::to_owned).collect();
    if more > 0 {
        named.push(format!("+{more}"));
    }
    named.join(if lang == Lang::Ja { "、" } else { ", " })
}

fn in_lang(texts: &Texts, lang: Lang) -> String {
    match lang {
        Lang::En => texts.en.clone(),
        Lang::Ja => texts.ja.clone(),
    }
}

fn text(phrases: &Phrases, lang: Lang, id: &str, args: &[(&str, &str)]) -> String {
    phrases.text(lang, id, args).unwrap_or_else(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use jiff::tz::{TimeZone, TimeZoneDatabase};
    use koboshi::classify::{Classifier, Rules};
    use koboshi::guard::{Call, Guard, GuardPolicy, Judgement, Question, RulePolicy, Verdict};

    fn judge(calls: &[Call<'_>]) -> Judgement {
        judge_by(GuardPolicy::source(), calls)
    }

    fn judge_by(policy: GuardPolicy, calls: &[Call<'_>]) -> Judgement {
        let classifier = Classifier::new(Rules::builtin().unwrap(), TimeZoneDatabase::none());
        let now = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
        Guard::new(policy).unwrap().judge(calls, &classifier, &now)
    }

    fn fonts(count: usize) -> Judgement {
        let output =
            "findfont: Font family 'IPAexGothic' not found.\nkey sk-abcdefghijklmnopqrstuvwx1234567890";
        let call = Call { tool: "run_code", args: "{}", output, is_error: Some(true), ..Call::default() };
        judge(&vec![call; count])
    }

    #[test]
    fn everything_the_core_can_say_has_words() {
        let phrases = Phrases::new().unwrap();
        for &lang in Lang::ALL {
            let rules = Rule::ALL.iter().map(|rule| format!("guard-what-{}", rule.name()));
            let steps = Step::ALL.iter().filter(|step| **step != Step::Category);
            let steps = steps.map(|step| format!("guard-step-{}", step.name()));
            let questions =
                Question::ALL.iter().map(|question| format!("guard-question-{}", question.name()));
            for id in rules.chain(steps).chain(questions) {
                assert!(phrases.text(lang, &id, &[]).is_some(), "{id}");
            }
        }
    }

    #[test]
    fn the_block_says_what_repeats_and_what_to_do() {
        let phrases = Phrases::new().unwrap();
        let suggestion = fonts(3).suggestion().unwrap();
        let en = suggestion_block(&phrases, Lang::En, &suggestion, None);
        assert_eq!(
            en,
            "The same error occurred 3 times in a row (run_code).\n\
             A font that the tool needs is not installed.\n\n\
             An example of what came back:\n    \
             findfont: Font family 'IPAexGothic' not found.\n    \
             key [redacted:key]\n\n\
             What you can do:\n\
             1. Install the font, or tell the agent to use an installed one.\n\
             2. Have the agent list what is installed, and let it use one of those.\n\
             3. Ask for another way to reach the goal.\n\n\
             Do you want to fix the cause first, or should the agent try another way?"
        );
        let ja = suggestion_block(&phrases, Lang::Ja, &suggestion, None);
        assert!(
            ja.starts_with("同じエラーが 3 回続けて発生しました（run_code）。") && ja.contains("\n1. "),
            "{ja}"
        );
        assert!(!ja.contains("sk-abc"));
    }

    #[test]
    fn the_depth_notice_names_the_limit_and_the_count() {
        let args: Vec<String> = (0..21).map(|at| format!("{{\"path\":\"f{at}\"}}")).collect();
        let calls: Vec<Call<'_>> = args
            .iter()
            .map(|args| Call {
                tool: "read_file",
                args,
                output: args,
                is_error: Some(false),
                ..Call::default()
            })
            .collect();
        let phrases = Phrases::new().unwrap();
        let block = suggestion_block(&phrases, Lang::Ja, &judge(&calls).suggestion().unwrap(), None);
        assert!(block.starts_with("1 回のやり取りで許されるツール呼び出しの回数を超えました"), "{block}");
        assert!(block.contains("20 回まで") && block.contains("21 回"), "{block}");
    }

    #[test]
    fn notes_carry_the_mark_and_stops_ask_for_an_answer() {
        let phrases = Phrases::new().unwrap();
        let note_of = |judgement: &Judgement, lang| {
            note(&phrases, lang, judgement.gravest().unwrap(), judgement.reach, &[])
        };
        for &lang in Lang::ALL {
            let noted = note_of(&fonts(2), lang);
            assert!(noted.starts_with(NOTE_MARK) && noted.contains("<*>") && noted.contains('2'), "{noted}");
            assert_ne!(note_of(&fonts(3), lang), noted);
        }
        assert!(note_of(&fonts(3), Lang::En).contains("same calls with the same arguments are refused"));
        assert!(note_of(&fonts(5), Lang::En).contains("calls of run_code are refused"));
        assert!(note_of(&fonts(7), Lang::En).contains("No more tools"));
        let last = fonts(7);
        let ways = note(&phrases, Lang::En, last.gravest().unwrap(), last.reach, &["ask_user", "submit"]);
        assert!(ways.contains("Except ask_user, submit, no more tools"), "{ways}");
    }

    /// Each stage of a refusal has words of its own, in both languages.
    #[test]
    fn a_refused_call_reads_why() {
        let phrases = Phrases::new().unwrap();
        for &lang in Lang::ALL {
            let stages = [Some(Forbids::Calls), Some(Forbids::Tools), Some(Forbids::Turn), None];
            let mut all: Vec<String> =
                stages.iter().map(|stage| refusal(&phrases, lang, "run", *stage, &[])).collect();
            all.push(refusal(&phrases, lang, "run", Some(Forbids::Turn), &["submit"]));
            assert!(all.iter().all(|text| text.starts_with(NOTE_MARK) && !text.contains("guard-refused")));
            assert!(all.last().unwrap().contains("submit"));
            let known: std::collections::BTreeSet<_> = all.iter().collect();
            assert_eq!(known.len(), all.len(), "{all:?}");
        }
    }

    /// A model that is warned of a stop that never comes learns to ignore notes.
    #[test]
    fn no_note_threatens_with_a_stop_that_will_not_come() {
        let phrases = Phrases::new().unwrap();
        let noting = |limit| {
            GuardPolicy::source().with(|policy| {
                policy.similar_errors = RulePolicy::note(3);
                policy.same_call = RulePolicy::note(5);
                policy.depth = RulePolicy::note(limit);
            })
        };
        let observing = GuardPolicy::source().with(|policy| {
            policy.observe = true;
        });
        let failed =
            Call { tool: "run", args: "{}", output: "error: no", is_error: Some(true), ..Call::default() };
        let same =
            Call { tool: "read", args: "{}", output: "same", is_error: Some(false), ..Call::default() };
        for (policy, call, count) in [
            (noting(20), failed, 2),
            (noting(20), failed, 3),
            (observing.clone(), failed, 2),
            (observing.clone(), failed, 3),
            (noting(20), same, 4),
            (noting(20), same, 5),
            (noting(3), same, 3),
            (observing, same, 5),
        ] {
            let judgement = judge_by(policy, &vec![call; count]);
            let finding = judgement.gravest().unwrap();
            for (lang, threat) in [(Lang::En, "refused"), (Lang::Ja, "拒否")] {
                let note = note(&phrases, lang, finding, judgement.reach, &[]);
                assert!(!note.contains(threat) && !note.contains("allowed"), "{note}");
            }
        }
        let stopping = judge(&[failed; 2]);
        let finding = stopping.gravest().unwrap();
        assert!(note(&phrases, Lang::En, finding, stopping.reach, &[]).contains("the same call is refused"));
        let half_way = judge_by(GuardPolicy::default(), &[failed; 3]);
        let finding = half_way.gravest().unwrap();
        assert_eq!((finding.verdict, finding.limit), (Verdict::Note, 6));
        assert!(!note(&phrases, Lang::En, finding, half_way.reach, &[]).contains("After the next failure"));
    }

    #[test]
    fn a_note_about_parallel_calls_is_not_about_all_of_them() {
        let phrases = Phrases::new().unwrap();
        let args: Vec<String> = (0..18).map(|at| format!("{{\"path\":\"f{at}\"}}")).collect();
        let call = |at: usize| Call { tool: "read", args: &args[at], output: &args[at], ..Call::default() };
        let calls: Vec<Call<'_>> =
            (0..18).map(|at| Call { batch: Some(u32::from(at >= 2)), ..call(at) }).collect();
        let judgement = judge(&calls);
        let finding = judgement.gravest().unwrap();
        assert_eq!((finding.rule, finding.verdict), (Rule::Width, Verdict::Note));
        for &lang in Lang::ALL {
            let note = note(&phrases, lang, finding, judgement.reach, &[]);
            assert!(note.contains("16") && !note.contains("18"), "{note}");
        }
    }

    #[test]
    fn categories_of_users_bring_their_own_words() {
        let phrases = Phrases::new().unwrap();
        let texts = |en: &str| Texts { en: en.to_owned(), ja: "自前の文".to_owned() };
        let own = OwnCategory { message: texts("The robot is asleep."), suggestion: texts("Wake it.") };
        let mut suggestion = fonts(3).suggestion().unwrap();
        suggestion.category = Some("asleep".into());
        let block = suggestion_block(&phrases, Lang::En, &suggestion, Some(&own));
        assert!(block.contains("The robot is asleep.") && block.contains("1. Wake it."), "{block}");
        assert!(suggestion_block(&phrases, Lang::Ja, &suggestion, Some(&own)).contains("自前の文"));
        let unknown = suggestion_block(&phrases, Lang::En, &suggestion, None);
        assert!(unknown.contains("\n1. ") && !unknown.contains("1. \n"), "{unknown}");
    }
}

//! The words before and behind an expression that make it a wait, in languages written with spaces.
//!
//! The word that governs an expression is the nearest one that says anything about it: in "request failed,
//! try again in 5s" that is *try*, in "Retrying in 5s" *retrying*, in "timed out after 30s" *timed*. So the
//! reader walks back from the expression over words that say nothing, and the first word that does decides:
//! a cue makes it a wait, a denial makes it none, and a full stop ends the search. The walk is at most
//! [`REACH`] tokens long, which keeps the whole text linear.
//!
//! Nothing is a wait by default. Languages written without spaces are read by [`super::cjk`].
//! The tests are with those of [`super::text`], as whole sentences.

use super::cue_words::{
    AGAIN, ASKING, BLOCKED_WORDS, DENIALS, FILLERS, OPEN, OWN, RESET_STEMS, RESETS, WINDOWS,
};
use super::token::{Gap, Tokens};

/// How far from the expression its governing word may stand, in tokens.
const REACH: usize = 12;

/// Words about which nothing is known that may stand between a cue and the preposition of its expression.
const MAX_UNKNOWN_WORDS: usize = 4;

/// What the preposition before an expression says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preposition {
    /// None stands there.
    None,
    /// "in": a length of time.
    In,
    /// "for": a length of time.
    For,
    /// "at", "on": an instant.
    At,
    /// "after": either.
    After,
    /// "until": an instant, and reason enough.
    Until,
}

/// What the words around an expression make of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A wait; `reset` as in [`super::StatedWait`].
    Wait { reset: bool },
    /// Something else: a client's own pause, a window, a time that has passed.
    Denied,
    /// Nothing is said about it on this side.
    Open,
}

/// What stands before an expression.
#[derive(Debug, Clone, Copy)]
pub(super) struct CueBefore {
    pub preposition: Preposition,
    pub verdict: Verdict,
    /// The cue is one of asking again, behind which a bare number means seconds.
    pub takes_bare_number: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// "try again": strangers may follow.
    Again,
    /// "retry": nothing unknown may follow, or it is the name of something.
    Retry,
    /// "wait": only a length may follow.
    Wait,
    /// "resets".
    Reset,
    /// "available", "allowed": a preposition must follow.
    Open,
    /// "blocked": "for" must follow.
    Shut,
    /// "until".
    Until,
    /// "dans", "dentro de": said of the future only.
    Ahead,
    /// The expression is something else.
    Denial,
    /// Says nothing.
    Filler,
    Stranger,
}

/// Reads what stands before the expression that begins at `start`.
///
/// `is_length` is false for dates, times and epochs: some words govern only the one or the other.
pub(super) fn before(tokens: &Tokens<'_>, start: usize, is_length: bool) -> CueBefore {
    let preposition = preposition_before(tokens, start);
    let mut strangers = 0;
    for at in (start.saturating_sub(REACH)..start).rev() {
        if tokens.ends_sentence(at) {
            break;
        }
        let role = role_at(tokens, at, is_length);
        match role {
            Role::Filler => {}
            Role::Stranger => strangers += 1,
            Role::Denial => return before_with(preposition, Verdict::Denied, role),
            _ if fits(role, preposition, strangers, is_length) => {
                return before_with(preposition, Verdict::Wait { reset: role == Role::Reset }, role);
            }
            Role::Shut => strangers += 1,
            // A cue that does not govern this expression hides the ones before it.
            _ => return before_with(preposition, Verdict::Open, role),
        }
    }
    // "You can send messages again at 5pm": no known verb, but nothing against it either.
    let verdict = if comes_again(tokens, start) { Verdict::Wait { reset: false } } else { Verdict::Open };
    before_with(preposition, verdict, Role::Filler)
}

/// Whether "again" and a preposition stand right before, and the text does not say "checking again".
fn comes_again(tokens: &Tokens<'_>, start: usize) -> bool {
    let Some(again) = start.checked_sub(2).filter(|at| tokens.word(*at) == "again") else { return false };
    let verb = tokens.word_before(again);
    matches!(tokens.word(again + 1), "at" | "in" | "on" | "after")
        && !verb.is_empty()
        && !verb.ends_with("ing")
}

fn before_with(preposition: Preposition, verdict: Verdict, role: Role) -> CueBefore {
    let takes_bare_number = matches!(role, Role::Again | Role::Retry)
        && matches!(preposition, Preposition::In | Preposition::After);
    CueBefore { preposition, verdict, takes_bare_number }
}

fn fits(role: Role, preposition: Preposition, strangers: usize, is_length: bool) -> bool {
    let near = strangers == 0 || (strangers <= MAX_UNKNOWN_WORDS && preposition != Preposition::None);
    match role {
        Role::Again | Role::Reset => near,
        Role::Open => near && preposition != Preposition::None,
        Role::Retry => strangers == 0,
        Role::Shut => strangers == 0 && is_length && preposition == Preposition::For,
        Role::Wait => strangers == 0 && (is_length || preposition != Preposition::None),
        Role::Until => strangers == 0 && !is_length,
        Role::Ahead => strangers == 0 && is_length,
        Role::Denial | Role::Filler | Role::Stranger => false,
    }
}

/// The preposition of an expression; "about", "at least" and signs may stand between.
pub(super) fn preposition_before(tokens: &Tokens<'_>, start: usize) -> Preposition {
    for at in (start.saturating_sub(5)..start).rev() {
        let before = tokens.word_before(at);
        match tokens.word(at) {
            "" if tokens.number(at).is_some() || tokens.ends_sentence(at) => return Preposition::None,
            "" | "about" | "approximately" | "approx" | "around" | "roughly" | "exactly" | "another"
            | "least" | "the" | "etwa" | "ca" | "environ" | "than" | "less" | "under" | "next" | "only"
            | "just" | "is" => {}
            "at" if tokens.word(at + 1) == "least" => {}
            "in" | "dans" | "en" | "em" | "daqui" | "tra" | "fra" | "через" | "trong" | "dalam" | "za" =>
            {
                return Preposition::In;
            }
            // "over 5 minuten" looks ahead in Dutch; in English it compares.
            "over" if (at.saturating_sub(4)..at).any(|at| tokens.word(at).starts_with("probe")) => {
                return Preposition::In;
            }
            // "alle 17:10" in Italian; in German "alle 5 Minuten" is an interval.
            "alle" if tokens.sign(at + 2) == Some(':') => return Preposition::At,
            "a" if before == "daqui" => return Preposition::In,
            "de" if before == "dentro" => return Preposition::In,
            "for" | "fur" | "pendant" | "durante" | "por" => return Preposition::For,
            "at" | "on" | "by" | "from" | "um" | "am" | "a" | "as" | "las" | "la" | "le" | "el" | "no"
            | "ab" | "before" | "dia" | "om" | "в" | "o" | "luc" | "pukul" => return Preposition::At,
            "after" | "nach" | "apres" | "tras" | "apos" | "dopo" | "na" | "после" | "sau" | "setelah"
            | "po" => {
                return Preposition::After;
            }
            "de" if before == "despues" => return Preposition::After,
            "until" | "till" | "til" | "bis" | "hasta" | "ate" | "jusqu" | "до" => {
                return Preposition::Until;
            }
            _ => return Preposition::None,
        }
    }
    Preposition::None
}

/// Whether the word before an expression makes `8h` a time of day: "à", "às", "a las", but not "daqui a".
pub(super) fn announces_hour(tokens: &Tokens<'_>, start: usize) -> bool {
    let is_length = start.checked_sub(1).is_some_and(|at| tokens.word_before(at) == "daqui");
    matches!(tokens.word_before(start), "a" | "as" | "las" | "la" | "vers" | "des") && !is_length
}

fn role_at(tokens: &Tokens<'_>, at: usize, is_length: bool) -> Role {
    let word = tokens.word(at);
    if word.is_empty() {
        return role_of_sign(tokens, at);
    }
    if is_denial(word, is_length) || is_own_action(tokens, at) {
        return Role::Denial;
    }
    if is_part_of_name(tokens, at) {
        return Role::Stranger;
    }
    if is_reset(word) {
        return if is_reset_of_something_else(tokens, at) { Role::Denial } else { Role::Reset };
    }
    match word {
        "until" | "till" | "til" | "bis" | "hasta" | "jusqu" if is_validity(tokens, at) => Role::Denial,
        "until" | "till" | "bis" | "hasta" | "ate" | "jusqu" | "до" => Role::Until,
        "dans" | "daqui" | "dentro" => ahead_role(tokens, at, is_length),
        _ if is_again(word) => Role::Again,
        "retry" | "reintente" | "reintenta" | "reintentar" => Role::Retry,
        "wait" | "warten" | "warte" | "attendez" | "attendre" | "patientez" | "patienter" | "espere"
        | "espera" | "esperar" | "aguarde" | "aguardar" | "attendi" | "attendere" | "aspetta" | "wacht"
        | "подождите" | "bekleyin" | "đợi" | "chờ" | "tunggu" | "poczekaj" | "odczekaj" => {
            Role::Wait
        }
        "retried" if tokens.word_before(at) == "be" => Role::Open,
        "back" if matches!(tokens.word_before(at), "come" | "check" | "be" | "get" | "came") => Role::Open,
        _ if is_open(word) => Role::Open,
        _ if BLOCKED_WORDS.contains(&word) => Role::Shut,
        "later" if tokens.word(at + 1) != "than" => Role::Denial,
        _ if is_filler(word) => Role::Filler,
        _ => Role::Stranger,
    }
}

/// "dans 3 heures" looks ahead by itself, but only if nothing before it says what will happen then.
fn ahead_role(tokens: &Tokens<'_>, at: usize, is_length: bool) -> Role {
    for before in (at.saturating_sub(REACH)..at).rev() {
        if tokens.ends_sentence(before) {
            break;
        }
        match role_at_plain(tokens, before, is_length) {
            Role::Filler | Role::Stranger => {}
            _ => return Role::Filler,
        }
    }
    Role::Ahead
}

/// [`role_at`] without the words that look at others in turn.
fn role_at_plain(tokens: &Tokens<'_>, at: usize, is_length: bool) -> Role {
    match tokens.word(at) {
        "dans" | "daqui" | "dentro" => Role::Stranger,
        _ => role_at(tokens, at, is_length),
    }
}

fn role_of_sign(tokens: &Tokens<'_>, at: usize) -> Role {
    match tokens.sign(at) {
        Some('/' | '#' | '%' | '$' | '&' | '+' | '\\') | None => Role::Stranger,
        Some(_) => Role::Filler,
    }
}

fn is_denial(word: &str, is_length: bool) -> bool {
    DENIALS.contains(&word) || (is_length && matches!(word, "waiting" | "waits" | "every" | "each"))
}

/// "will retry in 5s", "next retry in 5s", "going to wait 5s": a client says what it will do itself.
fn is_own_action(tokens: &Tokens<'_>, at: usize) -> bool {
    if !matches!(tokens.word(at), "retry" | "wait" | "try" | "reconnect") {
        return false;
    }
    let mut before = at;
    while matches!(tokens.word_before(before), "automatically" | "auto" | "then" | "now" | "be" | "again") {
        before -= 1;
    }
    let is_automatic = before < at && tokens.word(before).starts_with("auto");
    let dashed = before.checked_sub(1).is_some_and(|sign| tokens.is_sign(sign, '-') && tokens.glued(before));
    let subject = if dashed { tokens.word_before(before - 1) } else { tokens.word_before(before) };
    let is_plan = || matches!(tokens.word_before(before - 1), "going" | "about" | "trying" | "attempting");
    is_automatic || OWN.contains(&subject) || (subject == "to" && is_plan())
}

/// A word that is a piece of an identifier (`x-ratelimit-reset`, `reset_by`) is no cue.
fn is_part_of_name(tokens: &Tokens<'_>, at: usize) -> bool {
    let joins = |sign: usize| matches!(tokens.sign(sign), Some('-' | '_' | '/')) && tokens.glued(sign);
    let before = at.checked_sub(1).is_some_and(|sign| joins(sign) && tokens.glued(at) && sign > 0);
    let behind = joins(at + 1) && tokens.glued(at + 2) && tokens.number(at + 2).is_none();
    let is_header = tokens.word(at) == "retry" && tokens.word(at + 2) == "after" && !before;
    (before || behind) && !is_header && !is_filler(tokens.word(at))
}

fn is_again(word: &str) -> bool {
    AGAIN.contains(&word)
}

fn is_reset(word: &str) -> bool {
    RESETS.contains(&word) || RESET_STEMS.iter().any(|stem| word.starts_with(stem))
}

/// "connection reset", "git reset": not a limit.
fn is_reset_of_something_else(tokens: &Tokens<'_>, at: usize) -> bool {
    let is_other = |word: &str| {
        matches!(
            word,
            "connection" | "stream" | "socket" | "tcp" | "git" | "password" | "hard" | "peer" | "was"
        )
    };
    is_other(tokens.word_before(at))
        || matches!(tokens.word(at + 1), "by" | "password" | "connection" | "stream")
}

fn is_open(word: &str) -> bool {
    OPEN.contains(&word)
}

fn is_validity(tokens: &Tokens<'_>, at: usize) -> bool {
    matches!(
        tokens.word_before(at),
        "valid" | "expires" | "gultig" | "valable" | "valido" | "running" | "free"
    )
}

fn is_filler(word: &str) -> bool {
    FILLERS.contains(&word)
}

/// Reads what stands behind the expression that ends at `end`.
pub(super) fn behind(tokens: &Tokens<'_>, start: usize, end: usize, is_length: bool) -> Verdict {
    if is_denied_behind(tokens, end) {
        return Verdict::Denied;
    }
    // "3 hours remaining until …" says the same as "3 hours until …".
    let counted = matches!(tokens.word(end), "remaining" | "left")
        && matches!(tokens.word(end + 1), "until" | "till" | "before");
    let end = end + usize::from(counted);
    match tokens.word(end) {
        "before" | "avant" | "antes" if is_length && asks_again_behind(tokens, end + 1) => {
            return Verdict::Wait { reset: false };
        }
        "until" | "till" | "bis" if is_length => return until_event(tokens, end + 1),
        _ => {}
    }
    let opens_sentence = start.checked_sub(2).is_none_or(|at| tokens.ends_sentence(at))
        && matches!(tokens.word_before(start), "in" | "after" | "at");
    verb_behind(tokens, start, end, opens_sentence)
}

fn is_denied_behind(tokens: &Tokens<'_>, end: usize) -> bool {
    let is_rate = tokens.glued(end) && matches!(tokens.sign(end), Some('/' | '%'));
    is_rate || WINDOWS.contains(&tokens.word(end))
}

fn asks_again_behind(tokens: &Tokens<'_>, at: usize) -> bool {
    (at..at + 4).any(|at| ASKING.contains(&tokens.word(at)))
}

/// "3h until reset", "5 minutes until you can try again".
fn until_event(tokens: &Tokens<'_>, at: usize) -> Verdict {
    for at in at..at + 6 {
        if tokens.ends_sentence(at) {
            break;
        }
        if is_reset(tokens.word(at)) {
            return Verdict::Wait { reset: true };
        }
        if matches!(tokens.word(at), "retry" | "try" | "again" | "next" | "available") {
            return Verdict::Wait { reset: false };
        }
    }
    Verdict::Open
}

/// Verbs that come last: "wird um 17:10 Uhr zurückgesetzt", "in 5 Minuten erneut".
///
/// English verbs count only if the sentence begins with the expression ("In 5 minutes, try again"): a time in
/// the middle of one is likelier that of an event ("no answer in 60 seconds, please retry").
fn verb_behind(tokens: &Tokens<'_>, start: usize, end: usize, opens_sentence: bool) -> Verdict {
    for at in end..end + 5 {
        if tokens.ends_sentence(at) || tokens.get(at).is_none() || tokens.gap(at) == Gap::Line && at > end + 2
        {
            break;
        }
        match tokens.word(at) {
            "versucht" | "retrying" => return Verdict::Denied,
            "erneut" | "nochmal" | "nochmals" => {
                let own = matches!(tokens.word(at + 1), "versucht") || says_will(tokens, start);
                return if own { Verdict::Denied } else { Verdict::Wait { reset: false } };
            }
            "deneyin" => return Verdict::Wait { reset: false },
            "bekleyin" if at == end => return Verdict::Wait { reset: false },
            "noch" if tokens.word(at + 1) == "einmal" => return Verdict::Wait { reset: false },
            "zuruck" if sets_before(tokens, start) => return Verdict::Wait { reset: true },
            word if is_foreign_reset(word) => return Verdict::Wait { reset: true },
            word if opens_sentence && is_reset(word) && !is_reset_of_something_else(tokens, at) => {
                return Verdict::Wait { reset: true };
            }
            "try" | "retry" if opens_sentence && !is_own_action(tokens, at) => {
                return Verdict::Wait { reset: false };
            }
            _ => {}
        }
    }
    Verdict::Open
}

fn is_foreign_reset(word: &str) -> bool {
    ["zuruckgesetzt", "reinitialis", "restablec", "redefini", "sıfırlan", "gereset"]
        .iter()
        .any(|stem| word.starts_with(stem))
}

fn says_will(tokens: &Tokens<'_>, start: usize) -> bool {
    (start.saturating_sub(4)..start).any(|at| tokens.word(at) == "wird")
}

fn sets_before(tokens: &Tokens<'_>, start: usize) -> bool {
    (start.saturating_sub(6)..start).any(|at| matches!(tokens.word(at), "setzt" | "setzen"))
}

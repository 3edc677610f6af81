//! Secrets that nothing announces and no shape gives away: long random runs, card numbers, keys of Koboshi itself.
//!
//! Randomness alone is no proof: commits, digests and the ids of requests look just like secrets, and an operator needs them. So a run must be
//! long and mixed as no name is, and it stays where the word before it says what it is (`commit`, `sha256:`, `request_id=`) or where it begins
//! as ids do (`resp_…`). A UUID has no run that is long enough.
//!
//! Plain code over the text between two marks, each letter read once; the text outside is never read. So it is linear, and a
//! second pass finds nothing new.

use std::ops::Range;

/// What marks of this module say.
pub(super) const LABELS: [&str; 3] = ["card", "key", "secret"];

/// Shorter runs are not examined.
const MIN_RUN: usize = 32;
const MAX_RUN: usize = 1024;

/// The first secret of a text, and what to call it.
pub(super) fn find(text: &str) -> Option<(Range<usize>, &'static str)> {
    let mut at = 0;
    while let Some(run) = next_run(text, at) {
        if let Some(found) = secret_in(text, run.clone()) {
            return Some(found);
        }
        at = run.end;
    }
    None
}

/// The next run of letters, digits and what base64 knows besides. A dot or a space ends it, and a length that no secret has: what follows is
/// another one, so that no letter is read more often than this many times.
fn next_run(text: &str, from: usize) -> Option<Range<usize>> {
    let rest = text.as_bytes().get(from..)?;
    let start = from + rest.iter().position(u8::is_ascii_alphanumeric)?;
    let near = text.as_bytes().get(start..)?.iter().take(MAX_RUN + MIN_RUN);
    let length = near.take_while(|byte| is_of_a_run(**byte)).count();
    // No end is left over that would be too short to be examined.
    let length = if length < MAX_RUN + MIN_RUN { length } else { MAX_RUN };
    Some(start..start + length)
}

fn is_of_a_run(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/_-".contains(&byte)
}

fn secret_in(text: &str, run: Range<usize>) -> Option<(Range<usize>, &'static str)> {
    let word = text.get(run.clone())?;
    let is_unknown = word.len() >= MIN_RUN && !is_explained(text.get(..run.start)?, word);
    let before = text.get(..run.start)?;
    let is_random = || is_mixed(word) || (is_spread(word) && !is_symbol(before, word));
    if is_unknown && (is_random() || is_of_aws(before, word)) {
        let padding = text.get(run.end..)?.bytes().take(2).take_while(|byte| *byte == b'=').count();
        return Some((run.start..run.end + padding, "secret"));
    }
    let key = own_key(word).map(|key| (run.start + key..run.end, "key"));
    let card = card_in(text, run.clone()).map(|card| (card, "card"));
    let hex = if is_unknown { hex_in(word) } else { None };
    let hex = hex.map(|hex| (run.start + hex.start..run.start + hex.end, "secret"));
    let first = [key, card, hex].into_iter().flatten().min_by_key(|(found, _)| found.start)?;
    // What stands before it in the run ends there the next time it is read.
    let start = first.0.start;
    let before = if start > run.start { secret_in(text.get(..start)?, run.start..start) } else { None };
    Some(before.unwrap_or(first))
}

/// Where a key of ours begins. The ids of requests begin alike, but are three short numbers; a part of one still is.
fn own_key(word: &str) -> Option<usize> {
    const BEGIN: &str = "kbs-";
    let start = word.find(BEGIN)?;
    let before = start.checked_sub(1).and_then(|at| word.as_bytes().get(at));
    let rest = word.get(start + BEGIN.len()..)?;
    let is_number = |part: &str| {
        part.len() <= 14 && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let is_id = rest.split('-').take(4).count() <= 3 && rest.split('-').all(is_number);
    (rest.len() >= 6 && !is_id && before.is_none_or(|byte| !byte.is_ascii_alphanumeric())).then_some(start)
}

/// A card number that begins in this run, at its beginning or behind a sign.
fn card_in(text: &str, run: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let begins = |at: &usize| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        bytes.get(*at).is_some_and(u8::is_ascii_digit)
            && before.is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'.')
    };
    run.filter(begins).find_map(|start| Some(start..start + card(text.get(start..)?)?))
}

/// The length of a card number at the beginning of this text: digits in one piece or in groups, of a known issuer, with the right last digit.
fn card(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut digits = Vec::new();
    for (at, byte) in bytes.iter().enumerate().take(MAX_CARD_LEN) {
        let next = bytes.get(at + 1);
        match byte {
            b'0'..=b'9' => digits.push(byte - b'0'),
            b' ' | b'-' if next.is_some_and(u8::is_ascii_digit) => continue,
            _ => return None,
        }
        let is_over = next.is_none_or(|next| !next.is_ascii_alphanumeric());
        if is_over && is_of_an_issuer(&digits) && has_right_last_digit(&digits) {
            return Some(at + 1);
        }
    }
    None
}

/// Digits of a card, and what stands between them.
const MAX_CARD_LEN: usize = 19 + 6;

fn is_of_an_issuer(digits: &[u8]) -> bool {
    let first = digits.iter().take(4).fold(0_u32, |number, digit| number * 10 + u32::from(*digit));
    match first {
        4000..=4999 => matches!(digits.len(), 13 | 16 | 19),
        2221..=2720 | 3528..=3589 | 5100..=5599 | 6011 | 6440..=6599 => digits.len() == 16,
        3400..=3499 | 3700..=3799 => digits.len() == 15,
        3000..=3059 | 3600..=3699 | 3800..=3999 => digits.len() == 14,
        6200..=6299 => (16..=19).contains(&digits.len()),
        _ => false,
    }
}

/// Luhn's check.
fn has_right_last_digit(digits: &[u8]) -> bool {
    let doubled = |digit: u8| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| u32::from(if place % 2 == 1 { doubled(*digit) } else { *digit }))
        .sum();
    sum.is_multiple_of(10)
}

/// Whether a run is named as something that may be seen, by the word before it or by how it begins.
fn is_explained(before: &str, word: &str) -> bool {
    const IDS: [&str; 31] = [
        "req", "resp", "msg", "call", "toolu", "srvtoolu", "chatcmpl", "cmpl", "thread", "run", "step",
        "asst", "rs", "fc", "ws", "fp", "file", "batch", "org", "proj", "gen", "sess", "session", "evt",
        "vs", "ft", "conv", "item", "sha1", "sha256", "sha512",
    ];
    let is_id = word.split_once(['_', '-']).is_some_and(|(first, _)| IDS.contains(&first));
    is_id || is_name_of_an_id(last_word(before))
}

/// The word that ends a text, behind which only what joins a name and its value may stand.
fn last_word(before: &str) -> &str {
    let near = before.trim_end_matches([' ', '\t', '"', '\'', '`', ':', '=', '@', '#', '(', '[', '<', '\\']);
    let near = if before.len() - near.len() > 8 { "" } else { near };
    let start =
        near.bytes().rev().take(40).take_while(|b| b.is_ascii_alphanumeric() || b"_-".contains(b)).count();
    near.get(near.len() - start..).unwrap_or_default()
}

fn is_name_of_an_id(word: &str) -> bool {
    const NAMES_IN_FRONT: [&str; 18] = [
        "commit", "sha", "md5", "digest", "hash", "checksum", "etag", "revision", "uuid", "guid",
        "fingerprint", "traceparent", "trace", "span", "integrity", "blob", "tree", "crc",
    ];
    let lower = word.to_ascii_lowercase();
    NAMES_IN_FRONT.iter().any(|name| lower.contains(name))
        || lower == "id"
        || ["_id", "-id", "Id", "ID"].iter().any(|end| word.ends_with(end))
}

/// Whether small letters, capitals and digits follow each other as they do in no name: within its parts they change at every second or third
/// letter.
fn is_mixed(word: &str) -> bool {
    changes(word).is_some_and(|changes| changes * 5 >= word.len() * 2)
}

/// Whether a run has nearly as many different letters as chance would give it, and changes between small letters, capitals and digits more
/// often than a sentence. Names repeat their letters. Some of the random runs change too seldom to be [`is_mixed`].
fn is_spread(word: &str) -> bool {
    changes(word).is_some_and(|changes| changes * 4 >= word.len()) && distinct(word) >= min_spread(word.len())
}

/// 84 % of the different letters that a random run of base64 has on average.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most 64"
)]
fn min_spread(length: usize) -> usize {
    let expected = 64.0 * (1.0 - (-(length as f64) / 64.0).exp());
    (expected * 0.84).ceil() as usize
}

/// How often small letters, capitals and digits change within the parts of a run; none where one of the three is missing.
fn changes(word: &str) -> Option<usize> {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => 0_u8,
        b'A'..=b'Z' => 1,
        b'a'..=b'z' => 2,
        _ => 3,
    };
    let has = |wanted: u8| word.bytes().any(|byte| kind(byte) == wanted);
    let pairs = word.as_bytes().windows(2).filter_map(|pair| match pair {
        [one, other] => Some((kind(*one), kind(*other))),
        _ => None,
    });
    let changes = pairs.filter(|(one, other)| one != other && *one < 3 && *other < 3).count();
    (has(0) && has(1) && has(2)).then_some(changes)
}

/// Whether a run is the name of a C++ function as linkers write it, `_ZNKSt7collate…`.
fn is_symbol(before: &str, word: &str) -> bool {
    before.ends_with('_') && word.starts_with('Z')
}

/// A secret of AWS has forty letters; beside its name fewer changes are enough.
fn is_of_aws(before: &str, word: &str) -> bool {
    let start = before.floor_char_boundary(before.len().saturating_sub(48));
    let near = before.get(start..).unwrap_or_default().to_ascii_lowercase();
    word.len() == 40
        && (near.contains("aws") || near.contains("secret"))
        && word.bytes().any(|byte| byte.is_ascii_uppercase())
        && word.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// The first long piece of a run that is all hex, and no simple pattern.
fn hex_in(word: &str) -> Option<Range<usize>> {
    let mut start = 0;
    for piece in word.split(['+', '/', '_', '-']) {
        let end = start + piece.len();
        if piece.len() >= MIN_RUN
            && piece.bytes().all(|byte| byte.is_ascii_hexdigit())
            && distinct(piece) >= 8
        {
            return Some(start..end);
        }
        start = end + 1;
    }
    None
}

pub(super) fn distinct(word: &str) -> usize {
    let seen = word.bytes().fold(0_u128, |seen, byte| seen | 1 << (byte & 127));
    usize::try_from(seen.count_ones()).unwrap_or_default()
}

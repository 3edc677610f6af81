//! Numbers in other notations than JSON's. Digits are never lost and nothing is rounded: numbers stay text.

use super::strict::number_end;

/// What a bare token is, as a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NumberReading {
    /// A number of JSON.
    Strict,
    /// Another notation of this number.
    Other(String),
    /// A number only where the schema demands one: full-width digits.
    Wide(String),
    /// Text, if anything: leading zeros, dates, versions, units.
    Text,
    /// Nothing.
    None,
}

pub(super) fn is_strict(token: &str) -> bool {
    number_end(token.as_bytes(), 0) == Some(token.len())
}

/// Reads a bare token that begins like a number.
pub(super) fn read(token: &str) -> NumberReading {
    if is_strict(token) {
        return NumberReading::Strict;
    }
    if !token.is_ascii() {
        let narrow: String = token.chars().map(narrow).collect();
        return if is_strict(&narrow) { NumberReading::Wide(narrow) } else { NumberReading::None };
    }
    if let Some(number) = hexadecimal(token).or_else(|| decimal(token)) {
        return NumberReading::Other(number);
    }
    let digit_first = token.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit());
    let wordy =
        token.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+'));
    if digit_first && wordy { NumberReading::Text } else { NumberReading::None }
}

fn narrow(wide: char) -> char {
    match wide {
        '０'..='９' => char::from_digit(u32::from(wide) - u32::from('０'), 10).unwrap_or(wide),
        '．' => '.',
        '－' | '−' => '-',
        other => other,
    }
}

fn hexadecimal(token: &str) -> Option<String> {
    let (sign, rest) = token.strip_prefix('-').map_or(("", token), |rest| ("-", rest));
    let digits = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X"))?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let number = u128::from_str_radix(digits, 16).ok()?;
    Some(format!("{sign}{number}"))
}

/// `+5`, `.5`, `5.` and `1_000`.
fn decimal(token: &str) -> Option<String> {
    let bytes = token.as_bytes();
    let digit_at = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    let joined = (0..bytes.len())
        .filter(|index| bytes.get(*index) == Some(&b'_'))
        .all(|index| index > 0 && digit_at(index - 1) && digit_at(index + 1));
    if !joined {
        return None;
    }
    let plain = token.replace('_', "");
    let unsigned = plain.strip_prefix('+').unwrap_or(&plain);
    let (sign, digits) = unsigned.strip_prefix('-').map_or(("", unsigned), |rest| ("-", rest));
    if digits.starts_with(['+', '-']) || (sign == "-" && plain.starts_with('+')) {
        return None;
    }
    let whole = digits.strip_suffix('.').unwrap_or(digits);
    let zero = if whole.starts_with('.') { "0" } else { "" };
    let number = format!("{sign}{zero}{whole}");
    is_strict(&number).then_some(number)
}

/// Whether two numbers of JSON are the same number, exactly.
pub(super) fn equal(left: &str, right: &str) -> bool {
    if left == right {
        return true;
    }
    match (Decimal::of(left), Decimal::of(right)) {
        (Some(left), Some(right)) => left == right,
        _ => false,
    }
}

/// A number as digits without zeros at either end, and where the point is.
#[derive(PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn of(number: &str) -> Option<Self> {
        let (negative, rest) = number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
        let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut exponent = exponent.parse::<i64>().ok()?.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        let kept = digits.trim_end_matches('0');
        exponent = exponent.checked_add(i64::try_from(digits.len() - kept.len()).ok()?)?;
        if kept.is_empty() {
            return Some(Self { negative: false, digits: String::new(), exponent: 0 });
        }
        Some(Self { negative, digits: kept.to_owned(), exponent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_notations_have_one_reading() {
        for (token, number) in [
            ("+5", "5"),
            (".5", "0.5"),
            ("5.", "5"),
            ("-.5", "-0.5"),
            ("0x1F", "31"),
            ("-0x10", "-16"),
            ("1_000", "1000"),
            ("1_000.5", "1000.5"),
            ("+1e3", "1e3"),
        ] {
            assert_eq!(read(token), NumberReading::Other(number.to_owned()), "{token}");
        }
        assert_eq!(read("１２"), NumberReading::Wide("12".to_owned()));
    }

    #[test]
    fn what_has_none_is_not_read_as_a_number() {
        for token in
            ["020", "1__0", "_1", "1_", "0x", "5px", "2024-01-15", "1.2.3", "--5", "+-5", "5e", "0b1"]
        {
            assert!(matches!(read(token), NumberReading::Text | NumberReading::None), "{token}");
        }
        for token in ["...", "50%", "1/3", "-", "+", ".", "1０.x"] {
            assert_eq!(read(token), NumberReading::None, "{token}");
        }
    }

    #[test]
    fn equality_is_exact() {
        for (left, right) in [("5", "5.0"), ("50e-1", "5"), ("0", "-0.0"), ("1e3", "1000"), ("0.10", "1E-1")]
        {
            assert!(equal(left, right), "{left} {right}");
        }
        for (left, right) in [("5", "-5"), ("9007199254740993", "9007199254740992"), ("1e3", "1e4")] {
            assert!(!equal(left, right), "{left} {right}");
        }
        assert!(!equal("1e99999999999999999999", "1e99999999999999999998"));
    }
}

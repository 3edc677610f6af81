//! Amounts of memory as people write them: `128MiB`.

const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// The number of bytes; none where the text is no amount.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let (digits, unit) = UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| digits.parse::<u64>().ok()).flatten().filter(|number| *number > 0)?;
    number.checked_mul(*unit)
}

/// The same as text, in the largest unit that leaves nothing over.
pub(crate) fn text(bytes: u64) -> String {
    let fitting = UNITS.iter().find(|(_, unit)| bytes.is_multiple_of(*unit));
    let (name, unit) = fitting.unwrap_or(&("KiB", 1 << 10));
    format!("{}{name}", bytes / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_they_are_written() {
        for (written, value) in [("1KiB", 1 << 10), ("128MiB", 128 << 20), ("2GiB", 2 << 30)] {
            assert_eq!((bytes(written), text(value).as_str()), (Some(value), written));
        }
        for bad in ["", "128", "MiB", "1.5GiB", "-1MiB", "0MiB", "128MB", "99999999999999999999GiB"] {
            assert_eq!(bytes(bad), None, "{bad}");
        }
    }
}

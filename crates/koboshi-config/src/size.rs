//! Amounts of memory as people write them: `128MiB`.

const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// The number of bytes; none where the text is no amount.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let (digits, unit) = UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| digits.parse::<u64>().ok()).flatten().filter(|number| *number > 0)?;
    number.checked_mul(*unit)
}

/// The same as text, in the largest unit without a remainder.
pub(crate) fn text(bytes: u64) -> String {
    let fitting = UNITS.iter().find(|(_, unit)| bytes.is_multiple_of(*unit));
    let (name, unit) = fitting.unwrap_or(&("KiB", 1 << 10));
    format!("{}{name}", bytes / unit)
}

/// The probable meaning of another spelling: `1GB`, `512m`, a number of bytes. Never less than what was written.
pub(crate) fn meant(written: &str) -> Option<String> {
    let bytes = rough(written)?;
    let whole = bytes.div_ceil(1 << 10).checked_mul(1 << 10).filter(|bytes| *bytes > 0)?;
    Some(text(whole))
}

/// The number of bytes of an amount in any spelling: `1GB` is interpreted as commonly meant, in powers of 1024.
pub(crate) fn rough(written: &str) -> Option<u64> {
    let written = written.trim();
    let split = written.find(|c: char| !c.is_ascii_digit()).unwrap_or(written.len());
    let (digits, unit) = written.split_at(split);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" | "bytes" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_they_are_written() {
        for (written, value) in [("1KiB", 1 << 10), ("128MiB", 128 << 20), ("2GiB", 2 << 30)] {
            assert_eq!((bytes(written), text(value).as_str()), (Some(value), written));
        }
        for (written, said) in [("1GB", "1GiB"), ("512m", "512MiB"), ("1000000", "977KiB"), ("4 kb", "4KiB")]
        {
            assert_eq!(meant(written).as_deref(), Some(said));
        }
        for bad in ["", "much", "0", "1.5GB", "99999999999999999999", "9999999999999GiB"] {
            assert_eq!(meant(bad), None, "{bad}");
        }
        for bad in ["", "128", "MiB", "1.5GiB", "-1MiB", "0MiB", "128MB", "99999999999999999999GiB"] {
            assert_eq!(bytes(bad), None, "{bad}");
        }
    }
}

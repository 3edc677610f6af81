//! Did you mean: the name that looks most like a wrong one.

/// The nearest name, if one is near enough to be meant. Swapped letters count as one mistake, and so does a `-` or a
/// capital where we write `_`; the beginning of a
/// name is near to it.
pub(crate) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wrong: String = wrong.chars().take(64).collect::<String>().replace(['-', ' '], "_").to_lowercase();
    names
        .map(|name| (strsim::damerau_levenshtein(&wrong, name), name))
        .filter(|(distance, name)| {
            *distance <= name.len().div_ceil(3) || (wrong.len() > 2 && name.starts_with(&wrong))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["failure_rate", "least_calls", "calls", "time"];
        for (wrong, near) in [
            ("failureRate", Some("failure_rate")),
            ("failure-rate", Some("failure_rate")),
            ("failrue_rate", Some("failure_rate")),
            ("call", Some("calls")),
            ("fail", Some("failure_rate")),
            ("bananas", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, names.into_iter()), near, "{wrong}");
        }
        assert_eq!(nearest(&"x".repeat(1_000_000), names.into_iter()), None);
    }
}

//! Did you mean: the name that looks most like a wrong one.

use crate::schema::{KEYS, Key};
use crate::words::{Text, text, words};

/// The nearest name, if one is near enough to be meant. Swapped letters count as one mistake, and so does a `-` or a
/// capital where we write `_`; the beginning of a
/// name is near to it.
pub(crate) fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wrong: String = wrong.chars().take(64).collect::<String>().replace(['-', ' '], "_").to_lowercase();
    names
        .map(|name| (strsim::damerau_levenshtein(&wrong, name), name))
        .filter(|(distance, name)| {
            // Of a name of one letter nothing would be left.
            *distance <= (name.len() / 3).max(1) && *distance < name.len().min(wrong.len())
                || (wrong.len() > 2 && name.starts_with(&wrong))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// What other programs call our keys.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("api_key", "keys"),
    ("apikey", "keys"),
    ("token", "keys"),
    ("url", "base_url"),
    ("endpoint", "base_url"),
    ("type", "kind"),
    ("model", "chain"),
    ("models", "chain"),
    ("target", "chain"),
    ("targets", "chain"),
    ("fallback", "chain"),
    ("fallbacks", "chain"),
    ("model", "chain"),
    ("models", "chain"),
    ("port", "listen"),
    ("address", "listen"),
    ("bind", "listen"),
    ("key", "sha256"),
    ("hash", "sha256"),
];

/// The key of a section that a wrong name means.
pub(crate) fn meant(section: &str, name: &str) -> Option<&'static Key> {
    let of_name = |name: &str| Key::of_section(section).find(|key| key.name() == name);
    let plain = name.to_lowercase().replace('-', "_");
    let other =
        || OTHER_WORDS.iter().filter(|(other, _)| *other == plain).find_map(|(_, ours)| of_name(ours));
    nearest(name, Key::of_section(section).map(Key::name)).and_then(of_name).or_else(other)
}

/// What to do about a key that is not in the table.
pub(crate) fn hint_for_unknown(section: &str, name: &str) -> Text {
    if name == "<<" {
        return words(
            "merge keys are not read here: write the keys out",
            "マージキーには対応していません。キーをすべて書いてください",
        )
        .into();
    }
    if let Some(meant) = meant(section, name) {
        return text!("did you mean `{}`?", "`{}` のことですか？", meant.name());
    }
    let known: Vec<&str> = Key::of_section(section).map(Key::name).collect();
    // Right name, wrong place: most often the indentation.
    let elsewhere = |name: &str| -> Vec<String> {
        let mut keys: Vec<&str> = KEYS.iter().filter(|key| key.name() == name).map(|key| key.path).collect();
        keys.sort_by_key(|path| path.contains('*'));
        keys.into_iter().take(3).map(|path| format!("`{path}`")).collect()
    };
    // Of all names together one is near to anything short.
    let anywhere = || nearest(name, KEYS.iter().map(Key::name)).filter(|_| name.chars().count() > 4);
    match (elsewhere(name), anywhere()) {
        (places, _) if !places.is_empty() => {
            let (en, ja) = (places.join(" and "), places.join("、"));
            Text::new(
                format!("there is {en}: is the indentation right?"),
                format!("{ja} というキーならあります。インデントは正しいですか？"),
            )
        }
        (_, Some(near)) => {
            let (en, ja) = (elsewhere(near).join(" or "), elsewhere(near).join("、"));
            Text::new(format!("did you mean {en}?"), format!("{ja} のことですか？"))
        }
        _ => text!("known here: {}", "ここで使えるキー: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["failure_rate", "min_calls", "calls", "time"];
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

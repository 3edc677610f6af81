//! Did you mean: the name that looks most like a wrong one.

use crate::schema::{KEYS, Key};
use crate::words::{Text, text, words};

/// The most similar name, if it is similar enough to be meant. Swapped letters count as one mistake, and so does a `-` or a
/// capital where we write `_`; the beginning of a name is similar to it.
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

/// Names of other programs for our keys.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("api_key", "keys"),
    ("apikey", "keys"),
    ("api_keys", "keys"),
    ("apikeys", "keys"),
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
    ("port", "listen"),
    ("address", "listen"),
    ("bind", "listen"),
    ("key", "sha256"),
    ("hash", "sha256"),
    ("file", "path"),
    ("sqlite", "path"),
    ("database", "path"),
    ("db", "path"),
    ("url", "redis"),
];

/// The key of a section that a wrong name probably means.
pub(crate) fn meant(section: &str, name: &str) -> Option<&'static Key> {
    let of_name = |name: &str| Key::of_section(section).find(|key| key.name() == name);
    let plain = name.to_lowercase().replace('-', "_");
    let other =
        || OTHER_WORDS.iter().filter(|(other, _)| *other == plain).find_map(|(_, ours)| of_name(ours));
    nearest(name, Key::of_section(section).map(Key::name)).and_then(of_name).or_else(other)
}

/// The hint for a key that is not in the table.
pub(crate) fn hint_for_unknown(section: &str, name: &str) -> Text {
    if name == "<<" {
        return words(
            "merge keys are not read here: write the keys out",
            "マージキーには対応していません。設定項目をすべて書いてください",
        )
        .into();
    }
    // The admin API has a section of its own.
    if ["admin_key", "admin_token", "admin_password", "master_key"].contains(&name) {
        return words(
            "the hash of the admin key stands in `admin.sha256`: `printf %s THE-KEY | sha256sum` prints it",
            "管理用キーは、そのハッシュを `admin.sha256` に書きます。ハッシュは `printf %s キー | sha256sum` で表示できます",
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
    // Among all names one is similar to any short text.
    let anywhere = || nearest(name, KEYS.iter().map(Key::name)).filter(|_| name.chars().count() > 4);
    match (elsewhere(name), anywhere()) {
        (places, _) if !places.is_empty() => {
            let (en, ja) = (places.join(" and "), places.join("、"));
            Text::new(
                format!("there is {en}: is the indentation right?"),
                format!("{ja} という設定項目ならあります。インデントは正しいですか？"),
            )
        }
        (_, Some(near)) => {
            let (en, ja) = (elsewhere(near).join(" or "), elsewhere(near).join("、"));
            Text::new(format!("did you mean {en}?"), format!("{ja} のことですか？"))
        }
        _ => Text::new(
            format!("known here: {}", known.join(", ")),
            format!("ここで使える設定項目: {}", known.join("、")),
        ),
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

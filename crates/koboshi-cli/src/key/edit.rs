//! Adds a key to the text of a config and removes one, line by line.

/// A key that is added.
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    pub(super) sha256: &'a str,
    pub(super) budget_day: Option<f64>,
    pub(super) budget_month: Option<f64>,
    pub(super) rate: Option<u32>,
    pub(super) routes: &'a [String],
}

impl Entry<'_> {
    /// Its lines, each behind this indentation.
    pub(super) fn lines(&self, indent: &str) -> Vec<String> {
        let mut lines =
            vec![format!("{indent}{}:", quoted(self.name)), format!("{indent}  sha256: {}", self.sha256)];
        let budget = [("day", self.budget_day), ("month", self.budget_month)];
        let budget = budget.iter().filter_map(|(period, limit)| Some(format!("{period}: {}", (*limit)?)));
        let budget: Vec<String> = budget.collect();
        if !budget.is_empty() {
            lines.push(format!("{indent}  budget: {{{}}}", budget.join(", ")));
        }
        lines.extend(self.rate.map(|rate| format!("{indent}  rate: {rate}")));
        if !self.routes.is_empty() {
            let routes: Vec<String> = self.routes.iter().map(|route| quoted(route)).collect();
            lines.push(format!("{indent}  routes: [{}]", routes.join(", ")));
        }
        lines
    }
}

/// A text as YAML takes it for a text: JSON's form always is one.
fn quoted(text: &str) -> String {
    let is_plain = text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&&*text.to_lowercase());
    if is_plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Blank lines and comments belong to nothing.
fn is_content(line: &str) -> bool {
    let line = line.trim_start();
    !line.is_empty() && !line.starts_with('#')
}

/// The line of the section, and the lines of its entries.
fn section(lines: &[&str]) -> Option<(usize, std::ops::Range<usize>)> {
    let is_head = |line: &&str| {
        line.strip_prefix("keys:").is_some_and(|rest| {
            let rest = rest.trim_start();
            rest.is_empty() || rest.starts_with('#')
        })
    };
    let head = lines.iter().position(is_head)?;
    let behind = lines.iter().skip(head + 1).position(|line| is_content(line) && indent(line) == 0);
    Some((head, head + 1..behind.map_or(lines.len(), |length| head + 1 + length)))
}

/// The text with this key; none where its keys are not written line by line.
pub(super) fn with(text: &str, entry: &Entry<'_>) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out: Vec<String> = Vec::new();
    match section(&lines) {
        Some((head, entries)) => {
            let first =
                lines.get(entries)?.iter().find(|line| is_content(line)).map_or(2, |line| indent(line));
            let new = entry.lines(&" ".repeat(first.max(1)));
            for (at, line) in lines.iter().enumerate() {
                out.push((*line).to_owned());
                if at == head {
                    out.extend(new.iter().cloned());
                }
            }
        }
        None if lines.iter().any(|line| line.starts_with("keys:")) => return None,
        None => {
            out.extend(lines.iter().map(|line| (*line).to_owned()));
            out.extend([String::new(), "keys:".to_owned()]);
            out.extend(entry.lines("  "));
        }
    }
    Some(out.join("\n") + "\n")
}

/// The text without this key; none where it is not found as lines of its own.
pub(super) fn without(text: &str, name: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let (_, entries) = section(&lines)?;
    let single = format!("'{}'", name.replace('\'', "''"));
    let names = [name.to_owned(), serde_json::Value::from(name).to_string(), single];
    let is_it = |line: &str| {
        let line = line.trim_start();
        names.iter().any(|name| {
            let rest = line.strip_prefix(name.as_str()).and_then(|rest| rest.trim_start().strip_prefix(':'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        })
    };
    let all = lines.get(entries.clone())?;
    let depth = all.iter().find(|line| is_content(line)).map(|line| indent(line))?;
    let at = all.iter().position(|line| is_content(line) && indent(line) == depth && is_it(line))?;
    let behind = all.iter().skip(at + 1).position(|line| is_content(line) && indent(line) <= depth);
    let mut end = behind.map_or(all.len(), |length| at + 1 + length);
    // Comments and blank lines before the next entry are that one's.
    while end > at + 1 && all.get(end - 1).is_some_and(|line| !is_content(line) && indent(line) <= depth) {
        end -= 1;
    }
    let gone = entries.start + at..entries.start + end;
    let kept = lines.iter().enumerate().filter(|(at, _)| !gone.contains(at)).map(|(_, line)| *line);
    Some(kept.collect::<Vec<_>>().join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# ours\nkeys:\n    # of Alice\n    alice:\n        sha256: aa   # hers\n\n    # of Bob\n    \"bob\": {sha256: bb}\nroutes:\n  m: [sim/ok]\n";

    fn entry(name: &str) -> Entry<'_> {
        Entry { name, sha256: "cc", budget_day: Some(2.5), budget_month: None, rate: Some(9), routes: &[] }
    }

    #[test]
    fn a_key_is_added_in_the_files_own_indentation_and_nothing_else_changes() {
        let new = "    carol:\n      sha256: cc\n      budget: {day: 2.5}\n      rate: 9\n";
        let expected = TEXT.replacen("keys:\n", &format!("keys:\n{new}"), 1);
        assert_eq!(with(TEXT, &entry("carol")).unwrap(), expected);
        assert_eq!(without(&expected, "carol").unwrap(), TEXT);
        let fresh = with("routes: {}\n", &entry("a b")).unwrap();
        assert!(fresh.starts_with("routes: {}\n\nkeys:\n  \"a b\":\n    sha256: cc\n"), "{fresh}");
        assert_eq!(with("keys: {a: {sha256: aa}}\n", &entry("b")), None);
    }

    #[test]
    fn a_key_is_removed_with_its_lines_and_the_comments_of_others_stay() {
        let left = without(TEXT, "alice").unwrap();
        assert_eq!(
            left,
            "# ours\nkeys:\n    # of Alice\n\n    # of Bob\n    \"bob\": {sha256: bb}\nroutes:\n  m: [sim/ok]\n"
        );
        assert!(!without(TEXT, "bob").unwrap().contains("bb"));
        assert_eq!(without(TEXT, "sha256"), None, "a key of an entry is no entry");
        assert_eq!(without(TEXT, "m"), None, "nor is another section's");
    }

    #[test]
    fn names_that_yaml_would_read_as_something_else_are_quoted() {
        assert_eq!(["laptop", "no", "1", "a:b"].map(quoted), ["laptop", "\"no\"", "\"1\"", "\"a:b\""]);
    }
}

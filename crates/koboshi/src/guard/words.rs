//! Words of names and short texts, however they are spelled: `readFile`, `read_file` and `read-file` are two words.
//!
//! All words of a text share one buffer: names are split for every call, and a `String` for each word would cost more than
//! comparing it.

/// The words of a text in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Words {
    text: String,
    /// Where each of them ends.
    ends: Vec<usize>,
}

/// The words of a text in lower case, split at everything that is no letter or digit and at case changes.
pub(super) fn words(text: &str) -> Words {
    let mut all =
        Words { text: String::with_capacity(text.len()), ends: Vec::with_capacity(text.len() / 4 + 1) };
    let mut before = ' ';
    for c in text.chars() {
        if !c.is_alphanumeric() {
            all.end();
        } else {
            if c.is_uppercase() && before.is_lowercase() {
                all.end();
            }
            if c.is_ascii() {
                all.text.push(c.to_ascii_lowercase());
            } else {
                all.text.extend(c.to_lowercase());
            }
        }
        before = c;
    }
    all.end();
    all
}

impl Words {
    fn end(&mut self) {
        if self.text.len() > self.ends.last().copied().unwrap_or_default() {
            self.ends.push(self.text.len());
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> + Clone {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).filter_map(|(start, end)| self.text.get(start..*end))
    }

    /// Whether one of them is in the list.
    pub(super) fn any(&self, list: &[&str]) -> bool {
        self.iter().any(|word| list.contains(&word))
    }
}

/// The beginning and the end of a long text: what is read of it.
pub(super) fn ends(text: &str, head: usize, tail: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= head + tail {
        return std::borrow::Cow::Borrowed(text);
    }
    let first = text.get(..text.floor_char_boundary(head)).unwrap_or_default();
    let last = text.get(text.ceil_char_boundary(text.len() - tail)..).unwrap_or_default();
    std::borrow::Cow::Owned(format!("{first}\n{last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        words(text).iter().map(str::to_owned).collect()
    }

    #[test]
    fn spellings_of_one_name_are_one() {
        for name in ["read_file", "readFile", "read-file", "Read File"] {
            assert_eq!(split(name), ["read", "file"]);
        }
        assert_eq!(split("ContainerCreating 0 30s"), ["container", "creating", "0", "30s"]);
        assert_eq!(split(" --ÄnderungListe! "), ["änderung", "liste"]);
        assert_eq!((words("").len(), words("a b").len()), (0, 2));
    }
}

//! Texts that end before their object does.
//!
//! Missing closers are added only where nothing can have been lost: the last value is complete, only objects are
//! open, and each of them has every member that the schema declares for it. A string, number, word, key or array is
//! never completed.

use super::reader::{Enclosure, Reader, stop};
use super::tape::Kind;
use super::verdict::{ChangeKind, Defect, Stop};

/// At most this much may follow the end of an object whose closers are missing.
const MAX_TRAILING_BYTES: usize = 200;

impl Reader<'_> {
    /// Whether the text, or the wrapping around the object, ends here.
    pub(super) fn ends_text(&self, at: usize) -> bool {
        let rest = self.text.get(at..).unwrap_or_default();
        if rest.is_empty() {
            return true;
        }
        // A fence or tag inside a string is followed by the rest of that string.
        rest.len() <= MAX_TRAILING_BYTES
            && !rest.contains(['"', '\'', '{', '[', ':', '“', '‘', '«'])
            && (rest.starts_with("<|") || is_last_fence(rest) || self.closes_wrapping(rest))
    }

    /// Whether this is the end of a tag that the object is in, and not one of its content: `</p>`.
    fn closes_wrapping(&self, rest: &str) -> bool {
        let Some((name, _)) = rest.strip_prefix("</").and_then(|rest| rest.split_once('>')) else {
            return false;
        };
        let before = self.tape.get(0).and_then(|object| self.text.get(..object.start)).unwrap_or_default();
        name == "s"
            || ["tool", "function", "invoke", "parameter"].iter().any(|word| name.contains(word))
            || (!name.is_empty() && before.contains(&format!("<{name}")))
    }

    pub(super) fn is_over(&self) -> bool {
        self.ends_text(self.at)
    }

    /// Closes all open objects, if nothing can be missing.
    pub(super) fn close_all(&mut self) -> Result<(), Stop> {
        let cut = |why| stop(Defect::Cut, self.at, why);
        if self.frames.iter().any(|frame| frame.by != Enclosure::Object) {
            return Err(cut("the text ends inside a list"));
        }
        if !self.dirty.is_empty() {
            return Err(cut("the text ends before the object does"));
        }
        let Some(schema) = self.schema else {
            return Err(cut("the text ends before the object does, and more could have followed"));
        };
        let mut path: Vec<String> = Vec::new();
        for (depth, frame) in self.frames.iter().enumerate() {
            if depth > 0 {
                let key = frame.open.checked_sub(1).and_then(|index| self.tape.get(index));
                let Some(key) = key.filter(|item| item.kind == Kind::Key) else {
                    return Err(cut("the text ends inside a list"));
                };
                path.push(self.tape.text(key, self.text).into_owned());
            }
            let declared = schema.declared(path.iter().map(String::as_str));
            let here: Vec<_> = self.tape.keys(frame.open).filter_map(|key| self.tape.get(key)).collect();
            let whole = declared.is_some_and(|names| {
                names.iter().all(|name| here.iter().any(|key| self.tape.text(*key, self.text) == *name))
            });
            if !whole {
                return Err(cut("the text ends before the object does, and more could have followed"));
            }
        }
        while !self.frames.is_empty() {
            self.note(ChangeKind::ObjectClosed, self.at..self.at);
            self.close(0)?;
        }
        Ok(())
    }
}

/// A fence without a language, and no other behind it.
fn is_last_fence(rest: &str) -> bool {
    let after = rest.strip_prefix("```");
    after.is_some_and(|after| !after.starts_with(char::is_alphanumeric) && !after.contains("```"))
}

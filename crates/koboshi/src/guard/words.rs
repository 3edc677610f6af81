//! Words of names and short texts, however they are spelled: `readFile`, `read_file` and `read-file` are two words.
//!
//! Also the one hash of the guard. It is FNV-1a: the same on every machine and in every version, so that what was
//! logged yesterday can be compared today. Nothing is secured by it.

/// The words of a text in lower case, split at everything that is no letter or digit and at case changes.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for c in text.chars() {
        if !c.is_alphanumeric() {
            end(&mut word, &mut all);
        } else {
            if c.is_uppercase() && before.is_lowercase() {
                end(&mut word, &mut all);
            }
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    end(&mut word, &mut all);
    all
}

fn end(word: &mut String, all: &mut Vec<String>) {
    if !word.is_empty() {
        all.push(std::mem::take(word));
    }
}

/// FNV-1a over parts; the boundaries count.
pub(super) fn hash<'a>(parts: impl IntoIterator<Item = &'a str>) -> u64 {
    let mut state: u64 = 0xcbf2_9ce4_8422_2325;
    let mut step = |byte: u8| {
        state ^= u64::from(byte);
        state = state.wrapping_mul(0x0100_0000_01b3);
    };
    for part in parts {
        part.bytes().for_each(&mut step);
        step(0xff);
    }
    state
}

/// One number for a set of numbers, whatever their order.
pub(super) fn hash_set(mut all: Vec<u64>) -> u64 {
    all.sort_unstable();
    let texts: Vec<String> = all.iter().map(u64::to_string).collect();
    hash(texts.iter().map(String::as_str))
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

    #[test]
    fn spellings_of_one_name_are_one() {
        for name in ["read_file", "readFile", "read-file", "Read File"] {
            assert_eq!(words(name), ["read", "file"]);
        }
        assert_eq!(words("ContainerCreating 0 30s"), ["container", "creating", "0", "30s"]);
    }

    #[test]
    fn boundaries_and_order_count_where_they_should() {
        assert_ne!(hash(["ab", "c"]), hash(["a", "bc"]));
        assert_eq!(hash_set(vec![1, 2, 3]), hash_set(vec![3, 1, 2]));
    }
}

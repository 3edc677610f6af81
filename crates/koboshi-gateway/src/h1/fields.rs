//! The headers of a request, where they stood.
//!
//! A request has a dozen headers and is asked for as many. Looking through a list of places costs less than building a map, and needs two
//! pieces of memory in place of one for each header.

use std::ops::Range;

use bytes::Bytes;
use opentelemetry::propagation::Extractor;

/// The headers of one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields {
    text: Bytes,
    /// Name and value of each.
    places: Vec<(Range<u32>, Range<u32>)>,
}

impl Fields {
    /// The headers that stand at these places of a text.
    pub(super) fn at(text: Bytes, places: Vec<(Range<u32>, Range<u32>)>) -> Self {
        Self { text, places }
    }

    /// What stands first under this name, in any letter case.
    pub(crate) fn get(&self, name: impl AsRef<str>) -> Option<&[u8]> {
        let name = name.as_ref();
        let mut values = self.places.iter().filter(|(place, _)| self.is(place, name));
        values.next().and_then(|(_, value)| self.piece(value))
    }

    /// The same as text; what holds other than visible letters and spaces is none.
    pub(crate) fn text(&self, name: impl AsRef<str>) -> Option<&str> {
        let value = self.get(name)?;
        let is_plain = value.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
        std::str::from_utf8(value).ok().filter(|_| is_plain)
    }

    /// Whether there is something under this name.
    pub(crate) fn has(&self, name: impl AsRef<str>) -> bool {
        self.get(name).is_some()
    }

    /// Everything under this name, in order.
    pub(crate) fn all<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f [u8]> {
        let places = self.places.iter().filter(|(place, _)| self.is(place, name));
        places.filter_map(|(_, value)| self.piece(value))
    }

    fn is(&self, place: &Range<u32>, name: &str) -> bool {
        place.len() == name.len()
            && self.piece(place).is_some_and(|known| known.eq_ignore_ascii_case(name.as_bytes()))
    }

    fn piece(&self, place: &Range<u32>) -> Option<&[u8]> {
        self.text.get(usize::try_from(place.start).ok()?..usize::try_from(place.end).ok()?)
    }
}

impl Extractor for Fields {
    fn get(&self, key: &str) -> Option<&str> {
        self.text(key)
    }

    fn keys(&self) -> Vec<&str> {
        let names = self.places.iter().filter_map(|(name, _)| std::str::from_utf8(self.piece(name)?).ok());
        names.collect()
    }
}

#[cfg(test)]
impl Fields {
    /// These headers.
    pub(crate) fn of(pairs: &[(&str, &str)]) -> Self {
        let (mut text, mut places) = (Vec::new(), Vec::new());
        let mut put = |piece: &str| {
            let start = u32::try_from(text.len()).unwrap();
            text.extend_from_slice(piece.as_bytes());
            start..u32::try_from(text.len()).unwrap()
        };
        for (name, value) in pairs {
            places.push((put(name), put(value)));
        }
        Self { text: text.into(), places }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case_and_the_first_counts() {
        let fields = Fields::of(&[("Accept", "a"), ("X-Id", "1"), ("x-id", "2"), ("x-odd", "\u{e9}")]);
        assert_eq!(fields.text("x-id"), Some("1"));
        assert_eq!(fields.all("X-ID").count(), 2);
        assert_eq!(fields.text("x-odd"), None, "no plain text");
        assert!(fields.has("x-odd") && !fields.has("x-i") && !fields.has(""));
    }
}

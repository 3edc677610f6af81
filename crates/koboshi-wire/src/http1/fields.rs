//! The headers of a request or an answer, where they stood.
//!
//! A head has a dozen headers, and about as many are looked up. Looking through a list of places costs less than building a map, and needs two
//! pieces of memory in place of one for each header. Names are in small letters.

use std::ops::Range;

use bytes::Bytes;
use httparse::Header;

use super::heading::is_plain;

/// The headers of one head.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    text: Bytes,
    /// Name and value of each.
    places: Vec<(Range<u32>, Range<u32>)>,
}

impl Fields {
    /// These headers, which stand in this text.
    pub(super) fn found(text: &[u8], headers: &[Header<'_>]) -> Self {
        let place = |part: &[u8]| -> Range<u32> {
            let start = part.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
            // A head is not longer than 64 KiB.
            let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
            number(start)..number(start.wrapping_add(part.len()))
        };
        let places: Vec<_> =
            headers.iter().map(|header| (place(header.name.as_bytes()), place(header.value))).collect();
        let mut text = text.to_vec();
        for (name, _) in &places {
            let range = name.start as usize..name.end as usize;
            text.get_mut(range).unwrap_or_default().make_ascii_lowercase();
        }
        Self { text: text.into(), places }
    }

    /// These headers; names in small letters.
    #[must_use]
    pub fn of<'p>(pairs: impl IntoIterator<Item = (&'p str, &'p [u8])>) -> Self {
        let (mut text, mut places) = (Vec::new(), Vec::new());
        let mut put = |piece: &[u8]| {
            let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
            let start = number(text.len());
            text.extend_from_slice(piece);
            start..number(text.len())
        };
        for (name, value) in pairs {
            places.push((put(name.as_bytes()), put(value)));
        }
        Self { text: text.into(), places }
    }

    /// All that are plain text.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs_of(|_| true)
    }

    /// All, also those that are no plain text.
    pub fn every(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let pair = |(name, value): &(Range<u32>, Range<u32>)| {
            Some((std::str::from_utf8(self.piece(name)?).ok()?, self.piece(value)?))
        };
        self.places.iter().filter_map(pair)
    }

    /// Those with the wanted names. The others are not even read.
    pub fn pairs_of(&self, is: impl Fn(&[u8]) -> bool) -> impl Iterator<Item = (&str, &str)> {
        let pair = move |(name, value): &(Range<u32>, Range<u32>)| {
            let name = self.piece(name).filter(|name| is(name))?;
            Some((std::str::from_utf8(name).ok()?, plain(self.piece(value)?)?))
        };
        self.places.iter().filter_map(pair)
    }

    /// What stands first under this name, which is in small letters.
    pub fn get(&self, name: impl AsRef<str>) -> Option<&[u8]> {
        let name = name.as_ref();
        let mut values = self.places.iter().filter(|(place, _)| self.is(place, name));
        values.next().and_then(|(_, value)| self.piece(value))
    }

    /// The same as text; what holds other than visible letters and spaces is none.
    pub fn text(&self, name: impl AsRef<str>) -> Option<&str> {
        plain(self.get(name)?)
    }

    /// Whether there is something under this name.
    pub fn has(&self, name: impl AsRef<str>) -> bool {
        self.get(name).is_some()
    }

    /// Everything under this name, in order.
    pub fn all<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f [u8]> {
        let places = self.places.iter().filter(|(place, _)| self.is(place, name));
        places.filter_map(|(_, value)| self.piece(value))
    }

    fn is(&self, place: &Range<u32>, name: &str) -> bool {
        place.len() == name.len() && self.piece(place) == Some(name.as_bytes())
    }

    fn piece(&self, place: &Range<u32>) -> Option<&[u8]> {
        self.text.get(usize::try_from(place.start).ok()?..usize::try_from(place.end).ok()?)
    }
}

fn plain(value: &[u8]) -> Option<&str> {
    if is_plain(value) { std::str::from_utf8(value).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use crate::http1::head::Head;

    #[test]
    fn names_are_found_in_any_case_and_the_first_counts() {
        let text = b"GET / HTTP/1.1\r\nAccept: a\r\nX-Id: 1\r\nx-iD: 2\r\nx-odd: \xc3\xa9\r\n\r\n";
        let fields = Head::parse(text).unwrap().unwrap().0.fields;
        assert_eq!(fields.text("x-id"), Some("1"));
        assert_eq!(fields.all("x-id").count(), 2);
        assert_eq!(fields.pairs().map(|(name, _)| name).collect::<Vec<_>>(), ["accept", "x-id", "x-id"]);
        assert_eq!(
            fields.pairs_of(|name| name == b"x-id").collect::<Vec<_>>(),
            [("x-id", "1"), ("x-id", "2")]
        );
        assert_eq!(fields.text("x-odd"), None, "no plain text");
        assert!(fields.has("x-odd") && !fields.has("x-i") && !fields.has(""));
    }
}

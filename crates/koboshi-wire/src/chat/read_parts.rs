//! The parts of a chat message in the internal form.
//!
//! Data URLs are taken apart, because other dialects want media type and data by themselves. A part that has no place in the form is named, and
//! is needed: the model was asked about it.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::form::{Image, Media, Omission, Part, Thought};
use crate::lenient::text_of;
use crate::raw::{Raw, list};

/// The parts of a content: a text, or a list.
pub(super) fn read<'a>(content: &'a RawValue, at: &str, left: &mut Vec<Omission>) -> Vec<Part<'a>> {
    if let Some(text) = text_of(content) {
        return vec![Part::Text(text)];
    }
    let Some(all) = list(content) else {
        // No client library sends anything else, but compatible servers take it for its text.
        return vec![Part::Text(Cow::Borrowed(content.get()))];
    };
    let each = all.into_iter().enumerate();
    each.filter_map(|(index, raw)| part(raw, || format!("{at}[{index}]"), left)).collect()
}

fn part<'a>(raw: &'a RawValue, at: impl Fn() -> String, left: &mut Vec<Omission>) -> Option<Part<'a>> {
    if let Some(text) = text_of(raw) {
        return Some(Part::Text(text));
    }
    let found = Raw::of(raw).unwrap_or_default();
    let known = match found.text("type").as_deref() {
        None | Some("text" | "input_text" | "output_text") => found.text("text").map(Part::Text),
        Some("image_url" | "input_image") => return image(&found, at, left),
        Some("input_audio") => sound(&found).map(Part::Media),
        Some("file" | "input_file") => return file(&found, at, left),
        Some("refusal") => found.text("refusal").map(Part::Refusal),
        Some("thinking") => {
            thinking(&found).map(|text| Part::Thought(Thought { text, ..Thought::default() }))
        }
        _ => None,
    };
    if known.is_none() {
        left.push(Omission::needed("needs_part", at()));
    }
    known
}

fn image<'a>(found: &Raw<'a>, at: impl Fn() -> String, left: &mut Vec<Omission>) -> Option<Part<'a>> {
    let inside = found.object("image_url");
    let url = inside.as_ref().map_or_else(|| found.full("image_url"), |inside| inside.full("url"));
    let detail = inside.as_ref().unwrap_or(found).full("detail");
    if detail.is_some_and(|detail| detail != "auto") {
        left.push(Omission::dropped("drop_image_detail", at()));
    }
    let url = url.or_else(|| {
        left.push(Omission::needed("needs_part", at()));
        None
    })?;
    if !is_data(&url) {
        return Some(Part::Image(Image::Url(url)));
    }
    match data_url(&url) {
        Some((media_type, data)) => Some(Part::Image(Image::Data { media_type, data })),
        None => {
            left.push(Omission::needed("needs_data_url", at()));
            None
        }
    }
}

fn sound<'a>(found: &Raw<'a>) -> Option<Media<'a>> {
    let sound = found.object("input_audio")?;
    let media_type = match sound.full("format")?.as_ref() {
        "mp3" => Cow::Borrowed("audio/mpeg"),
        other => Cow::Owned(format!("audio/{other}")),
    };
    Some(Media { media_type, data: sound.text("data")?, name: None })
}

fn file<'a>(found: &Raw<'a>, at: impl Fn() -> String, left: &mut Vec<Omission>) -> Option<Part<'a>> {
    let inside = found.object("file");
    let file = inside.as_ref().unwrap_or(found);
    let Some(data) = file.full("file_data") else {
        // Only its provider has the file.
        let rule = if file.get("file_id").is_some() { "needs_stored_file" } else { "needs_part" };
        left.push(Omission::needed(rule, at()));
        return None;
    };
    let name = file.full("filename");
    let media = if is_data(&data) {
        data_url(&data).map(|(media_type, data)| Media { media_type, data, name: name.clone() })
    } else {
        // Bare base64 is taken too; then the file name must show what it is.
        let pdf = name.as_deref().is_none_or(|name| name.to_ascii_lowercase().ends_with(".pdf"));
        let media_type = if pdf { "application/pdf" } else { "application/octet-stream" };
        Some(Media { media_type: media_type.into(), data, name: name.clone() })
    };
    if media.is_none() {
        left.push(Omission::needed("needs_data_url", at()));
    }
    media.map(Part::Media)
}

/// Mistral's reasoning models think in a part.
fn thinking<'a>(found: &Raw<'a>) -> Option<Cow<'a, str>> {
    let raw = found.get("thinking")?;
    text_of(raw).or_else(|| {
        let texts = list(raw)?.into_iter().filter_map(|raw| Raw::of(raw)?.text("text"));
        Some(Cow::Owned(texts.collect::<String>()))
    })
}

fn is_data(url: &str) -> bool {
    url.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data:"))
}

/// Media type and base64 text of a data URL.
fn data_url<'a>(url: &Cow<'a, str>) -> Option<(Cow<'a, str>, Cow<'a, str>)> {
    let comma = url.find(',')?;
    let (head, _) = url.split_at(comma);
    let head = head.get(5..)?;
    let length = head.strip_suffix(";base64").map(|head| head.find(';').unwrap_or(head.len()))?;
    let media_type = if length == 0 { None } else { Some(5..5 + length) };
    let part = |range: std::ops::Range<usize>| match url {
        Cow::Borrowed(url) => url.get(range).map(Cow::Borrowed),
        Cow::Owned(url) => url.get(range).map(|text| Cow::Owned(text.to_owned())),
    };
    let data = part(comma + 1..url.len())?;
    Some((media_type.map_or(Some(Cow::Borrowed("application/octet-stream")), part)?, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_urls_are_taken_apart() {
        let apart = |url: &'static str| {
            data_url(&url.into()).map(|(kind, data)| (kind.into_owned(), data.into_owned()))
        };
        let two = |kind: &str, data: &str| Some((kind.to_owned(), data.to_owned()));
        assert_eq!(apart("data:image/png;base64,AA=="), two("image/png", "AA=="));
        assert_eq!(apart("DATA:image/png;name=a.png;base64,AA"), two("image/png", "AA"));
        assert_eq!(apart("data:;base64,"), two("application/octet-stream", ""));
        for url in ["data:", "data:image/png,AA", "data:,", "data:text/plain;base64"] {
            assert_eq!(apart(url), None, "{url}");
        }
        assert!(!is_data("dat") && !is_data("https://a") && !is_data("日本"));
    }
}

//! A web page where an answer should be: its words, its title, and the status that it names.
//!
//! A gateway in front of a provider answers with pages of its own. Their title says what failed, also where the status is not known or
//! is a 200. Only the title is asked: further down a page may speak of anything.

use std::ops::Range;

use super::error::status_in_text;

/// How much of a page is read.
const MAX_PAGE: usize = 8 * 1024;
/// Longer titles are no statement of a status.
const MAX_TITLE: usize = 200;

/// The words of a web page: its title and its first visible text, without scripts and styles.
pub(super) fn page_words(page: &str) -> String {
    let page = page.get(..page.floor_char_boundary(MAX_PAGE)).unwrap_or(page);
    let mut words = String::new();
    let mut rest = page;
    while let Some(open) = rest.find('<') {
        words.push_str(rest.get(..open).unwrap_or_default());
        words.push(' ');
        let tag = rest.get(open..).unwrap_or_default();
        let hidden = ["script", "style"]
            .iter()
            .find(|name| tag.get(1..1 + name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name)));
        let end = match hidden {
            Some(name) => tag.find(&format!("</{name}")).map_or(tag.len(), |at| at + 2),
            None => tag.find('>').map_or(tag.len(), |at| at + 1),
        };
        rest = tag.get(end..).unwrap_or_default();
    }
    words.push_str(rest);
    words
}

/// Where the title of a page stands, without the blanks around it.
pub(super) fn title(page: &str) -> Option<Range<usize>> {
    let head = page.get(..page.floor_char_boundary(MAX_PAGE)).unwrap_or(page);
    let lower = head.to_ascii_lowercase();
    let open = lower.find("<title")?;
    let start = open + lower.get(open..)?.find('>')? + 1;
    let end = start + lower.get(start..)?.find("</title")?;
    let title = head.get(start..end)?;
    let start = start + (title.len() - title.trim_start().len());
    Some(start..start + title.trim().len())
}

/// The status that a page names in its title: `502 Bad Gateway`, `api.example.com | 520: Web server is …`, `Error 502 (Server Error)`.
pub(super) fn status_of_page(page: &str) -> Option<u16> {
    let title = page.get(title(page)?).filter(|title| title.len() <= MAX_TITLE)?;
    title.split('|').find_map(|part| status_in_text(part.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_states_a_status_or_none() {
        for (title, status) in [
            ("502 Bad Gateway", Some(502)),
            (" \n504 Gateway Time-out ", Some(504)),
            ("api.example.com | 520: Web server is returning an unknown error", Some(520)),
            ("Error 502 (Server Error)!!1", Some(502)),
            ("Welcome", None),
            ("Room 502", None),
            ("", None),
        ] {
            let page = format!("<html><head><TITLE lang=\"en\">{title}</TITLE></head>404 Not Found</html>");
            assert_eq!(status_of_page(&page), status, "{title}");
        }
        for page in ["<html>502 Bad Gateway</html>", "<title>502 Bad Gateway", "<title"] {
            assert_eq!(status_of_page(page), None, "{page}");
        }
    }
}

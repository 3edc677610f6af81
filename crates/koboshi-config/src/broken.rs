//! YAML that cannot be read: what the library says of it, and what that most often means.

use crate::check::{Problem, Source};
use crate::mask::in_broken;
use crate::tree;

/// What the library says of broken YAML, what that most often means, and what to do.
const BROKEN: &[(&str, &str, &str)] = &[
    ("tab", "a tab is used as indentation", "YAML is indented with spaces: replace the tab"),
    (
        "did not find expected key",
        "the indentation does not fit the lines above",
        "keys of one section begin in the same column; a quote that is not closed above does this too",
    ),
    (
        "indentation",
        "the indentation does not fit, or a quote above is not closed",
        "close the quote, or begin the keys of one section in the same column",
    ),
    (
        "mapping values are not allowed",
        "a second `: ` in one line",
        "put a value that holds `: ` in quotes, or the second key in a line of its own",
    ),
    (
        "while parsing a flow",
        "a comma or a closing bracket is missing, or a text with `{` or `[` stands in brackets without quotes",
        "put it in quotes, as in `[\"openai/{model}\", \"${NAME}\"]`, or write one `- part` in each line",
    ),
    ("unclosed", "a bracket or quote is not closed", "close it, or put the whole value in quotes"),
    (
        "multiple yaml documents", "a second document begins here",
        "one file holds one config: take the `---` line above out",
    ),
    ("unexpected character", "a character that cannot begin a value", "put the value in quotes"),
    (
        "unknown anchor", "an alias (`*name`) without its anchor (`&name`)",
        "put a value that begins with `*` in quotes",
    ),
    ("budget", TOO_MUCH, "is this the right file?"),
    ("limit", TOO_MUCH, "is this the right file?"),
];
const TOO_MUCH: &str = "too deep, too many values or too many aliases for a config";

pub(crate) fn broken_yaml(source: &Source<'_>, broken: &tree::Broken) -> Problem {
    let said = broken.message.to_lowercase();
    let (message, hint) = match BROKEN.iter().find(|(part, _, _)| said.contains(part)) {
        Some((_, message, hint)) => ((*message).to_owned(), *hint),
        None => (
            format!("this is not YAML: {}", crate::check::printable(&broken.message)),
            "quotes, brackets and indentation are what most often goes wrong",
        ),
    };
    match broken.spot {
        Some(spot) => {
            let hide = in_broken(source.text, spot.line);
            source.problem(spot, "", message, Some(hint.to_owned()), hide)
        }
        None => Problem::of_file(source.name, message, Some(hint.to_owned())),
    }
}

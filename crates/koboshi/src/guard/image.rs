//! Images in answers of tools: the guard compares them by hash, never by what they show.
//!
//! A tool that answers with a screenshot answers with another one each time the page has moved. A reader of a dialect puts
//! [`image_mark`] into the output of the call in place of each image or file, so that the answer is another one too.

use super::mix;

/// What stands for an image or a file in the output of a call. Equal data has an equal mark, on every machine.
#[must_use]
pub fn image_mark(data: &str) -> String {
    format!("[image {:016x}]", mix::hash([data]))
}

#[cfg(test)]
mod tests {
    use super::image_mark;

    #[test]
    fn other_data_has_another_mark() {
        assert_eq!(image_mark("iVBORw0KGgo"), image_mark("iVBORw0KGgo"));
        assert_ne!(image_mark("iVBORw0KGgo"), image_mark("iVBORw0KGgp"));
    }
}

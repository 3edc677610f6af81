//! Fits a form to what is known of its target, before any dialect has a say: what every server refuses of a model that cannot do it.
//!
//! Each change that a client could miss has a name in [`Form::left`].
//!
//! *Not here*: what a dialect cannot say or a vendor refuses. The writer of the dialect knows that.

use super::edit::To;
use crate::form::{Form, Left, Thinking};

/// Fits it.
pub(super) fn fit(form: &mut Form<'_>, to: To) {
    if !to.thinks {
        // A model that does not think refuses to be told how.
        let asked = std::mem::take(&mut form.thinking);
        if !matches!(asked, Thinking::Unsaid | Thinking::Off | Thinking::Budget(0)) {
            form.left.push(Left::dropped("drop_thinking", "thinking"));
        }
    }
    if let (Some(wished), Some(most)) = (form.max_output, to.output)
        && wished > most
    {
        form.max_output = Some(most);
        form.left.push(Left::dropped("clamp_max_output", "max_output"));
    }
}

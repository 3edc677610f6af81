//! Fits a form to what is known of its target, before any dialect writes it: leaves out what every server refuses for a
//! model that cannot do it.
//!
//! Each change that a client could miss has a name in [`Form::left`].
//!
//! *Not here*: what a dialect cannot express or a vendor refuses. The writer of the dialect knows that.

use super::edit::TargetTraits;
use crate::dialect::Dialect;
use crate::form::{Form, Omission, Thinking};

/// Fits what a client of this dialect asks.
pub(super) fn fit(form: &mut Form<'_>, from: Dialect, to: TargetTraits) {
    if to.facts.reasoning != Some(true) {
        // A model that does not think refuses parameters about thinking.
        let asked = std::mem::take(&mut form.thinking);
        if !matches!(asked, Thinking::Unspecified | Thinking::Off | Thinking::Budget(0)) {
            form.left.push(Omission::dropped("drop_thinking", "thinking"));
        }
    }
    if let (Some(wished), Some(max)) = (form.max_output, to.facts.max_output_tokens)
        && wished > max
    {
        form.max_output = Some(max);
        form.left.push(Omission::dropped("clamp_max_output", "max_output"));
    }
    if !is_one_vendor(from, to.dialect) {
        loosen(form);
    }
}

/// To be followed to the letter a schema must be as its vendor wants it, and another vendor refuses it. Arguments are checked on their way
/// back anyway.
fn loosen(form: &mut Form<'_>) {
    for (index, tool) in form.tools.iter_mut().enumerate() {
        if tool.strict.take() == Some(true) {
            form.left.push(Omission::dropped("drop_strict", format!("tools[{index}].strict")));
        }
    }
}

/// Whether both have the same rules for schemas.
const fn is_one_vendor(one: Dialect, other: Dialect) -> bool {
    const fn vendor(dialect: Dialect) -> u8 {
        match dialect {
            Dialect::Chat | Dialect::Responses => 0,
            Dialect::Messages => 1,
            Dialect::Gemini => 2,
        }
    }
    vendor(one) == vendor(other)
}

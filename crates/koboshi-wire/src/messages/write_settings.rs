//! The thinking field, and what cannot stand beside it.
//!
//! The vendor refuses thinking beside a tool that must be called and beside an answer that is to be continued. By budget it also cannot begin between calls
//! and their results, because the vendor wants the thought before those calls back; a conversation that comes from another vendor has none.

use serde::Serialize;

use super::body::DEFAULT_MAX_TOKENS;
use super::model::{self, Model};
use super::write_parts::{Block, Message, Role};
use crate::form::{self, Choice, Form, Omission};
use koboshi::models::Thinking as Way;

/// The field.
#[derive(Debug, Serialize, Clone, Copy)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Thinking {
    Disabled,
    Enabled { budget_tokens: u64 },
    Adaptive,
}

/// How the model is to think.
#[derive(Debug, Default)]
pub(super) struct Thought {
    pub(super) thinking: Option<Thinking>,
    pub(super) effort: Option<&'static str>,
    pub(super) max_tokens: Option<u64>,
    /// The limit that is used where none is stated, and the model's own where it is known.
    default_limits: (u64, Option<u64>),
}

impl Thought {
    /// What the form wishes, as far as the model and the conversation allow it.
    pub(super) fn of(
        form: &Form<'_>,
        model: Model,
        messages: &[Message<'_>],
        default_limits: (u64, Option<u64>),
        left: &mut Vec<Omission>,
    ) -> Self {
        let mut thought = Self { max_tokens: form.max_output, default_limits, ..Self::default() };
        thought.choose(form, model, messages, left);
        thought
    }

    fn choose(&mut self, form: &Form<'_>, model: Model, messages: &[Message<'_>], left: &mut Vec<Omission>) {
        let wish = match form.thinking {
            form::Thinking::Unspecified => return,
            form::Thinking::Off | form::Thinking::Budget(0) => {
                if model.thinking() != Way::None {
                    self.thinking = Some(Thinking::Disabled);
                }
                return;
            }
            wish => wish,
        };
        let forced = matches!(form.choice, Choice::Any | Choice::Tool(_)) && !form.tools.is_empty();
        let ends_with_answer = messages.last().is_some_and(|last| last.role == Role::Assistant);
        let by_budget = match model.thinking() {
            Way::Budget => true,
            Way::Both => matches!(wish, form::Thinking::Budget(_)),
            _ => false,
        };
        let refused = match () {
            () if model.thinking() == Way::None => Some("drop_thinking"),
            () if forced => Some("drop_thinking_for_forced_tool"),
            () if ends_with_answer => Some("drop_thinking_for_prefill"),
            () if by_budget && lacks_thought(messages) => Some("drop_thinking_in_tool_loop"),
            () => None,
        };
        if let Some(rule) = refused {
            left.push(Omission::dropped(rule, "thinking"));
        } else if by_budget {
            self.by_budget(wish, left);
        } else {
            self.as_it_likes(wish, left);
        }
    }

    /// With a budget, which must be at least 1024 and less than what may come back.
    fn by_budget(&mut self, wish: form::Thinking, left: &mut Vec<Omission>) {
        let wished = match wish {
            form::Thinking::Budget(budget) => budget,
            form::Thinking::Effort(effort) => model::budget_of(effort),
            _ => model::budget_of(form::Effort::Medium),
        };
        let mut budget = wished.max(model::MIN_BUDGET);
        if budget != wished {
            left.push(Omission::dropped("raise_thinking_budget", "thinking"));
        }
        let (default_limit, own) = self.default_limits;
        let with_room =
            || budget.saturating_add(DEFAULT_MAX_TOKENS).max(default_limit).min(own.unwrap_or(u64::MAX));
        let max = *self.max_tokens.get_or_insert_with(with_room);
        if max <= model::MIN_BUDGET {
            return left.push(Omission::dropped("drop_thinking_below_limit", "thinking"));
        }
        if budget >= max {
            budget = max - 1;
            left.push(Omission::dropped("lower_thinking_budget", "thinking"));
        }
        self.thinking = Some(Thinking::Enabled { budget_tokens: budget });
    }

    fn as_it_likes(&mut self, wish: form::Thinking, left: &mut Vec<Omission>) {
        self.thinking = Some(Thinking::Adaptive);
        self.effort = match wish {
            form::Thinking::Effort(effort) => {
                if effort == form::Effort::Minimal {
                    left.push(Omission::dropped("nearest_effort", "thinking"));
                }
                Some(model::word_of(effort))
            }
            form::Thinking::Budget(budget) => {
                left.push(Omission::dropped("nearest_effort", "thinking"));
                Some(model::word_of(model::effort_of(budget)))
            }
            _ => None,
        };
    }
}

/// Whether the model waits for results of calls that it made without a thought of its own before them: thinking by budget cannot begin there.
fn lacks_thought(messages: &[Message<'_>]) -> bool {
    let [.., answer, last] = messages else { return false };
    let in_loop = matches!(last.content.first(), Some(Block::ToolResult { .. }));
    in_loop && !answer.content.first().is_some_and(Block::is_thought)
}

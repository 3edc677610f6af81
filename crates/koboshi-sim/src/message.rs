//! A conversation in one form, whichever dialect it came in.

use std::borrow::Cow;

use koboshi_wire::form::{self, Call, Outcome, Part, Turn};

/// The role of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    System,
    User,
    Assistant,
    Tool,
}

impl Role {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    /// What stands between two texts of one entry, where a dialect has room for one text only.
    const fn between(self) -> &'static str {
        match self {
            Self::System | Self::Assistant => "\n\n",
            Self::User => "",
            Self::Tool => "\n",
        }
    }
}

/// The texts of one role until another follows, or one result of a tool.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    pub(crate) role: Role,
    /// Its texts; none is blank.
    pub(crate) texts: Vec<Cow<'a, str>>,
    pub(crate) calls: Vec<Call<'a>>,
    /// Images, audio and files.
    pub(crate) pictures: usize,
    /// The tool that it is the result of, where that is known.
    pub(crate) name: Option<Cow<'a, str>>,
}

impl<'a> Message<'a> {
    fn of(role: Role) -> Self {
        Self { role, texts: Vec::new(), calls: Vec::new(), pictures: 0, name: None }
    }

    fn result(outcome: Outcome<'a>) -> Self {
        let texts = outcome.parts.into_iter().filter_map(|part| match part {
            Part::Text(text) if !is_blank(&text) => Some(text),
            _ => None,
        });
        let texts = texts.collect();
        Self { texts, name: outcome.name, ..Self::of(Role::Tool) }
    }

    /// All texts as one.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        let text = match self.texts.as_slice() {
            [] => Cow::Borrowed(""),
            [one] => Cow::Borrowed(&**one),
            all => Cow::Owned(all.join(self.role.between())),
        };
        match text {
            // An object may be carried as such, and then nothing stands around it.
            Cow::Borrowed(text) if self.role == Role::Tool && text.starts_with('{') => {
                Cow::Borrowed(text.trim_end())
            }
            text => text,
        }
    }
}

/// The entries of a conversation.
pub(crate) fn messages<'a>(system: Vec<Cow<'a, str>>, turns: Vec<Turn<'a>>) -> Vec<Message<'a>> {
    let mut all: Vec<Message<'a>> = Vec::with_capacity(turns.len() + 1);
    let system: Vec<_> = system.into_iter().filter(|text| !is_blank(text)).collect();
    if !system.is_empty() {
        all.push(Message { texts: system, ..Message::of(Role::System) });
    }
    for turn in turns {
        // A system text in the middle goes to the user's side where a dialect has no such role.
        let role = if turn.role == form::Role::Assistant { Role::Assistant } else { Role::User };
        for part in turn.parts {
            take(&mut all, role, part);
        }
    }
    without_stray_pictures(all)
}

fn take<'a>(all: &mut Vec<Message<'a>>, role: Role, part: Part<'a>) {
    let is_heard = match &part {
        Part::Text(text) | Part::Refusal(text) => !is_blank(text),
        Part::Call(_) => role == Role::Assistant,
        Part::Image(_) | Part::Media(_) => role == Role::User,
        Part::Outcome(_) => true,
        Part::Thought(_) => false,
    };
    if !is_heard {
        return;
    }
    if let Part::Outcome(outcome) = part {
        let at = place_of_result(all);
        return all.insert(at, Message::result(outcome));
    }
    if all.last().is_none_or(|message| message.role != role) {
        all.push(Message::of(role));
    }
    let Some(message) = all.last_mut() else { return };
    match part {
        Part::Text(text) | Part::Refusal(text) => message.texts.push(text),
        Part::Call(call) => message.calls.push(call),
        _ => message.pictures += 1,
    }
}

/// A result stands before the user's own text beside it.
fn place_of_result(all: &[Message<'_>]) -> usize {
    match all {
        [.., before, last]
            if last.role == Role::User && matches!(before.role, Role::Tool | Role::Assistant) =>
        {
            all.len() - 1
        }
        _ => all.len(),
    }
}

/// Images alone after results belong to the results: some dialects cannot put them there. They are no question of the user.
fn without_stray_pictures(mut all: Vec<Message<'_>>) -> Vec<Message<'_>> {
    let mut before = None;
    all.retain(|message| {
        let is_stray = message.role == Role::User && message.texts.is_empty() && before == Some(Role::Tool);
        before = Some(message.role);
        !is_stray
    });
    all
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

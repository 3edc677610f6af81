//! Methods that the request and the rewrite of several dialects have in common, word for word.

/// What a request of a dialect says by its form, which is made while it is read.
macro_rules! asked_by_form {
    ($request:ident) => {
        impl<'a> $request<'a> {
            /// The request in no dialect.
            #[must_use]
            pub fn form(&self) -> &$crate::form::Form<'a> {
                &self.form
            }

            /// The model that is asked for.
            #[must_use]
            pub fn model(&self) -> &str {
                &self.form.model
            }

            /// Whether the answer is to be a stream.
            #[must_use]
            pub fn stream(&self) -> bool {
                self.form.stream
            }
        }
    };
}

/// The changes that the rewrites of chat and messages note in the same way.
macro_rules! rewrites {
    ($rewrite:ident) => {
        impl $rewrite<'_> {
            /// Asks for this model.
            pub fn model(&mut self, name: &str) -> &mut Self {
                self.model = Some(name.to_owned());
                self
            }

            /// Asks for a stream or for a whole answer.
            pub fn stream(&mut self, stream: bool) -> &mut Self {
                self.stream = Some(stream);
                self
            }

            /// Adds a paragraph to the last result of a tool, where the model reads next. Without a result nothing is added.
            pub fn append_to_last_tool_result(&mut self, text: &str) -> &mut Self {
                self.notes.push(text.to_owned());
                self
            }
        }
    };
}

pub(crate) use {asked_by_form, rewrites};

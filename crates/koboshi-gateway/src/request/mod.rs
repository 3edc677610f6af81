//! Serves admitted requests, from the body to the last byte: a generation, a token count, an embedding.

pub(crate) mod body;
pub(crate) mod count;
pub(crate) mod embeddings;
pub(crate) mod generate;
pub(crate) mod guard;
pub(crate) mod spend;

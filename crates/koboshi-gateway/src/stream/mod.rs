//! An answer on its way to the client: streamed or whole, cut and resumed, its tool calls checked.

pub(crate) mod answer;
pub(crate) mod blocks;
pub(crate) mod firewall;
pub(crate) mod follow;
pub(crate) mod forbidden;
pub(crate) mod hold;
pub(crate) mod passing;
pub(crate) mod relay;
pub(crate) mod rest;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod unary;
pub(crate) mod voice;

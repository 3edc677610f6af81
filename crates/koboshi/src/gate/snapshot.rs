//! What a gate looks like from outside, for a status page. Nothing is restored from it: what is shared and stored
//! are the [`Holds`] alone.

use std::time::Duration;

use serde::Serialize;

use super::{Holds, Limit};

/// What is left of one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Level {
    /// Of which limit.
    pub limit: Limit,
    /// What may still be reserved; below zero is a debt.
    pub left: i64,
    /// What there is when it is full, if it is known.
    pub max: Option<u64>,
}

/// A gate at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GateSnapshot {
    /// The stated holds, ended ones too.
    pub holds: Holds,
    /// What closes it now.
    pub held_by: Option<Limit>,
    /// For how long, if that is known.
    pub opens_in: Option<Duration>,
    /// What was learned and is still believed.
    pub levels: Vec<Level>,
    /// Reservations that are not settled.
    pub in_flight: u32,
    /// Callers that wait.
    pub waiting: usize,
    /// Events that were not drained in time.
    pub lost_events: u64,
}

//! The time of the server, which all nodes of a fleet go by.
//!
//! Nodes compare wall times: the end of a rest, the last report of a gateway. Their own clocks may differ, the server's is one. A server that
//! does not say the time changes nothing.

use jiff::{SignedDuration, Timestamp};
use redis::{Connection, RedisResult};

use crate::clock::{follow_store, machine_wall};

/// Asks the server for the time, and lets this process go by it.
pub(super) fn follow(connection: &mut Connection) -> RedisResult<()> {
    let before = machine_wall();
    let (seconds, micros): (i64, i64) = redis::cmd("TIME").query(connection)?;
    let after = machine_wall();
    let store = Timestamp::from_second(seconds)
        .and_then(|time| time.checked_add(SignedDuration::from_micros(micros)));
    if let Ok(store) = store {
        follow_store(before, store, after);
    }
    Ok(())
}

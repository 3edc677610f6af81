//! Whether a client is still there: when it is pinged, and how long it may be silent.
//!
//! Silence is counted from the last byte that came, not in pings: a client whose network is gone behind its last pong would else be kept for
//! most of another ping's time.

use std::time::Duration;

use tokio::time::Instant;

/// A client may be silent for this many heartbeats.
const SILENCE: f64 = 2.25;

/// What is to be done when the time of [`Pulse::next`] has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beat {
    Ping,
    /// The client was silent for too long.
    Gone,
    /// A heartbeat that became longer meanwhile: nothing yet.
    Rest,
}

/// The signs of life of one client.
pub(super) struct Pulse {
    heard: Instant,
    pinged: Instant,
}

impl Pulse {
    pub(super) fn new(now: Instant) -> Self {
        Self { heard: now, pinged: now }
    }

    /// Something came.
    pub(super) fn hear(&mut self, now: Instant) {
        self.heard = now;
    }

    /// When there is something to do next.
    pub(super) fn next(&self, heartbeat: Duration) -> Instant {
        (self.pinged + heartbeat).min(self.heard + heartbeat.mul_f64(SILENCE))
    }

    /// What is to be done now.
    pub(super) fn beat(&mut self, heartbeat: Duration, now: Instant) -> Beat {
        if now >= self.heard + heartbeat.mul_f64(SILENCE) {
            return Beat::Gone;
        }
        if now < self.pinged + heartbeat {
            return Beat::Rest;
        }
        self.pinged = now;
        Beat::Ping
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEARTBEAT: Duration = Duration::from_secs(20);

    /// How long after its last sign of life a client is let go that answers this many pings, each this long after it was sent.
    fn silence(answered: u32, delay: Duration) -> Duration {
        let mut now = Instant::now();
        let (mut pulse, mut heard, mut left) = (Pulse::new(now), now, answered);
        loop {
            now = pulse.next(HEARTBEAT);
            match pulse.beat(HEARTBEAT, now) {
                Beat::Gone => return now - heard,
                Beat::Ping if left > 0 => {
                    left -= 1;
                    heard = now + delay;
                    pulse.hear(heard);
                }
                Beat::Ping | Beat::Rest => {}
            }
        }
    }

    #[test]
    fn a_silent_client_is_let_go_after_45_s_whichever_ping_it_answered_last() {
        for answered in [0, 1, 2, 50] {
            for delay in [Duration::ZERO, Duration::from_millis(1), Duration::from_secs(19)] {
                assert_eq!(silence(answered, delay), Duration::from_secs(45), "{answered}, {delay:?}");
            }
        }
    }
}

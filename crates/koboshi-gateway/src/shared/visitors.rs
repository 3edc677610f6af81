//! People who are signed in at the dashboard: sessions in memory, each with a token that every change must carry.
//!
//! A session's cookie is a random number and never the key. It is bounded in number and in time, ends when the admin key changes, and is gone
//! with the process: a person signs in again after a restart. Here are only hashes of the cookies.

use std::collections::VecDeque;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use koboshi::time::Moment;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// How many sessions there may be; the oldest ends for a new one.
const MAX_SESSIONS: usize = 32;
/// How long a session lasts.
pub(crate) const MAX_AGE: Duration = Duration::from_secs(12 * 60 * 60);
/// Longer cookies and tokens are refused unread.
const MAX_SECRET: usize = 100;

type Hash = [u8; 32];

/// Sessions of the dashboard.
#[derive(Default)]
pub(crate) struct Visitors {
    sessions: Mutex<VecDeque<VisitorSession>>,
    /// The token of pages that need no session: those of this machine, where no key is set.
    local: OnceLock<Option<String>>,
}

struct VisitorSession {
    cookie: Hash,
    /// What a change must carry.
    token: String,
    /// The hash of the admin key that it was begun with.
    key: String,
    ends: Moment,
}

/// What a new session consists of.
pub(crate) struct NewSession {
    pub(crate) cookie: String,
    pub(crate) token: String,
}

impl Visitors {
    /// Begins a session; none where the machine has no randomness.
    pub(crate) fn begin(&self, key: &str, now: Moment) -> Option<NewSession> {
        let (cookie, token) = (random()?, random()?);
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| session.ends > now);
        while sessions.len() >= MAX_SESSIONS {
            sessions.pop_front();
        }
        sessions.push_back(VisitorSession {
            cookie: hash(&cookie),
            token: token.clone(),
            key: key.to_owned(),
            ends: now.after(MAX_AGE),
        });
        Some(NewSession { cookie, token })
    }

    /// The token of the session that has this cookie, if it was begun with this key and has not ended.
    pub(crate) fn token(&self, cookie: &str, key: &str, now: Moment) -> Option<String> {
        if cookie.len() > MAX_SECRET {
            return None;
        }
        let wanted = hash(cookie);
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let live = sessions.iter().filter(|session| session.ends > now && session.key == key);
        live.fold(None, |found, session| {
            if bool::from(session.cookie.ct_eq(&wanted)) { Some(session.token.clone()) } else { found }
        })
    }

    /// Ends the session that has this cookie.
    pub(crate) fn end(&self, cookie: &str) {
        let wanted = hash(cookie);
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| !bool::from(session.cookie.ct_eq(&wanted)));
    }

    /// The token of pages without a session.
    pub(crate) fn local_token(&self) -> Option<&str> {
        self.local.get_or_init(random).as_deref()
    }
}

/// Whether a change carries the right token.
pub(crate) fn is_token(known: &str, given: &str) -> bool {
    given.len() <= MAX_SECRET && bool::from(hash(known).ct_eq(&hash(given)))
}

fn hash(text: &str) -> Hash {
    Sha256::digest(text.as_bytes()).into()
}

fn random() -> Option<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::default().after(Duration::from_secs(seconds))
    }

    #[test]
    fn a_session_ends_with_its_time_its_key_and_its_sign_out() {
        let visitors = Visitors::default();
        let session = visitors.begin("key", at(0)).unwrap();
        assert_eq!(visitors.token(&session.cookie, "key", at(1)), Some(session.token.clone()));
        assert_ne!(session.cookie, session.token);
        assert_eq!(visitors.token(&session.cookie, "another key", at(1)), None);
        assert_eq!(visitors.token("made up", "key", at(1)), None);
        assert_eq!(visitors.token(&session.cookie, "key", at(MAX_AGE.as_secs())), None);
        visitors.end(&session.cookie);
        assert_eq!(visitors.token(&session.cookie, "key", at(1)), None);
    }

    #[test]
    fn sessions_are_bounded_and_the_oldest_goes_first() {
        let visitors = Visitors::default();
        let all: Vec<_> =
            (0..=MAX_SESSIONS).map(|n| visitors.begin("key", at(n as u64)).unwrap().cookie).collect();
        let live = all.iter().filter(|cookie| visitors.token(cookie, "key", at(100)).is_some()).count();
        assert_eq!(live, MAX_SESSIONS);
        assert_eq!(visitors.token(&all[0], "key", at(100)), None);
    }

    #[test]
    fn a_token_is_compared_whole() {
        assert!(is_token("abc", "abc"));
        assert!(!is_token("abc", "ab") && !is_token("abc", "") && !is_token("abc", &"a".repeat(1000)));
    }
}

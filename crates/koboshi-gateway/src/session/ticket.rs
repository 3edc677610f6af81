//! Secrets of sessions: ids, tickets and resume tokens. The store has their hashes only.
//!
//! A ticket is for one use: of several processes that take the same one, the one that deletes it has it. A resume token is renewed at every
//! attach; the one before stays valid until the new one is used, because the answer that carries the new one may be lost on the wire. So a
//! token that was copied is worth nothing once its owner has come back twice.
//!
//! A tab that is duplicated has its first one's token: while the connection of that one lasts, each of them gets tokens of its own from then on, and
//! neither ends those of the other.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use koboshi_store::{Store, StoreError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Resume tokens of one session; the oldest go first of those whose connections were dropped.
const MAX_TOKENS: usize = 32;
/// And of those whose connections last, as far as is known: a gateway that was killed has not said what became of its own.
const MAX_HELD_TOKENS: usize = 256;
/// A resume token stands in for a ticket for this long after its connection was dropped.
const RESUME_TIME: Duration = Duration::from_secs(600);
/// Gateways that change the tokens of one session at the same time: so often each of them tries again.
const MAX_SWAPS: usize = 20;
/// The longest secret that is looked at.
const MAX_SECRET: usize = 200;

/// Random bytes as text; none where the machine has no randomness, and then nothing secret may be made.
pub(crate) fn random<const N: usize>() -> Option<String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

fn hash(secret: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(secret.as_bytes()))
}

/// What a ticket allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ticket {
    pub(crate) tenant: String,
    /// The session that it is for; none is for a new one.
    #[serde(default)]
    pub(crate) session: Option<String>,
    #[serde(flatten)]
    pub(crate) grant: Grant,
}

/// What a client may do. It is kept beside the resume tokens that follow from a ticket, so that coming back widens nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grant {
    /// The page that may use it; none allows all.
    #[serde(default)]
    pub(crate) origin: Option<String>,
    /// The routes that may be asked; none allows all.
    #[serde(default)]
    pub(crate) routes: Option<Vec<String>>,
    /// The gateway's key that it follows from, by its name, where keys are needed: its limits hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
}

impl Grant {
    /// Whether it may be used on a connection from there.
    pub(crate) fn is_for(&self, origin: Option<&str>) -> bool {
        self.origin.is_none() || self.origin.as_deref() == origin
    }

    /// Whether this route may be asked.
    pub(crate) fn allows(&self, route: Option<&str>) -> bool {
        let Some(allowed) = &self.routes else { return true };
        route.is_some_and(|route| allowed.iter().any(|one| one == route))
    }
}

impl Ticket {
    /// Makes a ticket; none where the machine has no randomness.
    pub(crate) fn issue(
        &self,
        store: &dyn Store,
        ttl: Duration,
        now: Timestamp,
    ) -> Result<Option<String>, StoreError> {
        let Some(secret) = random::<32>() else { return Ok(None) };
        let body = serde_json::to_vec(self).unwrap_or_default();
        store.note_put(&format!("ticket:{}", hash(&secret)), &body, ttl, now)?;
        Ok(Some(secret))
    }

    /// Takes a ticket, once.
    pub(crate) fn take(store: &dyn Store, secret: &str, now: Timestamp) -> Result<Option<Self>, StoreError> {
        if secret.len() > MAX_SECRET {
            return Ok(None);
        }
        let name = format!("ticket:{}", hash(secret));
        let Some(body) = store.note_get(&name, now)? else { return Ok(None) };
        // Of several takers one gets it.
        if !store.note_delete(&name)? {
            return Ok(None);
        }
        Ok(serde_json::from_slice(&body).ok())
    }
}

/// The resume tokens of a session.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Tokens {
    tokens: Vec<Token>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Token {
    hash: String,
    /// The token that this one follows; it ends when this one is used.
    #[serde(default)]
    before: Option<String>,
    /// When its connection was dropped; none while it lasts.
    #[serde(default)]
    dropped: Option<Timestamp>,
    /// The tab that it was given to.
    #[serde(default)]
    client: Option<String>,
    /// What its holder may do.
    #[serde(flatten)]
    grant: Grant,
}

fn name(session: &str) -> String {
    format!("resume:{session}")
}

fn tokens(store: &dyn Store, session: &str, now: Timestamp) -> Result<Tokens, StoreError> {
    Ok(read(store.note_get(&name(session), now)?.as_deref()))
}

fn read(body: Option<&[u8]>) -> Tokens {
    body.and_then(|body| serde_json::from_slice(body).ok()).unwrap_or_default()
}

/// Changes the tokens of a session as they are. Another gateway may change them at the same time: neither loses what the other one has written.
/// Where there is nothing to change (`change` says so) nothing is written.
fn change(
    store: &dyn Store,
    session: &str,
    ttl: Duration,
    now: Timestamp,
    change: impl Fn(&mut Tokens) -> bool,
) -> Result<(), StoreError> {
    let name = name(session);
    for _ in 0..MAX_SWAPS {
        let before = store.note_get(&name, now)?;
        let mut all = read(before.as_deref());
        if !change(&mut all) {
            return Ok(());
        }
        let after = serde_json::to_vec(&all).unwrap_or_default();
        if store.note_swap(&name, before.as_deref(), &after, ttl, now)? {
            return Ok(());
        }
    }
    let (place, doing) = (store.place().to_owned(), "change a note");
    Err(StoreError::Failed { place, doing, why: "others keep changing it".to_owned() })
}

/// Whether a token is good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenState {
    /// It may stand in for a ticket that allowed this.
    Fresh(Grant),
    /// It is good, but a ticket is needed besides, where tickets are needed.
    Old(Grant),
    /// It is none.
    Wrong,
}

/// Looks at a resume token.
pub(crate) fn check(
    store: &dyn Store,
    session: &str,
    token: &str,
    now: Timestamp,
) -> Result<TokenState, StoreError> {
    let hash = hash(token.get(..token.len().min(MAX_SECRET)).unwrap_or_default());
    let tokens = tokens(store, session, now)?;
    let Some(known) = tokens.tokens.iter().find(|known| known.hash == hash) else {
        return Ok(TokenState::Wrong);
    };
    let old = known.dropped.is_some_and(|dropped| {
        Duration::try_from(now.duration_since(dropped)).unwrap_or_default() > RESUME_TIME
    });
    let grant = known.grant.clone();
    Ok(if old { TokenState::Old(grant) } else { TokenState::Fresh(grant) })
}

impl Token {
    /// It is this tab's, or no one's any more.
    fn is_left_to(&self, client: Option<&str>) -> bool {
        self.dropped.is_some() || self.client.as_deref() == client
    }
}

/// A new token for a connection of this tab that used this one, if any.
pub(crate) fn renew(
    store: &dyn Store,
    session: &str,
    (used, client): (Option<&str>, Option<&str>),
    grant: &Grant,
    ttl: Duration,
    now: Timestamp,
) -> Result<String, StoreError> {
    let secret = random::<24>().unwrap_or_default();
    let used = used.map(hash);
    change(store, session, ttl, now, |all| {
        all.follow(used.as_deref(), client, hash(&secret), grant.clone());
        true
    })?;
    Ok(secret)
}

impl Tokens {
    /// A new token follows the one that was used, if any.
    fn follow(&mut self, used: Option<&str>, client: Option<&str>, hash: String, grant: Grant) {
        let known = used.and_then(|used| self.tokens.iter().find(|known| known.hash == used));
        let ended = known.and_then(|known| known.before.clone());
        let before = known.filter(|known| known.is_left_to(client)).map(|known| known.hash.clone());
        let owner = known.map_or(client, |known| known.client.as_deref()).map(str::to_owned);
        // The one before the one that was used ends. Where the new token was lost on the wire, the old one comes again, and the lost one ends.
        self.tokens.retain(|known| {
            let is_before = ended.as_ref() == Some(&known.hash) && known.is_left_to(owner.as_deref());
            let is_lost = used.is_some() && known.before.as_deref() == used && known.is_left_to(client);
            !is_before && !is_lost
        });
        self.tokens.push(Token { hash, before, dropped: None, client: client.map(str::to_owned), grant });
        let mut extra = self.tokens.len().saturating_sub(MAX_TOKENS);
        self.tokens.retain(|known| {
            let goes = extra > 0 && known.dropped.is_some();
            extra -= usize::from(goes);
            !goes
        });
        let extra = self.tokens.len().saturating_sub(MAX_HELD_TOKENS);
        self.tokens.drain(..extra);
    }

    /// Changes one token; false where there is no such one.
    fn change(&mut self, token: &str, change: impl FnOnce(&mut Token)) -> bool {
        let hash = hash(token);
        self.tokens.iter_mut().find(|known| known.hash == hash).map(change).is_some()
    }
}

/// The connection with this token was dropped.
pub(crate) fn dropped(
    store: &dyn Store,
    session: &str,
    token: &str,
    ttl: Duration,
    now: Timestamp,
) -> Result<(), StoreError> {
    change(store, session, ttl, now, |all| all.change(token, |known| known.dropped = Some(now)))
}

/// The connection with this token has shown another ticket.
pub(crate) fn regrant(
    store: &dyn Store,
    session: &str,
    token: &str,
    grant: &Grant,
    ttl: Duration,
    now: Timestamp,
) -> Result<(), StoreError> {
    change(store, session, ttl, now, |all| all.change(token, |known| known.grant = grant.clone()))
}

/// Forgets the tokens of a session.
pub(crate) fn forget(store: &dyn Store, session: &str) -> Result<bool, StoreError> {
    store.note_delete(&name(session))
}

#[cfg(test)]
mod tests {
    use super::*;
    use koboshi_store::MemoryStore;

    const TAB: Option<&str> = Some("tab");
    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_ticket_is_taken_once_and_in_time() {
        let (store, now) = (MemoryStore::default(), Timestamp::UNIX_EPOCH);
        let ticket = Ticket { tenant: "t".to_owned(), session: None, grant: Grant::default() };
        let secret = ticket.issue(&store, LONG, now).unwrap().unwrap();
        assert_eq!(Ticket::take(&store, &secret, now).unwrap(), Some(ticket.clone()));
        assert_eq!(Ticket::take(&store, &secret, now).unwrap(), None);
        let late = ticket.issue(&store, Duration::from_secs(1), now).unwrap().unwrap();
        assert_eq!(Ticket::take(&store, &late, now.saturating_add(LONG).unwrap()).unwrap(), None);
    }

    #[test]
    fn a_token_is_good_until_the_one_after_it_was_used() {
        let (store, now) = (MemoryStore::default(), Timestamp::UNIX_EPOCH);
        let is_good = |token: &str| matches!(check(&store, "s", token, now).unwrap(), TokenState::Fresh(_));
        let first = renew(&store, "s", (None, TAB), &Grant::default(), LONG, now).unwrap();
        let second = renew(&store, "s", (Some(&first), TAB), &Grant::default(), LONG, now).unwrap();
        assert!(is_good(&first) && is_good(&second));
        let third = renew(&store, "s", (Some(&second), TAB), &Grant::default(), LONG, now).unwrap();
        assert!(!is_good(&first) && is_good(&second) && is_good(&third));
        let again = renew(&store, "s", (Some(&second), TAB), &Grant::default(), LONG, now).unwrap();
        assert!(!is_good(&third) && is_good(&again), "the answer with the third was lost on the wire");
        let tab = renew(&store, "s", (None, TAB), &Grant::default(), LONG, now).unwrap();
        assert!(is_good(&tab) && is_good(&again), "another tab has its own");
        dropped(&store, "s", &tab, LONG, now).unwrap();
        let later = now.saturating_add(Duration::from_secs(601)).unwrap();
        assert_eq!(check(&store, "s", &tab, later).unwrap(), TokenState::Old(Grant::default()));
        let lasts = check(&store, "s", &again, later).unwrap();
        assert_eq!(lasts, TokenState::Fresh(Grant::default()), "its connection lasts");
        assert_eq!(check(&store, "other", &tab, now).unwrap(), TokenState::Wrong);
    }

    #[test]
    fn a_tab_that_was_duplicated_and_its_first_one_come_back_as_often_as_they_like() {
        let (store, now) = (MemoryStore::default(), Timestamp::UNIX_EPOCH);
        let next = |used: &str, tab: &str| {
            let is_good = matches!(check(&store, "s", used, now).unwrap(), TokenState::Fresh(_));
            assert!(is_good, "{tab}");
            renew(&store, "s", (Some(used), Some(tab)), &Grant::default(), LONG, now).unwrap()
        };
        for first_one_is_first in [true, false] {
            let mut one = renew(&store, "s", (None, Some("one")), &Grant::default(), LONG, now).unwrap();
            let mut two = next(&one, "two");
            for _ in 0..3 {
                if first_one_is_first {
                    one = next(&one, "one");
                }
                two = next(&two, "two");
                one = next(&one, "one");
            }
            // A page that is loaded again has another name, and its connection before is gone.
            let old = one.clone();
            dropped(&store, "s", &old, LONG, now).unwrap();
            let again = next(&old, "one again");
            next(&again, "one again");
            assert_eq!(check(&store, "s", &old, now).unwrap(), TokenState::Wrong, "it was followed");
        }
    }

    #[test]
    fn a_token_allows_what_its_ticket_allowed() {
        let (store, now) = (MemoryStore::default(), Timestamp::UNIX_EPOCH);
        let narrow = Grant {
            origin: Some("https://a.example".to_owned()),
            routes: Some(vec!["m".to_owned()]),
            key: None,
        };
        let first = renew(&store, "s", (None, TAB), &narrow, LONG, now).unwrap();
        assert_eq!(check(&store, "s", &first, now).unwrap(), TokenState::Fresh(narrow.clone()));
        assert!(narrow.is_for(Some("https://a.example")) && !narrow.is_for(Some("https://b.example")));
        assert!(narrow.allows(Some("m")) && !narrow.allows(Some("n")));
        assert!(!narrow.is_for(None) && !narrow.allows(None));
        regrant(&store, "s", &first, &Grant::default(), LONG, now).unwrap();
        assert_eq!(check(&store, "s", &first, now).unwrap(), TokenState::Fresh(Grant::default()));
    }

    /// Two gateways change the tokens of one session at the same moment: the old one writes that a connection was dropped while the tab comes back at
    /// the new one, and another tab comes too.
    #[test]
    fn no_token_is_lost_where_several_gateways_change_them_at_once() {
        let (store, now) = (MemoryStore::default(), Timestamp::UNIX_EPOCH);
        let first = renew(&store, "s", (None, TAB), &Grant::default(), LONG, now).unwrap();
        let given: Vec<String> = std::thread::scope(|scope| {
            let gateways: Vec<_> = (0..4)
                .map(|tab| {
                    let (store, first) = (&store, &first);
                    scope.spawn(move || {
                        let mut last = None;
                        for _ in 0..200 {
                            let client = format!("tab-{tab}");
                            let holder = (last.as_deref(), Some(client.as_str()));
                            last = renew(store, "s", holder, &Grant::default(), LONG, now).ok().or(last);
                            dropped(store, "s", first, LONG, now).unwrap();
                        }
                        last.unwrap()
                    })
                })
                .collect();
            gateways.into_iter().map(|gateway| gateway.join().unwrap()).collect()
        });
        for token in given {
            assert_eq!(check(&store, "s", &token, now).unwrap(), TokenState::Fresh(Grant::default()));
        }
    }

    #[test]
    fn the_tokens_of_a_forgotten_session_are_not_written_again() {
        let (store, now) = (MemoryStore::default(), Timestamp::UNIX_EPOCH);
        let token = renew(&store, "s", (None, TAB), &Grant::default(), LONG, now).unwrap();
        assert!(forget(&store, "s").unwrap());
        dropped(&store, "s", &token, LONG, now).unwrap();
        assert_eq!(store.note_get(&name("s"), now).unwrap(), None);
    }
}

//! Who a client is, and which session it gets.
//!
//! A ticket says who; so does a gateway key in a header, and on a gateway without keys everyone on this machine is the same tenant. A session is
//! given to those who hold its resume token, a ticket for it, or a key of its tenant. Everyone else gets the same answer, whether it exists
//! or not.

use std::sync::Arc;

use koboshi::fault::Kind;
use koboshi::session::{Hello, Log};
use koboshi_store::{KnownPart, Ownership, SessionWrite};

use super::frames::{CloseCode, Problem};
use super::storage::{self, LEASE};
use super::ticket::{self, Grant, Ticket, TokenState, random};
use super::upgrade::Upgrade;
use crate::route::auth::Caller;
use crate::shared::core_state::CoreState;
use crate::shared::sessions::LiveSession;
use crate::shared::stored_part::{RestoredSession, StoredWhole};

/// What a client may do.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub(crate) tenant: String,
    /// The session of its ticket.
    session: Option<String>,
    /// It may take every session of its tenant.
    has_key: bool,
    pub(crate) grant: Grant,
    /// A ticket or a key said so; else the resume token does.
    is_proven: bool,
}

fn unavailable() -> Problem {
    Problem::of(Kind::MessageSaveFailed).after(std::time::Duration::from_secs(1)).closing(CloseCode::FAULT)
}

pub(crate) fn forbidden() -> Problem {
    Problem::of(Kind::PermissionDenied).closing(CloseCode::FORBIDDEN)
}

/// The gateway asks for a key or a ticket of its own: no provider's key is meant.
pub(crate) const fn no_access() -> Problem {
    Problem::of(Kind::Unauthorized).told("session-no-access").closing(CloseCode::NO_TICKET)
}

/// Who a client is. None where only a resume token can say.
pub(crate) async fn identify(
    core: &CoreState,
    upgrade: &Upgrade,
    ticket: Option<&str>,
) -> Result<Option<Access>, Problem> {
    let presented = upgrade.ticket.as_deref().or(ticket);
    if let Some(secret) = presented {
        let (secret, wall) = (secret.to_owned(), core.state.wall());
        let taken = storage::ask(&core.state, move |store| Ticket::take(store, &secret, wall)).await;
        let ticket = taken.ok_or_else(unavailable)?.ok_or_else(|| {
            Problem::of(Kind::TokenExpired).told("session-ticket").closing(CloseCode::NO_TICKET)
        })?;
        if !ticket.grant.is_for(upgrade.origin.as_deref()) {
            return Err(forbidden());
        }
        let Ticket { tenant, session, grant } = ticket;
        if !core.state.plan().keys.still_admit(grant.key.as_deref()) {
            return Err(no_access());
        }
        return Ok(Some(Access { tenant, session, has_key: false, grant, is_proven: true }));
    }
    let plan = core.state.plan();
    match &upgrade.caller {
        Caller::Tenant(tenant, key) => Ok(Some(Access {
            tenant: tenant.name().to_owned(),
            session: None,
            has_key: plan.keys.are_needed(),
            grant: Grant { key: plan.keys.are_needed().then(|| key.to_string()), ..Grant::default() },
            is_proven: plan.keys.are_needed(),
        })),
        Caller::NoKey => Ok(None),
        Caller::UnknownKey => Err(no_access()),
    }
}

/// The session that a client gets, and the token with which it comes back.
pub(crate) struct Admission {
    pub(crate) live: Arc<LiveSession>,
    pub(crate) access: Access,
    pub(crate) resume: String,
    pub(crate) is_new: bool,
    /// The page that made the connection.
    pub(crate) origin: Option<String>,
    pub(crate) can: Can,
}

/// What a client can do. One that knows no sessions can do nothing of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Can {
    pub(crate) rewind: bool,
    pub(crate) tools: bool,
}

impl Can {
    pub(crate) fn of(hello: &Hello) -> Self {
        Self { rewind: hello.can("rewind"), tools: hello.can("tools") }
    }
}

/// Gives a client its session.
pub(crate) async fn admit(core: &CoreState, upgrade: &Upgrade, hello: &Hello) -> Result<Admission, Problem> {
    let access = identify(core, upgrade, hello.ticket.as_deref()).await?;
    let wanted = hello.session.clone().or_else(|| access.as_ref().and_then(|access| access.session.clone()));
    let admission = match (wanted, access) {
        (None, Some(access)) => begin(core, upgrade, access, Some(hello.client.as_deref())).await,
        (None, None) => Err(no_access()),
        (Some(id), access) => resume(core, access, &id, hello, upgrade.origin.as_deref()).await,
    };
    Ok(Admission { can: Can::of(hello), ..admission? })
}

/// A new session for one connection of a client that knows none.
pub(crate) async fn begin_plain(
    core: &CoreState,
    upgrade: &Upgrade,
    access: Access,
) -> Result<Admission, Problem> {
    begin(core, upgrade, access, None).await
}

/// A new session. Its tab, which may have no name, gets a token to come back with; without a tab no client comes back.
async fn begin(
    core: &CoreState,
    upgrade: &Upgrade,
    access: Access,
    tab: Option<Option<&str>>,
) -> Result<Admission, Problem> {
    let state = &core.state;
    let (Some(id), Some(epoch)) = (random::<16>(), random::<9>()) else {
        return Err(Problem::of(Kind::Internal).closing(CloseCode::FAULT));
    };
    let id = format!("s_{id}");
    let log = Log::new(&epoch);
    let head = storage::head(&access.tenant, &log);
    let whole = StoredWhole::new(0, head.body.len());
    let write = SessionWrite {
        head: Some(head),
        ownership: Ownership::GivenBack,
        lease: LEASE,
        ttl: state.plan().config.sessions.ttl,
        ..SessionWrite::default()
    };
    let new = RestoredSession { tenant: access.tenant.clone(), log, whole };
    let live = match tab {
        Some(_) => state.sessions.put(&id, new),
        None => state.sessions.put_plain(&id, new),
    };
    let (process, wall, ttl) = (state.sessions.process.clone(), state.wall(), write.ttl);
    let (grant, tab) = (access.grant.clone(), tab.map(|client| client.map(str::to_owned)));
    let made = storage::ask_of(state, &live, move |store| {
        store.sessions().create(&id, &process, &write, wall)?;
        match tab {
            Some(client) => ticket::renew(store, &id, (None, client.as_deref()), &grant, ttl, wall),
            None => Ok(String::new()),
        }
    });
    let made = made.await;
    // Without a store the session lives in memory, and the first chat is refused unless the store is back by then.
    if made.is_none() {
        live.is_ahead.store(true, std::sync::atomic::Ordering::Relaxed);
    }
    let resume = made.unwrap_or_default();
    Ok(Admission { live, access, resume, is_new: true, origin: upgrade.origin.clone(), can: Can::default() })
}

async fn resume(
    core: &CoreState,
    access: Option<Access>,
    id: &str,
    hello: &Hello,
    origin: Option<&str>,
) -> Result<Admission, Problem> {
    let state = &core.state;
    let unknown = || {
        Problem::of(Kind::ConversationNotFound).told("session-unknown").closing(CloseCode::UNKNOWN_SESSION)
    };
    let (session, wall) = (id.to_owned(), state.wall());
    let token = hello.resume.clone();
    let known = state.sessions.get(id);
    // Who is not in memory here is read whole.
    let (epoch, seq) = known.as_ref().map(|live| live.known()).unwrap_or_default();
    let looked = storage::ask(state, move |store| {
        let token = match &token {
            Some(token) => ticket::check(store, &session, token, wall)?,
            None => TokenState::Wrong,
        };
        Ok((token, store.sessions().read(&session, KnownPart { epoch: &epoch, seq }, wall)?))
    });
    let (token, stored) = looked.await.ok_or_else(unavailable)?;
    let limits = storage::limits(&state.plan().config.sessions);
    if stored.as_ref().is_some_and(|stored| stored.is_forgotten) {
        if let Some(live) = known {
            live.be_forgotten();
        }
        return Err(unknown());
    }
    let (tenant, restored) = match (&known, &stored) {
        (Some(live), _) => (live.tenant.clone(), None),
        (None, Some(stored)) => match storage::restore(stored, &limits) {
            Some(restored) => (restored.tenant.clone(), Some(restored)),
            None => return Err(unknown()),
        },
        (None, None) => return Err(unknown()),
    };
    let is_for_it = access.as_ref().is_some_and(|access| access.session.as_deref() == Some(id));
    let has_key = access.as_ref().is_some_and(|access| access.has_key);
    if token == TokenState::Wrong && !is_for_it && !has_key {
        return Err(unknown());
    }
    let access = match (access, token) {
        (Some(access), _) if access.tenant != tenant => return Err(unknown()),
        (Some(access), _) if access.is_proven => access,
        // What its ticket allowed is what it may do: no more, also where no ticket is needed.
        (_, TokenState::Fresh(grant)) | (Some(_), TokenState::Old(grant)) => Access {
            tenant: tenant.clone(),
            session: Some(id.to_owned()),
            has_key: false,
            grant,
            is_proven: false,
        },
        _ => return Err(Problem::of(Kind::TokenExpired).closing(CloseCode::NO_TICKET)),
    };
    if !state.plan().keys.still_admit(access.grant.key.as_deref()) {
        return Err(no_access());
    }
    if !access.grant.is_for(origin) {
        return Err(forbidden());
    }
    let live = match (known, restored) {
        (Some(live), _) => {
            if let Some(stored) = stored.filter(|_| !live.is_owned()) {
                storage::bring(&live, &stored, &limits, false);
            }
            live
        }
        (None, Some(restored)) => state.sessions.put(id, restored),
        (None, None) => return Err(unknown()),
    };
    let (session, used, ttl) = (id.to_owned(), hello.resume.clone(), state.plan().config.sessions.ttl);
    let (grant, client) = (access.grant.clone(), hello.client.clone());
    let renewed = storage::ask(state, move |store| {
        let holder = (used.as_deref(), client.as_deref());
        ticket::renew(store, &session, holder, &grant, ttl, wall)
    });
    // Without a new one the old one stays good.
    let resume = renewed.await.or_else(|| hello.resume.clone()).unwrap_or_default();
    Ok(Admission {
        live,
        access,
        resume,
        is_new: false,
        origin: origin.map(str::to_owned),
        can: Can::default(),
    })
}

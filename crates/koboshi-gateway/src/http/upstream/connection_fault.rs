//! Errors of connections to providers, as Faults.
//!
//! Only this file knows the errors of sockets, TLS and HTTP. An unrecognised error is a broken connection:
//! before the answer began, or in its middle. What this machine lacks for a connection is no fault of the provider.

use std::error::Error;
use std::io;
use std::net::SocketAddr;

use koboshi::fault::{Advice, Fault, Kind, Origin, Scope, Sub};
use rustix::io::Errno;

/// When the error occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// While connecting.
    Connect,
    /// After the request was sent, before an answer.
    Waiting,
    /// In the middle of the answer.
    Answer,
}

/// The rule of faults that this machine causes.
const OWN_LACK: &str = "gateway.resources";

/// All local ports towards an address are in use.
#[derive(Debug, thiserror::Error)]
#[error("no local port is free for a connection to {to}: {cause}")]
pub(crate) struct NoLocalPort {
    pub(crate) to: SocketAddr,
    pub(crate) cause: io::Error,
}

/// What this machine lacks for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lack {
    /// Descriptors or memory, for any connection.
    Process,
    /// Ports, towards one address.
    Ports,
}

/// The fault of a connection error.
pub(crate) fn fault_of(error: &(dyn Error + 'static), stage: Stage) -> Box<Fault> {
    let mut fault = match cause_of(error) {
        Some(Cause::Lack(lack)) if stage == Stage::Connect => lacking(lack),
        Some(Cause::Lack(_)) => of_stage(stage),
        Some(Cause::Certificate) => with(Kind::ConnectionFailed, Sub::Certificate, "transport.certificate"),
        Some(Cause::Handshake) => with(Kind::ConnectionFailed, Sub::Handshake, "transport.handshake"),
        Some(Cause::Io(kind)) => of_io(kind, stage),
        None => of_stage(stage),
    };
    fault.detail = chain(error);
    fault
}

/// The fault of one of our timeouts. After connecting, a silent provider is slower than the limit: the network is not known to be at fault.
pub(crate) fn timed_out(sub: Sub) -> Box<Fault> {
    let mut fault = with(Kind::Timeout, sub, "transport.timeout");
    if matches!(sub, Sub::FirstContent | Sub::Idle | Sub::Unary) {
        fault.origin = Origin::Provider;
    }
    fault
}

/// The fault of a host name that could not be resolved.
pub(crate) fn unresolved(error: &io::Error) -> Box<Fault> {
    let mut fault = with(Kind::ConnectionFailed, Sub::Dns, "transport.dns");
    fault.detail = chain(error);
    fault
}

/// The fault of a proxy that refused.
pub(crate) fn proxy_refused(said: &str) -> Box<Fault> {
    let mut fault = with(Kind::ConnectionFailed, Sub::Proxy, "transport.proxy");
    said.chars().filter(|c| !c.is_control()).take(200).for_each(|c| fault.detail.push(c));
    fault
}

/// The fault of an answer for which `serve.memory` has no room.
pub(crate) fn no_memory() -> Box<Fault> {
    let mut fault = lacking(Lack::Process);
    // To ask again costs the same answer again, and there is no more room at once.
    fault.advice.same = false;
    "serve.memory has no room for the answer".clone_into(&mut fault.detail);
    fault
}

/// The fault of an incomplete answer.
pub(crate) fn cut(detail: &str) -> Box<Fault> {
    let mut fault = boxed(Kind::ConnectionClosed, "stream.cut");
    detail.clone_into(&mut fault.detail);
    fault
}

/// The fault of a provider without this endpoint: only another one can help.
pub(crate) fn not_served() -> Box<Fault> {
    let mut fault = boxed(Kind::InvalidRequest, "gateway.interface");
    (fault.sub, fault.advice.other) = (Some(Sub::Capability), true);
    "the provider has no interface for this".clone_into(&mut fault.detail);
    fault
}

/// Whether this machine lacked what a connection needs: no provider is to blame for that.
pub(crate) fn is_local_shortage(fault: &Fault) -> bool {
    &*fault.evidence.rule == OWN_LACK
}

/// Whether an error is such a shortage.
pub(crate) fn is_shortage_error(error: &io::Error) -> bool {
    lack_of(error).is_some()
}

fn lack_of(error: &io::Error) -> Option<Lack> {
    if error.get_ref().is_some_and(|inner| inner.is::<NoLocalPort>()) {
        return Some(Lack::Ports);
    }
    match Errno::from_io_error(error)? {
        Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM => Some(Lack::Process),
        _ => None,
    }
}

fn lacking(lack: Lack) -> Box<Fault> {
    let mut fault = with(Kind::Unavailable, Sub::Resources, OWN_LACK);
    (fault.origin, fault.scope) = (Origin::Koboshi, Scope::Network);
    // A moment later some may be free. Descriptors and memory are short for every target; ports only towards this one.
    fault.advice = Advice { same: true, other: lack == Lack::Ports, later: true, health: false };
    fault
}

enum Cause {
    Lack(Lack),
    Certificate,
    Handshake,
    Io(io::ErrorKind),
}

/// The innermost known error.
fn cause_of(error: &(dyn Error + 'static)) -> Option<Cause> {
    let mut found = None;
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Some(match tls {
                rustls::Error::InvalidCertificate(_) => Cause::Certificate,
                _ => Cause::Handshake,
            });
        }
        if let Some(io) = error.downcast_ref::<io::Error>() {
            if let Some(lack) = lack_of(io) {
                return Some(Cause::Lack(lack));
            }
            found = Some(Cause::Io(io.kind()));
            // An io error hides what it wraps from `source`.
            next = io.get_ref().map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source());
            continue;
        }
        next = error.source();
    }
    found
}

fn of_io(kind: io::ErrorKind, stage: Stage) -> Box<Fault> {
    use io::ErrorKind as Io;
    match (kind, stage) {
        (Io::ConnectionRefused, _) => boxed(Kind::ConnectionRefused, "transport.refused"),
        (Io::HostUnreachable | Io::NetworkUnreachable | Io::AddrNotAvailable, _) => {
            with(Kind::ConnectionFailed, Sub::Unreachable, "transport.unreachable")
        }
        // Something came in time, but it is no valid HTTP answer.
        (Io::InvalidData, Stage::Waiting) => boxed(Kind::ResponseInvalid, "transport.no_answer"),
        (Io::TimedOut, Stage::Connect) => timed_out(Sub::Connect),
        (Io::TimedOut, _) => timed_out(Sub::Idle),
        (_, stage) => of_stage(stage),
    }
}

fn of_stage(stage: Stage) -> Box<Fault> {
    match stage {
        Stage::Connect | Stage::Waiting => with(Kind::ConnectionFailed, Sub::Reset, "transport.reset"),
        Stage::Answer => boxed(Kind::ConnectionClosed, "transport.cut"),
    }
}

fn boxed(kind: Kind, rule: &str) -> Box<Fault> {
    Box::new(Fault::of(kind, rule))
}

fn with(kind: Kind, sub: Sub, rule: &str) -> Box<Fault> {
    let mut fault = boxed(kind, rule);
    fault.sub = Some(sub);
    // A certificate that is not trusted now will not be trusted in a second.
    if sub == Sub::Certificate {
        fault.advice.same = false;
    }
    fault
}

/// The errors from the outermost to the cause, in one short line.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut said = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let words = error.to_string();
        if !said.contains(&words) {
            if !said.is_empty() {
                said.push_str(": ");
            }
            said.push_str(&words);
        }
        next = error.source();
    }
    said.chars().filter(|c| !c.is_control()).take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_distinguished() {
        let io = |kind| io::Error::new(kind, "x");
        let refused = fault_of(&io(io::ErrorKind::ConnectionRefused), Stage::Connect);
        assert_eq!(refused.kind, Kind::ConnectionRefused);
        let reset = fault_of(&io(io::ErrorKind::ConnectionReset), Stage::Waiting);
        assert_eq!((reset.kind, reset.sub), (Kind::ConnectionFailed, Some(Sub::Reset)));
        let no_answer = fault_of(&io(io::ErrorKind::InvalidData), Stage::Waiting);
        assert_eq!(no_answer.kind, Kind::ResponseInvalid);
        let cut = fault_of(&io(io::ErrorKind::ConnectionReset), Stage::Answer);
        assert_eq!(cut.kind, Kind::ConnectionClosed);
        let tls = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let wrapped = io::Error::new(io::ErrorKind::InvalidData, tls);
        let certificate = fault_of(&wrapped, Stage::Connect);
        assert_eq!(certificate.sub, Some(Sub::Certificate));
        assert!(!certificate.advice.same && certificate.advice.other, "only another target can help");
    }

    #[test]
    fn what_this_machine_lacks_is_held_against_no_target() {
        let limits = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM].map(io::Error::from);
        let to = "192.0.2.1:443".parse().unwrap();
        let port = io::Error::other(NoLocalPort { to, cause: Errno::ADDRNOTAVAIL.into() });
        for (error, other) in limits.into_iter().map(|error| (error, false)).chain([(port, true)]) {
            let fault = fault_of(&error, Stage::Connect);
            assert_eq!((fault.kind, fault.sub), (Kind::Unavailable, Some(Sub::Resources)), "{error}");
            assert_eq!((fault.origin, fault.scope), (Origin::Koboshi, Scope::Network), "{error}");
            assert_eq!(fault.advice, Advice { same: true, other, later: true, health: false }, "{error}");
            assert!(is_local_shortage(&fault) && !fault.detail.is_empty(), "{error}");
            assert!(
                !is_local_shortage(&fault_of(&error, Stage::Answer)),
                "then a connection there was: {error}"
            );
        }
    }
}

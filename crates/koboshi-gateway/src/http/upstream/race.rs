//! Races the addresses of a host (Happy Eyeballs, RFC 8305): the first that connects wins, and the others are dropped.
//!
//! An address may swallow every packet, as IPv6 does behind a VPN or router that does not route it. Tried one after the other, it would use
//! up the time for all. So the address families alternate, the next address is tried when the one before has failed or has not connected for a
//! quarter of a second, and earlier ones continue. The caller limits the time for all.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::timeout;

use super::connection_fault::is_shortage_error;

/// How long one address has before the next is tried beside it.
const HEAD_START: Duration = Duration::from_millis(250);

/// The connection of the first address that connects, or why none does.
pub(super) async fn race<T, F>(addresses: Vec<SocketAddr>, connect: impl Fn(SocketAddr) -> F) -> io::Result<T>
where
    F: Future<Output = io::Result<T>>,
{
    let mut waiting = in_turns(addresses).into_iter();
    let mut running = Vec::new();
    let mut failed = None;
    loop {
        match waiting.next() {
            Some(address) => running.push(Box::pin(connect(address))),
            None if running.is_empty() => return Err(failed.unwrap_or_else(no_address)),
            None => {}
        }
        let ended = poll_fn(|context| poll_any(&mut running, context));
        let is_last = waiting.len() == 0;
        let ended = if is_last { Some(ended.await) } else { timeout(HEAD_START, ended).await.ok() };
        match ended {
            Some(Ok(connected)) => return Ok(connected),
            Some(Err(error)) => failed = Some(more_telling(failed, error)),
            None => {}
        }
    }
}

/// The result of the first of them that has one; it is removed.
fn poll_any<F: Future>(running: &mut Vec<Pin<Box<F>>>, context: &mut Context<'_>) -> Poll<F::Output> {
    for (place, one) in running.iter_mut().enumerate() {
        if let Poll::Ready(result) = one.as_mut().poll(context) {
            drop(running.swap_remove(place));
            return Poll::Ready(result);
        }
    }
    Poll::Pending
}

/// The addresses in the order in which they are tried: the families alternate, and the one that the resolver prefers begins.
fn in_turns(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let prefers_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (preferred, other): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == prefers_v6);
    let (mut preferred, mut other) = (preferred.into_iter(), other.into_iter());
    let mut turns = Vec::with_capacity(preferred.len() + other.len());
    while preferred.len() + other.len() > 0 {
        turns.extend(preferred.next());
        turns.extend(other.next());
    }
    turns
}

/// Which of two errors is reported. A shortage of this machine matters more than the failure of an address, and a missing route in
/// one family says little where the other family has one.
fn more_telling(known: Option<io::Error>, new: io::Error) -> io::Error {
    use io::ErrorKind::{AddrNotAvailable, HostUnreachable, NetworkUnreachable};
    match known {
        Some(known) if is_shortage_error(&known) => known,
        Some(known) if matches!(new.kind(), HostUnreachable | NetworkUnreachable | AddrNotAvailable) => known,
        _ => new,
    }
}

fn no_address() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the name has no address")
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tokio::net::{TcpListener, TcpSocket, TcpStream};
    use tokio::time::{Instant, sleep};

    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    /// The behaviour of an address.
    #[derive(Clone, Copy)]
    enum AddressBehaviour {
        Connects(u64),
        Fails(u64),
        Swallows,
    }

    /// Races addresses; returns which won, after how many milliseconds, and when each was tried.
    async fn raced(all: &[AddressBehaviour]) -> (Result<usize, String>, u64, Vec<(usize, u64)>) {
        let (start, tried) = (Instant::now(), RefCell::new(Vec::new()));
        let since = || u64::try_from(start.elapsed().as_millis()).unwrap();
        let hosts =
            (0..).take(all.len()).map(|number| SocketAddr::from(([192, 0, 2, number], 443))).collect();
        let won = race(hosts, |address| {
            let SocketAddr::V4(host) = address else { panic!("{address}") };
            let number = usize::from(host.ip().octets()[3]);
            tried.borrow_mut().push((number, since()));
            let does = all[number];
            async move {
                match does {
                    AddressBehaviour::Connects(after) => sleep(Duration::from_millis(after)).await,
                    AddressBehaviour::Fails(after) => {
                        sleep(Duration::from_millis(after)).await;
                        return Err(io::Error::other(format!("no {number}")));
                    }
                    AddressBehaviour::Swallows => std::future::pending().await,
                }
                Ok(number)
            }
        });
        let won = timeout(Duration::from_secs(10), won).await;
        let won =
            won.map_or_else(|_| Err("too late".to_owned()), |won| won.map_err(|error| error.to_string()));
        (won, since(), tried.into_inner())
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_address_is_tried_after_a_quarter_of_a_second_or_when_one_failed() {
        use AddressBehaviour::{Connects, Fails, Swallows};
        type Case = (&'static [AddressBehaviour], Result<usize, &'static str>, u64, &'static [(usize, u64)]);
        let cases: &[Case] = &[
            (&[Connects(20)], Ok(0), 20, &[(0, 0)]),
            (&[Connects(240), Connects(1)], Ok(0), 240, &[(0, 0)]),
            (&[Swallows, Connects(20)], Ok(1), 270, &[(0, 0), (1, 250)]),
            (&[Fails(10), Connects(20)], Ok(1), 30, &[(0, 0), (1, 10)]),
            // Earlier ones continue, and may win later.
            (&[Connects(300), Connects(100)], Ok(0), 300, &[(0, 0), (1, 250)]),
            (&[Connects(400), Swallows, Fails(5)], Ok(0), 400, &[(0, 0), (1, 250)]),
            (&[Swallows, Fails(10), Connects(5)], Ok(2), 265, &[(0, 0), (1, 250), (2, 260)]),
            (&[Swallows, Swallows, Connects(5)], Ok(2), 505, &[(0, 0), (1, 250), (2, 500)]),
            (&[Fails(10), Fails(10)], Err("no 1"), 20, &[(0, 0), (1, 10)]),
            (&[Swallows, Fails(10)], Err("too late"), 10_000, &[(0, 0), (1, 250)]),
            (&[], Err("the name has no address"), 0, &[]),
        ];
        for (number, (all, won, after, tried)) in cases.iter().enumerate() {
            let won = won.map_err(str::to_owned);
            assert_eq!(raced(all).await, (won, *after, tried.to_vec()), "case {number}");
        }
    }

    #[test]
    fn families_take_turns_and_each_keeps_its_order() {
        let found = addresses(&[
            "[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::3]:1", "192.0.2.1:1", "192.0.2.2:1",
        ]);
        let turns = addresses(&[
            "[2001:db8::1]:1", "192.0.2.1:1", "[2001:db8::2]:1", "192.0.2.2:1", "[2001:db8::3]:1",
        ]);
        assert_eq!(in_turns(found), turns);
        let found = addresses(&["192.0.2.1:1", "192.0.2.2:1", "[2001:db8::1]:1"]);
        assert_eq!(in_turns(found), addresses(&["192.0.2.1:1", "[2001:db8::1]:1", "192.0.2.2:1"]));
    }

    #[test]
    fn a_missing_route_hides_no_other_error() {
        use io::ErrorKind::{ConnectionRefused, NetworkUnreachable};
        let told =
            |first: io::ErrorKind, second: io::ErrorKind| more_telling(Some(first.into()), second.into());
        assert_eq!(told(ConnectionRefused, NetworkUnreachable).kind(), ConnectionRefused);
        assert_eq!(told(NetworkUnreachable, ConnectionRefused).kind(), ConnectionRefused);
        assert_eq!(more_telling(None, NetworkUnreachable.into()).kind(), NetworkUnreachable);
    }

    /// A port whose queue is full: the kernel drops new connections silently.
    async fn swallowing() -> (TcpListener, Vec<TcpStream>) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let mut waiting = Vec::new();
        while let Ok(connected) =
            timeout(Duration::from_millis(300), TcpStream::connect(listener.local_addr().unwrap())).await
        {
            waiting.push(connected.unwrap());
        }
        (listener, waiting)
    }

    #[tokio::test]
    async fn an_address_that_swallows_packets_does_not_keep_us_from_the_next() {
        let (swallows, _waiting) = swallowing().await;
        let answers = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let hosts = vec![swallows.local_addr().unwrap(), answers.local_addr().unwrap()];
        let connected = timeout(Duration::from_secs(10), race(hosts.clone(), TcpStream::connect)).await;
        assert_eq!(connected.unwrap().unwrap().peer_addr().unwrap(), hosts[1]);
    }
}

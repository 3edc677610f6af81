//! Thousands of streams that are begun and stay open.
//!
//! Connections come from two source addresses in turns, so that the ports of one do not run out. A stream counts as begun with its
//! first content and as open until the server ends it. The first line says how many have begun; the second, after the standard
//! input has ended, how many are open then.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;

use koboshi_bench::clock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::spawn_local;

use crate::ask::Asks;
use crate::work::print;

/// The most connections that are being made at the same time.
const AT_ONCE: usize = 64;

#[derive(Default)]
struct Count {
    begun: Cell<usize>,
    open: Cell<usize>,
    failed: Cell<usize>,
    errors: std::cell::RefCell<BTreeMap<String, usize>>,
}

/// Opens them, tells, holds them, tells again.
pub(crate) async fn open(asks: Asks, streams: usize, patience: f64) -> io::Result<()> {
    let (asks, count, gate) = (Rc::new(asks), Rc::new(Count::default()), Rc::new(Semaphore::new(AT_ONCE)));
    let start = clock::now();
    for number in 0..streams {
        let (asks, count, gate) = (Rc::clone(&asks), Rc::clone(&count), Rc::clone(&gate));
        spawn_local(async move {
            if let Err(error) = one(&asks, number, &count, &gate).await {
                count.failed.set(count.failed.get() + 1);
                *count.errors.borrow_mut().entry(error.to_string()).or_default() += 1;
            }
        });
    }
    let late = std::time::Duration::from_secs_f64(patience);
    let all = async {
        while count.begun.get() + count.failed.get() < streams {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let _some_are_late = tokio::time::timeout(late, all).await;
    let took = std::time::Duration::from_nanos(clock::now() - start).as_secs_f64();
    print(&serde_json::json!({
        "begun": count.begun.get(), "open": count.open.get(), "failed": count.failed.get(), "seconds": took,
        "errors": *count.errors.borrow(),
    }));
    input_ends().await;
    print(&serde_json::json!({"open": count.open.get()}));
    Ok(())
}

async fn one(asks: &Asks, number: usize, count: &Count, gate: &Semaphore) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(2048);
    let mut socket = {
        let _turn = gate.acquire().await.map_err(io::Error::other)?;
        let mut socket = connect(asks.address, number).await?;
        socket.write_all(&asks.numbered(number)).await?;
        // Only the first bytes count here: a frame with text is far longer than one without.
        while !has_content(&buffer) {
            if socket.read_buf(&mut buffer).await? == 0 {
                let shown: String = String::from_utf8_lossy(&buffer).chars().take(200).collect();
                return Err(io::Error::other(format!("ended before content: {shown}")));
            }
        }
        socket
    };
    count.begun.set(count.begun.get() + 1);
    count.open.set(count.open.get() + 1);
    let mut rest = [0; 256];
    while matches!(socket.read(&mut rest).await, Ok(1..)) {}
    count.open.set(count.open.get() - 1);
    Ok(())
}

async fn connect(address: SocketAddr, number: usize) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if let IpAddr::V4(ip) = address.ip()
        && ip.is_loopback()
        && number % 2 == 1
    {
        socket.bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), 0))?;
    }
    socket.connect(address).await
}

fn has_content(bytes: &[u8]) -> bool {
    memchr::memmem::find_iter(bytes, b"\"content\":\"")
        .any(|at| bytes.get(at + 11).is_some_and(|letter| *letter != b'"'))
}

/// Reads the standard input to its end on a thread of its own.
async fn input_ends() {
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        let _read = io::copy(&mut io::stdin(), &mut io::sink());
        drop(end);
    });
    let _ended = ended.await;
}

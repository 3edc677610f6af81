//! Several real Redis servers that belong together: a server with a replica and three Sentinels, and a Cluster of three nodes.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

use crate::redis::{RedisServer, free_port};
use crate::wait::until;

/// How many Sentinels there are; two of them must agree.
const SENTINELS: usize = 3;
/// Slots of a Cluster.
const SLOTS: u32 = 16_384;

/// A way between two ports that can be cut.
#[derive(Debug)]
pub struct Line {
    port: u16,
    is_cut: Arc<AtomicBool>,
}

impl Line {
    /// A way to this port.
    #[must_use]
    pub fn to(target: u16) -> Self {
        Self::from(Ipv4Addr::LOCALHOST, target)
    }

    /// A way from a free port of this address to that port of this machine.
    #[must_use]
    pub fn from(address: Ipv4Addr, target: u16) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_cut = Arc::new(AtomicBool::new(false));
        let cut = Arc::clone(&is_cut);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect((Ipv4Addr::LOCALHOST, target));
                let Some(server) = server.ok().filter(|_| !cut.load(Ordering::SeqCst)) else { continue };
                for (from, to) in [(client.try_clone(), server.try_clone()), (Ok(server), Ok(client))] {
                    let (from, to, cut) = (from.unwrap(), to.unwrap(), Arc::clone(&cut));
                    std::thread::spawn(move || pass(from, to, &cut));
                }
            }
        });
        Self { port, is_cut }
    }

    /// Where it begins.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Nothing passes from now on.
    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, is_cut: &AtomicBool) {
    let mut block = [0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut block) {
        if is_cut.load(Ordering::SeqCst) || to.write_all(&block[..read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// A server, its replica, and three Sentinels that watch them under the name `main`.
#[derive(Debug)]
pub struct SentinelSet {
    /// The server that leads at first.
    pub first: RedisServer,
    /// Its replica.
    pub second: RedisServer,
    /// The way of the replica to the first server.
    pub line: Line,
    sentinels: Vec<(u16, Child)>,
    _folder: TempDir,
}

impl Default for SentinelSet {
    fn default() -> Self {
        Self::start()
    }
}

impl SentinelSet {
    /// Starts all of them, and waits until they know each other.
    #[must_use]
    pub fn start() -> Self {
        let first = RedisServer::start();
        let line = Line::to(first.port());
        let second = first.replica_through(line.port());
        until("the replica follows", || first.ask("INFO replication").contains("state=online").then_some(()));
        let folder = tempfile::tempdir().unwrap();
        let sentinels = (0..SENTINELS).map(|number| sentinel(&folder, number, first.port())).collect();
        let set = Self { first, second, line, sentinels, _folder: folder };
        until("the Sentinels know each other", || {
            let knows = |(port, _): &(u16, Child)| {
                let text = ask(*port, "SENTINEL MASTER main");
                let of = |name: &str| {
                    text.split("\r\n").skip_while(|line| *line != name).nth(2).map(str::to_owned)
                };
                of("num-other-sentinels").as_deref() == Some("2") && of("num-slaves").as_deref() == Some("1")
            };
            set.sentinels.iter().all(knows).then_some(())
        });
        set
    }

    /// Their address for a store.
    #[must_use]
    pub fn url(&self) -> String {
        let hosts: Vec<String> = self.sentinels.iter().map(|(port, _)| format!("127.0.0.1:{port}")).collect();
        format!("redis+sentinel://{}/main", hosts.join(","))
    }

    /// Orders the Sentinels to let the replica lead. Returns whether one of them begins.
    #[must_use]
    pub fn order_failover(&self) -> bool {
        self.sentinels
            .first()
            .is_some_and(|(port, _)| ask(*port, "SENTINEL FAILOVER main").starts_with("+OK"))
    }

    /// Waits until the replica leads.
    pub fn wait_for_failover(&self) {
        until("the replica leads", || self.second.ask("ROLE").contains("master").then_some(()));
    }
}

impl Drop for SentinelSet {
    fn drop(&mut self) {
        for (_, child) in &mut self.sentinels {
            let _ = (child.kill(), child.wait());
        }
    }
}

fn sentinel(folder: &TempDir, number: usize, master: u16) -> (u16, Child) {
    for _ in 0..20 {
        let port = free_port();
        let file = folder.path().join(format!("sentinel-{number}.conf"));
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor main 127.0.0.1 {master} 2\n\
             sentinel down-after-milliseconds main 700\nsentinel failover-timeout main 3000\n",
            folder.path().display()
        );
        fs::write(&file, text).unwrap();
        let mut child = Command::new("redis-server")
            .arg(&file)
            .arg("--sentinel")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("there is no redis-server: run scripts/test, it installs it");
        let is_up = until("the Sentinel comes up", || match child.try_wait().unwrap() {
            Some(_) => Some(false),
            None => TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok().map(|_| true),
        });
        if is_up {
            return (port, child);
        }
    }
    panic!("no Sentinel would start")
}

fn ask(port: u16, words: &str) -> String {
    let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return String::new() };
    let _ = stream.set_read_timeout(Some(std::time::Duration::from_secs(2)));
    let _ = stream.write_all(format!("{words}\r\n").as_bytes());
    let (mut text, mut block) = (Vec::new(), [0; 16 * 1024]);
    // The answer is small; a part of it is asked for again.
    if let Ok(read) = stream.read(&mut block) {
        text.extend_from_slice(&block[..read]);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Three nodes that share the slots of a Cluster.
#[derive(Debug)]
pub struct RedisCluster {
    /// The nodes, with a third of the slots each.
    pub nodes: [RedisServer; 3],
}

impl Default for RedisCluster {
    fn default() -> Self {
        Self::start()
    }
}

impl RedisCluster {
    /// Starts them, and waits until every node knows the others.
    #[must_use]
    pub fn start() -> Self {
        let nodes = [RedisServer::start_node(), RedisServer::start_node(), RedisServer::start_node()];
        for (number, node) in (0_u32..).zip(&nodes) {
            let (from, to) = (SLOTS * number / 3, SLOTS * (number + 1) / 3 - 1);
            node.order(&format!("CLUSTER ADDSLOTSRANGE {from} {to}"));
            node.order(&format!("CLUSTER SET-CONFIG-EPOCH {}", number + 1));
        }
        for node in &nodes[1..] {
            nodes[0].order(&format!("CLUSTER MEET 127.0.0.1 {} {}", node.port(), node.bus_port()));
        }
        let cluster = Self { nodes };
        until("the Cluster is whole", || {
            let is_whole = |node: &RedisServer| {
                let info = node.ask("CLUSTER INFO");
                info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
            };
            cluster.nodes.iter().all(is_whole).then_some(())
        });
        cluster
    }

    /// Its address for a store.
    #[must_use]
    pub fn url(&self) -> String {
        let hosts = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port()));
        format!("redis+cluster://{}", hosts.collect::<Vec<_>>().join(","))
    }

    /// The slot of the keys with this prefix.
    #[must_use]
    pub fn slot_of(&self, prefix: &str) -> u32 {
        self.nodes[0]
            .ask(&format!("CLUSTER KEYSLOT {prefix}"))
            .trim()
            .trim_start_matches(':')
            .parse()
            .unwrap()
    }

    /// The node that has this slot at the beginning.
    #[must_use]
    pub fn first_owner(&self, slot: u32) -> usize {
        (0..3).find(|number| slot < SLOTS * (number + 1) / 3).map_or(2, |number| number as usize)
    }

    /// Begins to move a slot.
    pub fn begin_move(&self, slot: u32, from: usize, to: usize) {
        let id = |node: usize| {
            let text = self.nodes[node].ask("CLUSTER MYID");
            text.split("\r\n").nth(1).unwrap().to_owned()
        };
        self.nodes[to].order(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", id(from)));
        self.nodes[from].order(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", id(to)));
    }

    /// Moves the keys of a slot, while it is being moved.
    pub fn move_keys(&self, slot: u32, from: usize, to: usize) {
        loop {
            let text = self.nodes[from].ask(&format!("CLUSTER GETKEYSINSLOT {slot} 100"));
            let keys: Vec<&str> =
                text.split("\r\n").filter(|line| !line.is_empty() && !line.starts_with(['*', '$'])).collect();
            if keys.is_empty() {
                return;
            }
            let (port, keys) = (self.nodes[to].port(), keys.join(" "));
            let moved = self.nodes[from].ask(&format!("MIGRATE 127.0.0.1 {port} \"\" 0 5000 KEYS {keys}"));
            assert!(moved.starts_with("+OK") || moved.starts_with("+NOKEY") || moved.is_empty(), "{moved}");
        }
    }

    /// Ends the move of a slot.
    pub fn end_move(&self, slot: u32, to: usize) {
        let text = self.nodes[to].ask("CLUSTER MYID");
        let id = text.split("\r\n").nth(1).unwrap();
        for node in &self.nodes {
            node.order(&format!("CLUSTER SETSLOT {slot} NODE {id}"));
        }
    }
}

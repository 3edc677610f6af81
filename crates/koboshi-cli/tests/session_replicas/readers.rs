//! Readers that take nothing: they cost no memory, hold nobody up, and come back to the whole conversation.
//!
//! `KOBOSHI_READERS` says how many there are: 50 in the ordinary tests, 1,000 in the long ones.

use super::*;
use koboshi_sim::{Ask, Beat, Beats, End, Head, Play};

/// An answer of this many bytes, five times: more than a log, its tail and every buffer between hold.
const ANSWER: usize = 1 << 20;
const TURNS: usize = 5;
const PIECE: usize = 4096;
/// What a reader that takes nothing may cost beyond one that is idle: what was on its way to it, and nothing of what comes after.
const EACH: u64 = 96 * 1024;

/// A provider's stream of `ANSWER` bytes in which no two pieces are the same.
fn large(ask: &Ask<'_>) -> Play {
    let event = |delta: Value, reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        let chunk = json!({"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]});
        Beat { after: Duration::ZERO, bytes: format!("data: {chunk}\n\n").into() }
    };
    let nth = ask.tally.nth;
    let mut beats: Vec<Beat> = (0..ANSWER / PIECE)
        .map(|piece| event(json!({"content": format!("{:<PIECE$}", format!("{nth}:{piece}"))}), Value::Null))
        .collect();
    beats.push(event(json!({}), json!("stop")));
    beats.push(Beat { after: Duration::ZERO, bytes: "data: [DONE]\n\n".into() });
    let headers = vec![("content-type", "text/event-stream".to_owned())];
    let head = Head::Answer { after: Duration::ZERO, status: 200, headers };
    Play { head, beats: Beats::from(beats), end: End::Clean }
}

/// Reads until this turn is answered. A reader that was too slow for the tail gets the end by a snapshot.
fn answer(client: &mut SessionClient, turn: usize) -> String {
    loop {
        let frame = client.next().unwrap();
        let is_over =
            frame["type"] == "done" || frame["type"] == "snapshot" && client.transcript.open.is_none();
        let last = client.transcript.messages.last().filter(|_| is_over);
        if let Some(last) =
            last.map(|last| json!(last)).filter(|last| last["turn"] == turn && last["role"] == "assistant")
        {
            return last["content"].as_str().unwrap().to_owned();
        }
    }
}

/// How much a gateway has grown after each of the answers, with so many readers that take nothing; and these, with the one that reads.
fn grown(scene: &Scene, count: usize) -> (Vec<i64>, Served, SessionClient, Vec<SessionClient>) {
    let config = scene.folder.path().join(format!("readers-{count}.yaml"));
    let text = format!(
        "serve: {{threads: 2, drain_timeout: 1s}}\nsessions: {{max_connections: 2000}}\n\
         providers: {{one: {{kind: openai, base_url: \"{}\", keys: [sk-own]}}}}\nroutes: {{m: {{chain: [one/large]}}}}\n",
        scene.one.url()
    );
    fs::write(&config, text).unwrap();
    let gateway = Served::start(&config, &PathBuf::from("memory"));
    let mut reader = SessionClient::begin(gateway.address, "tab-0");
    let stalled: Vec<SessionClient> = (1..=count)
        .map(|number| {
            let client = reader.tab(&format!("tab-{number}"));
            client.room(4096);
            client
        })
        .collect();
    let memory = || i64::try_from(gateway.memory()).unwrap();
    let idle = memory();
    let grown = (0..TURNS)
        .map(|turn| {
            reader.chat(&format!("c-{turn}"), "go on");
            assert_eq!(answer(&mut reader, turn + 1).len(), ANSWER, "it gets all of it");
            memory() - idle
        })
        .collect();
    (grown, gateway, reader, stalled)
}

#[test]
fn readers_that_take_nothing_cost_little_hold_nobody_up_and_come_back_to_everything() {
    let count = std::env::var("KOBOSHI_READERS").map_or(50, |count| count.parse().unwrap());
    let scene = Scene::new();
    scene.one.set("large", large);
    let (without, ..) = grown(&scene, 0);
    let (with, gateway, reader, mut stalled) = grown(&scene, count);
    let base = i64::try_from(gateway.memory()).unwrap();
    println!("grown by {without:?} without, by {with:?} with {count} of them, to {base}");
    let each = i64::try_from(count as u64 * EACH).unwrap();
    for (without, with) in without.iter().zip(&with) {
        assert!(with - without <= each + base / 20, "{with} with {count} of them, {without} without");
    }
    until("they are let go when they have taken nothing for 30 s", || {
        let metrics = gateway.get("/metrics").text();
        metrics.lines().any(|line| line == "koboshi_session_connections 1").then_some(())
    });
    // A session keeps the tokens of the last 32 whose connections are gone.
    for client in stalled.iter_mut().rev().take(3) {
        client.come_back();
        assert_eq!(client.frames.last().unwrap()["resumed"], "snapshot", "the tail has gone on without it");
        client.send(&json!({"type": "ping"}));
        client.next_of("pong");
        // Of a conversation above 4 MiB the server has forgotten the oldest turns; who has read them shows them.
        let (all, own) = (&reader.transcript.messages, &client.transcript.messages);
        assert!(own.len() >= 5 && all.ends_with(own), "{} of {} messages", own.len(), all.len());
    }
}

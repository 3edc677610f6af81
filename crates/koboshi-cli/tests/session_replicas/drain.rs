//! A gateway stops while another one runs: five hundred clients move, some of them in mid-answer, and see no error.

use super::*;

const CLIENTS: usize = 500;
/// Every so many-th of them has a running turn.
const RUNNING: usize = 20;
/// The usual drain time: it decides how far clients are asked to leave from each other.
const DRAIN: &str = "30s";
/// An answer that outlasts it.
const SLOW: &str = "ok?gap=1s&chunks=120";
/// The share of all that comes back in one second, at most: the goal is one in twenty, which a quiet machine keeps.
const MOST: f64 = 0.07;

/// Where chance comes from: a client draws its moment.
fn drawn(number: usize) -> f64 {
    let turned = (number as u64 + 1).wrapping_mul(0xD134_2543_DE82_EF95) ^ 0x5DEE_CE66;
    f64::from((turned >> 32) as u32) / f64::from(u32::MAX)
}

/// What became of a client.
struct Moved {
    /// Seconds after the signal at which it came back.
    back: f64,
    client: SessionClient,
}

/// A client as `@koboshi/client` is one: asked to leave it draws a moment of the window, reads on until then, and comes back at the other gateway; also
/// where its connection is closed before.
fn live_through(
    mut client: SessionClient,
    number: usize,
    stopped: Instant,
    b: std::net::SocketAddr,
) -> Moved {
    let goaway = client.next_of("goaway");
    let window = goaway["reconnect_ms"].as_f64().unwrap();
    assert!(window > 0.0, "{goaway}");
    // One whose turn runs is closed when its time is over, and it may as well go before: half of them do.
    let stays = !number.is_multiple_of(RUNNING * 2) || client.transcript.open.is_none();
    if stays {
        assert_eq!(client.end(), SessionEnd::Closed(4200));
    }
    let left = Instant::now();
    let wait = Duration::from_secs_f64(window / 1000.0 * drawn(number));
    until("its moment has come", || (left.elapsed() >= wait).then_some(()));
    let back = stopped.elapsed().as_secs_f64();
    client.come_back_at(b);
    if client.transcript.open.is_some() || number.is_multiple_of(RUNNING) {
        until("its answer is there", || {
            client.send(&json!({"type": "ping"}));
            client.next_of("pong");
            (client.transcript.open.is_none() && client.transcript.messages.len() == 2).then_some(())
        });
    }
    Moved { back, client }
}

#[test]
fn five_hundred_clients_some_in_mid_answer_move_one_after_the_other_and_see_no_error() {
    let (scene, redis) = (Scene::new(), RedisServer::start());
    let mut a = scene.gateway("a", SLOW, DRAIN, &redis.url());
    let b = scene.gateway("b", SLOW, DRAIN, &redis.url());
    let mut clients: Vec<SessionClient> =
        (0..CLIENTS).map(|number| SessionClient::begin(a.address, &format!("tab-{number}"))).collect();
    for client in clients.iter_mut().step_by(RUNNING) {
        client.chat("c-1", "hello");
        client.next_of("content");
    }
    from_now_on(&scene.one, SLOW, "ok");
    signal(&a.child, "-TERM");
    let stopped = Instant::now();
    let readers: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(number, client)| {
            let address = b.address;
            let thread = std::thread::Builder::new().stack_size(512 * 1024);
            thread.spawn(move || live_through(client, number, stopped, address)).unwrap()
        })
        .collect();
    let moved: Vec<Moved> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    let errors: Vec<_> = moved.iter().flat_map(|moved| errors(&moved.client)).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let mut seconds = std::collections::BTreeMap::new();
    for moved in &moved {
        *seconds.entry(moved.back as u64).or_insert(0_u32) += 1;
    }
    println!("came back, by second: {seconds:?}");
    let most = seconds.values().copied().max().unwrap();
    assert!(f64::from(most) <= CLIENTS as f64 * MOST, "{seconds:?}");
    assert!(a.child.wait().unwrap().success());
    let running: Vec<&Moved> = moved.iter().step_by(RUNNING).collect();
    let text = whole(&scene.one);
    for moved in &running {
        assert_eq!(moved.client.transcript.messages[1].content, text.as_str(), "whole, and once");
        assert_eq!(moved.client.transcript.messages.len(), 2);
    }
    assert_eq!(scene.one.all_calls(), 2 * running.len() as u64, "each of them was asked for once more");
}

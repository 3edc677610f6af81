//! Connections come and go; the conversation stays the same.

use koboshi_testkit::{SessionClient, SessionEnd, until};
use serde_json::json;

use crate::common::*;

/// A client of a provider that speaks slowly enough to be interrupted.
fn slow() -> Stage {
    Stage::of(&["one/ok?gap=2ms"])
}

#[test]
fn a_cut_after_any_frame_changes_nothing() {
    let stage = slow();
    let mut whole = SessionClient::begin(stage.gateway.address(), "tab-0");
    whole.chat("c-1", "hello");
    let text = whole.answer();
    stage.reset();
    for cut in 1..12 {
        let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
        client.chat("c-1", "hello");
        for _ in 0..cut {
            client.next().unwrap();
        }
        client.cut();
        client.come_back();
        client.chat("c-1", "hello");
        assert_eq!(client.answer(), text, "{cut}");
        assert_eq!(client.transcript.messages.len(), 2);
    }
    assert_eq!(stage.calls().0, 11, "every turn is asked for once");
}

#[test]
fn a_chat_is_not_lost_where_its_connection_is_cut_behind_it() {
    let stage = slow();
    for _ in 0..10 {
        let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
        client.chat("c-1", "hello");
        client.cut();
        client.come_back();
        client.chat("c-1", "hello");
        assert!(!client.answer().is_empty());
        assert_eq!(client.transcript.messages.len(), 2, "one turn per id");
    }
}

#[test]
fn a_cursor_of_no_use_gives_a_snapshot() {
    let stage = slow();
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    client.chat("c-1", "hello");
    let text = client.answer();
    let seq = client.transcript.seq;
    for (epoch, after) in [(client.transcript.epoch.clone(), seq + 100), ("other".to_owned(), seq)] {
        (client.transcript.epoch, client.transcript.seq) = (epoch, after);
        client.cut();
        client.come_back();
        assert_eq!(client.frames.last().unwrap()["resumed"], "snapshot");
        assert_eq!(client.next_of("snapshot")["ids"], json!(["c-1"]));
        assert_eq!((client.transcript.seq, client.transcript.messages.len()), (seq, 2));
        assert_eq!(client.transcript.messages[1].content, text.as_str());
    }
    client.cut();
    client.come_back();
    assert_eq!(client.frames.last().unwrap()["resumed"], "replay");
}

#[test]
fn a_cursor_behind_the_tail_gives_a_snapshot() {
    let stage = Stage::of(&["one/ok?chunks=3000"]);
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    let mut away = client.tab("tab-2");
    away.cut();
    client.chat("c-1", "hello");
    // On a busy machine this reader falls behind too: then a snapshot has the end.
    client.until("the whole answer", |frame| {
        frame["type"] == "done" || frame["type"] == "snapshot" && frame["open"].is_null()
    });
    assert!(client.transcript.seq > 2500, "more than a tail holds: {}", client.transcript.seq);
    away.transcript.epoch.clone_from(&client.transcript.epoch);
    away.come_back();
    assert_eq!(away.frames.last().unwrap()["resumed"], "snapshot");
    away.next_of("snapshot");
    assert_eq!(away.transcript, client.transcript);
    assert_eq!((away.transcript.messages.len(), away.transcript.open.is_none()), (2, true));
}

#[test]
fn all_tabs_see_the_same_and_one_that_comes_in_the_middle_too() {
    let stage = slow();
    let mut one = SessionClient::begin(stage.gateway.address(), "tab-1");
    let mut two = one.tab("tab-2");
    two.chat("c-1", "hello");
    one.next_of("content");
    let mut three = one.tab("tab-3");
    let text = one.answer();
    assert_eq!((two.answer(), three.answer()), (text.clone(), text));
    assert_eq!(one.transcript, two.transcript);
    assert_eq!(one.transcript, three.transcript);
}

#[test]
fn a_tab_that_was_duplicated_and_its_first_one_both_come_back() {
    for first_one_is_first in [true, false] {
        let stage = slow();
        let mut one = SessionClient::begin(stage.gateway.address(), "tab-1");
        // What a browser does: the new tab has the other one's token.
        let mut two = one.tab("tab-2");
        for _ in 0..2 {
            let (first, second) =
                if first_one_is_first { (&mut one, &mut two) } else { (&mut two, &mut one) };
            first.come_back();
            second.come_back();
        }
        one.chat("c-1", "hello");
        let text = one.answer();
        assert_eq!(two.answer(), text);
    }
}

#[test]
fn the_newest_connection_of_a_tab_wins() {
    let stage = slow();
    let mut old = SessionClient::begin(stage.gateway.address(), "tab-1");
    let mut new = old.tab("tab-1");
    assert_eq!(old.end(), SessionEnd::Closed(4409));
    new.chat("c-1", "hello");
    assert!(!new.answer().is_empty());
}

#[test]
fn a_turn_runs_on_without_a_reader_and_its_answer_is_there_later() {
    let stage = slow();
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    client.chat("c-1", "hello");
    client.next_of("accepted");
    client.cut();
    until("the answer is there", || {
        client.come_back();
        client.send(&json!({"type": "ping"}));
        client.next_of("pong");
        client.transcript.open.is_none().then_some(())
    });
    assert_eq!((client.transcript.messages.len(), stage.calls().0), (2, 1));
}

#[test]
fn a_turn_without_a_reader_is_cancelled_where_the_config_says_so() {
    let stage = Stage::with(&["one/stall?after=10"], |config| {
        config.sessions.on_detach = koboshi_config::sessions::OnDetach::Cancel;
    });
    let begun = std::time::Instant::now();
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    client.chat("c-1", "hello");
    client.next_of("content");
    client.cut();
    until("the provider is let go", || (stage.one.cancelled() == 1).then_some(()));
    assert!(begun.elapsed() < ms(30_000), "after 10 s, and not after the 10 min of a turn that runs on");
    client.come_back();
    client.next_of("done");
    assert_eq!(client.transcript.messages[1].reason, Some(koboshi::session::DoneReason::Cancelled));
}

#[test]
fn a_connection_lasts_its_time_and_its_client_is_asked_to_come_back() {
    let stage = Stage::with(&["one/ok"], |config| config.sessions.connection_lifetime = ms(200));
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    assert_eq!(client.next_of("goaway")["reason"], "lifetime");
    assert_eq!(client.end(), SessionEnd::Closed(4200));
    client.come_back();
    client.chat("c-1", "hello");
    assert!(!client.answer().is_empty(), "the session stays");
}

#[test]
fn a_client_that_answers_no_ping_is_let_go_and_its_session_stays() {
    let stage = Stage::with(&["one/ok"], |config| config.sessions.heartbeat = ms(200));
    let mut silent = SessionClient::begin(stage.gateway.address(), "tab-1");
    let mut alive = silent.tab("tab-2");
    let begun = std::time::Instant::now();
    // Who reads answers the pings that it finds; who does not is like one whose network is gone.
    until("it was silent for longer than it may be", || {
        alive.send(&json!({"type": "ping"}));
        alive.next_of("pong");
        (begun.elapsed() > ms(1500)).then_some(())
    });
    assert_eq!(silent.end(), SessionEnd::Cut);
    assert!(begun.elapsed() < ms(20_000), "it was noticed without its help");
    alive.chat("c-1", "hello");
    assert!(!alive.answer().is_empty(), "the other one is not disturbed");
}

#[test]
fn a_session_that_is_forgotten_is_gone_for_every_tab() {
    let stage = slow();
    let mut one = SessionClient::begin(stage.gateway.address(), "tab-1");
    let mut two = one.tab("tab-2");
    one.chat("c-1", "hello");
    one.answer();
    one.send(&json!({"type": "bye", "forget": true}));
    assert_eq!(one.end(), SessionEnd::Closed(4410));
    assert_eq!(two.end(), SessionEnd::Closed(4410));
    let mut again = SessionClient::dial(
        stage.gateway.address(),
        "/v1/session",
        &[("sec-websocket-protocol", "koboshi.v1")],
    )
    .unwrap();
    again.send(&one.hello_again());
    assert_eq!(again.next_of("error")["kind"], "conversation_not_found");
    assert_eq!(again.end(), SessionEnd::Closed(4404));
}

#[test]
fn a_client_is_asked_to_come_back_before_the_gateway_stops() {
    let mut stage = Stage::with(&["one/ok"], |config| config.serve.drain = ms(2000));
    let mut client = SessionClient::begin(stage.gateway.address(), "tab-1");
    client.chat("c-1", "hello");
    client.answer();
    let gateway = stage.gateway;
    let stopping = std::thread::spawn(move || gateway.stop());
    let goaway = client.next_of("goaway");
    assert_eq!(goaway["reason"], "restart");
    assert!(goaway["reconnect_ms"].as_u64().unwrap() > 0);
    assert_eq!(client.end(), SessionEnd::Closed(4200));
    stopping.join().unwrap();
    stage.gateway = start(stage.config.clone(), &stage.store).unwrap();
    client.come_back_at(stage.gateway.address());
    assert_eq!(client.frames.last().unwrap()["resumed"], "replay", "the same log, the same epoch");
    client.chat("c-2", "hello");
    assert!(!client.answer().is_empty());
    assert_eq!(client.transcript.messages.len(), 4);
}

#[test]
fn a_gateway_with_a_few_clients_stops_at_once() {
    let stage = Stage::with(&["one/ok"], |config| config.serve.drain = ms(60_000));
    let mut clients: Vec<_> =
        (0..4).map(|tab| SessionClient::begin(stage.gateway.address(), &format!("tab-{tab}"))).collect();
    let begun = std::time::Instant::now();
    stage.gateway.stop();
    assert!(begun.elapsed() < ms(20_000), "{:?}", begun.elapsed());
    for client in &mut clients {
        assert_eq!(client.end(), SessionEnd::Closed(4200));
    }
}

#[test]
fn a_reader_that_was_away_gets_larger_steps_and_the_same_text() {
    let stage = Stage::of(&["one/ok?gap=1ms&chunks=3000"]);
    let mut fast = SessionClient::begin(stage.gateway.address(), "tab-1");
    let mut slow = fast.tab("tab-2");
    fast.chat("c-1", "hello");
    // Away for most of the answer, it gets in one step what the other one got piece by piece.
    slow.next_of("content");
    slow.cut();
    fast.until("half of it", |frame| frame["at"].as_u64() > Some(4000));
    slow.come_back();
    slow.next_of("content");
    assert!(slow.frames.iter().any(|frame| frame["first"].is_u64()), "pieces were merged");
    let text = fast.answer();
    assert_eq!(slow.answer(), text);
    assert!(
        slow.count("content") < fast.count("content"),
        "{:?}",
        (slow.count("content"), fast.count("content"))
    );
    assert_eq!(slow.transcript.messages, fast.transcript.messages);
}

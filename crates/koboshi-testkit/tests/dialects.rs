//! The upstream in every dialect over real sockets: by the path, with the vendor's own falls.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};

use koboshi_testkit::dialect::{assert_healthy, body, healthy, path, read_answer};
use koboshi_testkit::questions::{chat, with_tools};
use koboshi_testkit::{Answer, Client, Upstream};
use koboshi_wire::Dialect;
use serde_json::{Value, json};

fn client(upstream: &Upstream) -> Client {
    Client::to(SocketAddr::from((Ipv4Addr::LOCALHOST, upstream.port())))
}

fn asked(client: &mut Client, path: &str, body: &str) -> Answer {
    client.send("POST", path, &[("x-test", "a")], body.as_bytes());
    client.read()
}

fn named(mut chat: Value, model: &str) -> Value {
    chat["model"] = json!(model);
    chat
}

#[test]
fn every_dialect_is_spoken_at_its_path_on_one_connection() {
    let upstream = Upstream::start();
    let mut client = client(&upstream);
    for dialect in Dialect::ALL {
        for stream in [true, false] {
            for question in [chat(stream), with_tools(stream, "both in parallel")] {
                let question = named(question, "ok");
                let answer = asked(&mut client, &path(dialect, "ok", stream), &body(dialect, &question));
                assert_eq!(answer.is_stream(), stream, "{dialect:?}");
                assert_healthy(dialect, &answer, &question);
                assert_eq!(read_answer(dialect, &answer).text, healthy(Dialect::Chat, &question).text);
            }
        }
    }
    assert_eq!((upstream.calls("ok"), upstream.open_connections()), (16, 1));
    let seen = upstream.requests();
    let last = seen.last().unwrap();
    assert_eq!((last.dialect, last.header("x-test")), (Dialect::Gemini, Some("a")));
    assert_eq!((last.path.as_str(), last.query.as_str()), ("/v1beta/models/ok:generateContent", ""));
    assert!(seen.iter().any(|seen| seen.query == "alt=sse" && seen.path.ends_with(":streamGenerateContent")));
}

#[test]
fn clouds_offer_the_same_under_other_paths() {
    let upstream = Upstream::start();
    let mut client = client(&upstream);
    let question = named(chat(true), "elsewhere");
    for (path, dialect) in [
        ("/openai/deployments/ok/chat/completions?api-version=2024-10-21", Dialect::Chat),
        (
            "/v1/projects/p/locations/global/publishers/google/models/ok:streamGenerateContent?alt=sse",
            Dialect::Gemini,
        ),
        ("/v1/projects/p/locations/us/publishers/anthropic/models/ok:streamRawPredict", Dialect::Messages),
    ] {
        let answer = asked(&mut client, path, &body(dialect, &question));
        assert_healthy(dialect, &answer, &question);
    }
    let responses = body(Dialect::Responses, &named(chat(true), "ok"));
    assert_healthy(Dialect::Responses, &asked(&mut client, "/openai/v1/responses", &responses), &question);
    assert_eq!((upstream.calls("ok"), upstream.all_calls()), (4, 4), "the path names the model");
    assert_eq!(upstream.requests()[0].query, "api-version=2024-10-21");
}

#[test]
fn a_list_of_gemini_comes_in_pieces() {
    let upstream = Upstream::start();
    let question = chat(true);
    let text = body(Dialect::Gemini, &question);
    let mut client = client(&upstream);
    let answer = asked(&mut client, "/v1beta/models/ok:streamGenerateContent", &text);
    assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
    assert!(!answer.is_stream() && answer.json().as_array().unwrap().len() > 40);
    assert_healthy(Dialect::Gemini, &answer, &question);
    let cut = asked(&mut client, "/v1beta/models/cut%3Fafter=5:streamGenerateContent", &text);
    assert_eq!(cut.broken, Some(ErrorKind::ConnectionReset));
    assert_eq!((upstream.calls("cut?after=5"), read_answer(Dialect::Gemini, &cut).finish), (1, None));
}

#[test]
fn falls_are_real_in_every_dialect() {
    let upstream = Upstream::start();
    let question = named(chat(true), "m");
    for dialect in Dialect::ALL {
        let ask = |model: &str| {
            let question = named(question.clone(), model);
            asked(&mut client(&upstream), &path(dialect, model, true), &body(dialect, &question))
        };
        let whole = healthy(dialect, &question).text;
        let cut = ask("cut?after=9");
        assert_eq!((cut.status, cut.broken), (200, Some(ErrorKind::ConnectionReset)), "{dialect:?}");
        let said = read_answer(dialect, &cut);
        assert!(whole.starts_with(&said.text) && !said.text.is_empty() && !said.done, "{dialect:?}: {cut:?}");
        let reset = ask("reset");
        assert_eq!((reset.status, reset.broken), (0, Some(ErrorKind::ConnectionReset)), "{dialect:?}");
        let error = ask("in-band-error?after=4");
        assert_eq!((error.status, error.broken), (200, None));
        assert!(
            read_answer(dialect, &error).error && !read_answer(dialect, &error).done,
            "{dialect:?}: {error:?}"
        );
        let busy = ask("rate-429?retry_after=3");
        assert_eq!((busy.status, busy.json()["error"].is_object()), (429, true), "{dialect:?}");
        assert_eq!(busy.header("retry-after"), Some("3").filter(|_| dialect != Dialect::Gemini));
    }
    assert_eq!(upstream.calls("rate-429?retry_after=3"), 4, "counted by model, whatever is spoken");
}

#[test]
fn tokens_are_counted_at_their_paths() {
    let upstream = Upstream::start();
    let mut client = client(&upstream);
    let question = named(chat(false), "ok");
    let input = |dialect| healthy(dialect, &question).usage.unwrap().input;
    let messages = asked(&mut client, "/v1/messages/count_tokens", &body(Dialect::Messages, &question));
    assert_eq!(messages.json()["input_tokens"], input(Dialect::Messages));
    let gemini = asked(&mut client, "/v1beta/models/ok:countTokens", &body(Dialect::Gemini, &question));
    assert_eq!(gemini.json()["totalTokens"], input(Dialect::Gemini));
    let unknown = asked(&mut client, "/v1/elsewhere", "{}");
    assert_eq!((unknown.status, upstream.all_calls()), (404, 2), "a request to no endpoint is not counted");
}

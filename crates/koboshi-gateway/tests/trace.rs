//! What a collector of traces and logs gets, over real sockets.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use crate::operator::{JSON, address, ask, chat, chat_with, config, get, read_head, send, start};
use koboshi_gateway::Gateway;
use koboshi_sim::{Ask, play};
use koboshi_testkit::{DEADLINE, Upstream, until};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Said;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message;
use serde_json::json;

const CLIENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A collector that keeps what it gets: traces, or logs.
struct Collector<T = ExportTraceServiceRequest> {
    port: u16,
    got: Receiver<T>,
}

impl<T: Message + Default + 'static> Collector<T> {
    fn at(path: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, got) = channel();
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // Kept before it is answered: the gateway stops when it has the answer.
                if tell.send(take(&stream, path)).is_err() {
                    return;
                }
                answer(&stream);
            }
        });
        Self { port, got }
    }
}

impl Collector {
    fn start() -> Self {
        Self::at("/v1/traces")
    }

    /// Every span; the gateway has stopped, so there are no more.
    fn all(&self) -> Vec<Span> {
        let all = self.got.try_iter().flat_map(|request| request.resource_spans);
        all.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    /// The same, by name.
    fn spans(&self) -> BTreeMap<String, Span> {
        self.all().into_iter().map(|span| (span.name.clone(), span)).collect()
    }
}

fn take<T: Message + Default>(stream: &TcpStream, path: &str) -> T {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        reader.read_line(&mut head).unwrap();
    }
    assert!(head.starts_with(&format!("POST {path} HTTP/1.1")), "{head}");
    assert!(head.contains("content-type: application/x-protobuf"), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    T::decode(&*body).unwrap()
}

fn answer(mut stream: &TcpStream) {
    let body = ExportTraceServiceResponse::default().encode_to_vec();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&body).unwrap();
}

fn said(of: &[KeyValue], key: &str) -> Option<String> {
    let value = of.iter().find(|pair| pair.key == key)?.value.clone()?.value?;
    Some(match value {
        Said::StringValue(text) => text,
        Said::IntValue(number) => number.to_string(),
        Said::BoolValue(is) => is.to_string(),
        other => panic!("{key}: {other:?}"),
    })
}

fn gateway(port: u16) -> Gateway {
    start(config(&format!(
        "providers: {{shaky: {{kind: sim}}}}\nroutes: {{talk: [shaky/quota, sim/ok]}}\ntrace: {{otlp: 'http://127.0.0.1:{port}'}}\n"
    )))
}

#[test]
fn a_request_is_a_span_and_its_attempts_are_beneath_it() {
    let collector = Collector::start();
    let gateway = gateway(collector.port);
    let answer = chat_with(address(&gateway), "talk", &[("traceparent", CLIENT), ("x-request-id", "mine")]);
    assert_eq!(answer.status, 200);
    gateway.stop();

    let spans = collector.spans();
    let names: Vec<_> = spans.keys().map(String::as_str).collect();
    assert_eq!(names, ["chat ok", "chat quota", "chat talk"]);
    let root = &spans["chat talk"];
    assert_eq!(root.kind, SpanKind::Server as i32);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(&root.trace_id), "4bf92f3577b34da6a3ce929d0e0e4736", "the client's trace goes on");
    assert_eq!(hex(&root.parent_span_id), "00f067aa0ba902b7");
    for (key, value) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.request.model", "talk"),
        ("gen_ai.provider.name", "sim"),
        ("gen_ai.response.model", "ok"),
        ("koboshi.attempts", "2"),
        ("koboshi.request.id", "mine"),
        ("http.response.status_code", "200"),
    ] {
        assert_eq!(said(&root.attributes, key).as_deref(), Some(value), "{key}");
    }
    assert!(said(&root.attributes, "gen_ai.usage.output_tokens").is_some());
    assert_eq!(said(&root.attributes, "error.type"), None);

    let (fell, stood) = (&spans["chat quota"], &spans["chat ok"]);
    for attempt in [fell, stood] {
        assert_eq!((&attempt.trace_id, &attempt.parent_span_id), (&root.trace_id, &root.span_id));
        assert_eq!(attempt.kind, SpanKind::Client as i32);
        assert!(attempt.start_time_unix_nano >= root.start_time_unix_nano);
        assert!(attempt.end_time_unix_nano <= root.end_time_unix_nano);
    }
    assert_eq!(said(&fell.attributes, "error.type").as_deref(), Some("quota_exceeded"));
    assert_eq!(said(&fell.attributes, "koboshi.remedy").as_deref(), Some("elsewhere"));
    assert_eq!(said(&fell.attributes, "http.response.status_code").as_deref(), Some("429"));
    assert_eq!(fell.status.as_ref().map(|status| status.code), Some(StatusCode::Error as i32));
    assert_eq!(said(&stood.attributes, "error.type"), None);
    assert_eq!(said(&stood.attributes, "http.request.resend_count").as_deref(), Some("1"));
}

#[test]
fn an_answer_that_failed_says_why_and_who_sends_is_named() {
    let collector = Collector::start();
    let gateway = gateway(collector.port);
    assert_eq!(chat(address(&gateway), "shaky/quota").status, 429);
    gateway.stop();
    let request = collector.got.recv_timeout(DEADLINE).unwrap();
    let resource = request.resource_spans[0].resource.clone().unwrap();
    assert_eq!(said(&resource.attributes, "service.name").as_deref(), Some("koboshi"));
    assert_eq!(said(&resource.attributes, "service.instance.id").as_deref(), Some("operator-test"));
    let spans = &request.resource_spans[0].scope_spans[0].spans;
    let root = spans.iter().find(|span| span.parent_span_id.is_empty()).unwrap();
    assert_eq!(said(&root.attributes, "error.type").as_deref(), Some("quota_exceeded"));
    assert_eq!(said(&root.attributes, "http.response.status_code").as_deref(), Some("429"));
}

#[test]
fn a_client_that_disconnects_differs_from_an_answer() {
    let collector = Collector::start();
    let gateway = gateway(collector.port);
    let at = address(&gateway);
    let body =
        json!({"model": "sim/stall", "stream": true, "messages": [{"role": "user", "content": "hello"}]});
    let mut stream = send(at, "POST", "/v1/chat/completions", &[JSON], Some(&body.to_string()));
    assert_eq!(read_head(&mut stream).0, 200);
    drop(stream);
    until("the request is over", || {
        get(at, "/metrics").body.contains("koboshi_open_requests 1\n").then_some(())
    });
    gateway.stop();
    let root = &collector.spans()["chat sim/stall"];
    assert_eq!(said(&root.attributes, "error.type").as_deref(), Some("cancelled"));
}

/// The attempt was given up for this reason, and looks like it.
fn assert_withdrawn(span: &Span, kind: &str, why: &str) {
    assert_eq!(span.kind, SpanKind::Client as i32);
    assert_eq!(said(&span.attributes, "error.type").as_deref(), Some(kind), "{span:?}");
    assert_eq!(said(&span.attributes, "koboshi.withdrawn").as_deref(), Some(why), "{span:?}");
    assert_eq!(span.status.as_ref().map(|status| status.code), Some(StatusCode::Error as i32));
    assert_eq!(said(&span.attributes, "koboshi.remedy"), None, "nothing was done about it");
}

#[test]
fn an_attempt_whose_client_went_away_has_its_span_too() {
    // In the middle of a stream, before its first content, and before any head.
    for (model, stream) in [("stall?after=9", true), ("stall?after=0", true), ("silence", false)] {
        let collector = Collector::start();
        let gateway = gateway(collector.port);
        let at = address(&gateway);
        let body = json!({"model": format!("shaky/{model}"), "stream": stream,
            "messages": [{"role": "user", "content": "hello"}]});
        let client = send(at, "POST", "/v1/chat/completions", &[JSON], Some(&body.to_string()));
        let line = format!(
            "koboshi_attempts_total{{gen_ai_provider_name=\"shaky\",gen_ai_request_model=\"{model}\"}} 1"
        );
        until("it was asked", || get(at, "/metrics").body.contains(&line).then_some(()));
        drop(client);
        until("the request is over", || {
            get(at, "/metrics").body.contains("koboshi_open_requests 1\n").then_some(())
        });
        gateway.stop();
        let spans = collector.spans();
        let (attempt, root) = (&spans[&format!("chat {model}")], &spans[&format!("chat shaky/{model}")]);
        assert_withdrawn(attempt, "cancelled", "client");
        assert_eq!((&attempt.trace_id, &attempt.parent_span_id), (&root.trace_id, &root.span_id));
        assert_eq!(said(&root.attributes, "koboshi.attempts").as_deref(), Some("1"));
    }
}

#[test]
fn an_attempt_that_we_gave_up_has_its_span_too() {
    let collector = Collector::start();
    let other = Upstream::start();
    other.set("own", |ask| {
        let body = br#"{"messages":[{"role":"user","content":"quite another question"}],"stream":true}"#;
        play(&Ask { model: "ok", body, ..*ask })
    });
    let gateway = start(config(&format!(
        "providers: {{shaky: {{kind: sim}}, proud: {{kind: sim}}, other: {{kind: openai, base_url: '{}', keys: [k]}}}}\n\
         models: {{'proud/*': {{prefill: true}}}}\n\
         routes: {{proudly: [shaky/cut, 'proud/ok?prefill=refuse'], differently: [shaky/cut, other/own]}}\n\
         trace: {{otlp: 'http://127.0.0.1:{}'}}\n",
        other.url(),
        collector.port
    )));
    for (route, done) in [("proudly", true), ("differently", false)] {
        let body =
            json!({"model": route, "stream": true, "messages": [{"role": "user", "content": "hello"}]});
        let answer = ask(address(&gateway), "POST", "/v1/chat/completions", &[JSON], Some(&body.to_string()));
        assert_eq!(answer.body.contains("[DONE]"), done, "{answer:?}");
    }
    gateway.stop();
    let spans = collector.all();
    let attempts = |name: &str| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
    let proud = attempts("chat ok?prefill=refuse");
    assert_eq!(proud.len(), 2, "refused, and asked again without");
    assert_withdrawn(proud[0], "invalid_request", "prefill");
    assert_eq!(said(&proud[0].attributes, "http.response.status_code").as_deref(), Some("400"));
    assert_eq!(said(&proud[1].attributes, "error.type"), None);
    let own = attempts("chat own");
    assert_eq!(own.len(), 1);
    assert_withdrawn(own[0], "cancelled", "differs");
}

#[test]
fn what_the_client_does_not_sample_is_not_sent() {
    let collector = Collector::start();
    let gateway = gateway(collector.port);
    let unsampled = CLIENT.replace("-01", "-00");
    assert_eq!(chat_with(address(&gateway), "talk", &[("traceparent", &unsampled)]).status, 200);
    gateway.stop();
    assert!(collector.spans().is_empty());
}

#[test]
fn a_collector_that_is_away_costs_spans_and_nothing_else() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = unused.local_addr().unwrap().port();
    drop(unused);
    let gateway = gateway(port);
    let at = address(&gateway);
    assert_eq!(chat(at, "talk").status, 200);
    until("the spans are counted as dropped", || {
        get(at, "/metrics").body.contains("koboshi_trace_spans_dropped_total 3").then_some(())
    });
    assert_eq!(chat(at, "talk").status, 200);
}

#[test]
fn a_request_that_met_a_dead_connection_says_that_it_was_sent_again() {
    let (collector, upstream) = (Collector::start(), Upstream::start());
    let gateway = start(config(&format!(
        "providers: {{one: {{kind: openai, base_url: '{}', keys: [sk-own]}}}}\nroutes: {{first: [one/ok], second: [one/ok]}}\ntrace: {{otlp: 'http://127.0.0.1:{}'}}\n",
        upstream.url(),
        collector.port
    )));
    assert_eq!(chat(address(&gateway), "first").status, 200);
    until("its connection waits", || (upstream.idle_connections() == 1).then_some(()));
    upstream.stale_on_use();
    assert_eq!(chat(address(&gateway), "second").status, 200);
    gateway.stop();
    let spans = collector.spans();
    let told = |name: &str, key: &str| said(&spans[name].attributes, key);
    assert_eq!(told("chat first", "koboshi.resends"), None);
    assert_eq!(told("chat second", "koboshi.attempts").as_deref(), Some("1"));
    assert_eq!(told("chat second", "koboshi.resends").as_deref(), Some("1"));
}

/// The lines that a collector of logs got, by their sentence.
fn lines(collector: &Collector<ExportLogsServiceRequest>) -> BTreeMap<String, LogRecord> {
    let all = collector.got.try_iter().flat_map(|request| request.resource_logs);
    let all = all.flat_map(|resource| resource.scope_logs).flat_map(|scope| scope.log_records);
    let text = |record: &LogRecord| match record.body.clone().unwrap().value {
        Some(Said::StringValue(text)) => text,
        other => panic!("{other:?}"),
    };
    all.map(|record| (text(&record), record)).collect()
}

fn logging(port: u16, level: &str) -> Gateway {
    start(config(&format!(
        "providers: {{shaky: {{kind: sim}}}}\nroutes: {{talk: [shaky/quota, sim/ok]}}\nlog: {{level: {level}, otlp: 'http://127.0.0.1:{port}'}}\n"
    )))
}

#[test]
fn a_line_of_the_log_has_the_names_of_its_span() {
    let collector = Collector::<ExportLogsServiceRequest>::at("/v1/logs");
    let gateway = logging(collector.port, "info");
    assert_eq!(chat_with(address(&gateway), "talk", &[("x-request-id", "mine")]).status, 200);
    gateway.stop();
    let lines = lines(&collector);
    let (text, fell) = lines.iter().find(|(_, line)| said(&line.attributes, "error.type").is_some()).unwrap();
    assert!(!text.is_empty());
    for (key, value) in [
        ("error.type", "quota_exceeded"),
        ("errorCode", "KBS-3002"),
        ("koboshi.request.id", "mine"),
        ("koboshi.target", "shaky/quota"),
        ("koboshi.remedy", "elsewhere"),
        ("http.response.status_code", "429"),
        ("retryable", "true"),
    ] {
        assert_eq!(said(&fell.attributes, key).as_deref(), Some(value), "{key}: {fell:?}");
    }
    assert_eq!((fell.severity_text.as_str(), fell.severity_number), ("warn", 13));
    assert!(fell.time_unix_nano > 0);
    // The last line is sent too: the gateway waits for it.
    assert!(lines.keys().any(|line| line.starts_with("stopped after")), "{:?}", lines.keys());
}

#[test]
fn a_collector_of_logs_gets_no_more_than_the_log() {
    let collector = Collector::<ExportLogsServiceRequest>::at("/v1/logs");
    let gateway = logging(collector.port, "error");
    assert_eq!(chat(address(&gateway), "talk").status, 200);
    gateway.stop();
    assert!(lines(&collector).is_empty(), "a failed attempt is a warning");
}

#[test]
fn a_collector_of_logs_that_is_away_costs_lines_and_nothing_else() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = unused.local_addr().unwrap().port();
    drop(unused);
    let gateway = logging(port, "info");
    let at = address(&gateway);
    assert_eq!(chat(at, "talk").status, 200);
    until("the lines are counted as dropped", || {
        let metrics = get(at, "/metrics").body;
        let line = metrics.lines().find(|line| line.starts_with("koboshi_log_lines_dropped_total "))?;
        (!line.ends_with(" 0")).then_some(())
    });
    assert_eq!(chat(at, "talk").status, 200);
}

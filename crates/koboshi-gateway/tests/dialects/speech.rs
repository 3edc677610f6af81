//! How a client of a dialect asks, and what it hears.

use bytes::Bytes;
use koboshi_config::Config;
use koboshi_config::gateway::{ProviderDialect, ProviderKind};
use koboshi_testkit::Answer;
use koboshi_wire::Dialect;
use koboshi_wire::any::{Events, answer};
use koboshi_wire::sse::Framer;
use serde_json::{Value, json};

use crate::common::Stage;

/// Two providers that speak this dialect; the route `m` leads over the chain of the test.
pub(crate) fn stage(upstream: Dialect, chain: &[&str], change: impl FnOnce(&mut Config)) -> Stage {
    Stage::with(chain, |config| {
        for provider in config.providers.values_mut() {
            let address = provider.base_url.clone().unwrap();
            (provider.kind, provider.dialects) = match upstream {
                Dialect::Chat => (ProviderKind::Openai, vec![ProviderDialect::Chat]),
                Dialect::Responses => (ProviderKind::Openai, vec![ProviderDialect::Responses]),
                Dialect::Messages => (ProviderKind::Anthropic, Vec::new()),
                Dialect::Gemini => {
                    provider.base_url = Some(address.replace("/v1", "/v1beta"));
                    (ProviderKind::Gemini, Vec::new())
                }
            };
        }
        change(config);
    })
}

/// A question, as each dialect asks it: path and body.
pub(crate) fn question(dialect: Dialect, text: &str, stream: bool) -> (String, Value) {
    match dialect {
        Dialect::Chat => (
            "/v1/chat/completions".to_owned(),
            json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": text}]}),
        ),
        Dialect::Messages => (
            "/v1/messages".to_owned(),
            json!({"model": "m", "stream": stream, "max_tokens": 1000, "messages": [{"role": "user", "content": text}]}),
        ),
        Dialect::Responses => {
            ("/v1/responses".to_owned(), json!({"model": "m", "stream": stream, "input": text}))
        }
        Dialect::Gemini => {
            let verb = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
            (
                format!("/v1beta/models/m:{verb}"),
                json!({"contents": [{"role": "user", "parts": [{"text": text}]}]}),
            )
        }
    }
}

/// The same with a tool on offer.
pub(crate) fn with_tool(dialect: Dialect, text: &str, stream: bool) -> (String, Value) {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city", "days"]});
    let (path, mut body) = question(dialect, text, stream);
    body["tools"] = match dialect {
        Dialect::Chat => {
            json!([{"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters": schema}}])
        }
        Dialect::Messages => {
            json!([{"name": "get_weather", "description": "Weather", "input_schema": schema}])
        }
        Dialect::Responses => {
            json!([{"type": "function", "name": "get_weather", "description": "Weather", "parameters": schema}])
        }
        Dialect::Gemini => {
            json!([{"functionDeclarations": [{"name": "get_weather", "description": "Weather", "parametersJsonSchema": schema}]}])
        }
    };
    (path, body)
}

/// Asks.
pub(crate) fn ask(stage: &Stage, (path, body): &(String, Value)) -> Answer {
    let mut client = stage.client();
    client.send("POST", path, &[], body.to_string().as_bytes());
    client.read()
}

/// What a client heard.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ClientView {
    pub(crate) text: String,
    pub(crate) calls: Vec<(String, Value)>,
    pub(crate) finish: Option<String>,
    /// The terminal mark came, or the answer was no stream.
    pub(crate) done: bool,
    pub(crate) error: bool,
    /// Tokens sent and received.
    pub(crate) usage: Option<(u64, u64)>,
}

/// What a client of this dialect hears, as its own SDK would read it.
pub(crate) fn heard(dialect: Dialect, answer: &Answer) -> ClientView {
    assert_eq!((answer.status, answer.broken), (200, None), "{answer:?}");
    if answer.is_stream() { of_stream(dialect, &answer.body) } else { of_whole(dialect, &answer.body) }
}

fn of_whole(dialect: Dialect, body: &[u8]) -> ClientView {
    let whole = answer::read(dialect, body).unwrap();
    let choice = &whole.choices[0];
    let calls = choice.calls.iter().map(|call| {
        (call.name.as_deref().unwrap().to_owned(), serde_json::from_str(&call.arguments).unwrap())
    });
    ClientView {
        text: choice.text.as_deref().unwrap_or_default().to_owned(),
        calls: calls.collect(),
        finish: choice.finish.as_deref().map(str::to_owned),
        done: true,
        error: whole.error,
        usage: whole.usage.map(|usage| (usage.input, usage.output)),
    }
}

/// What a stream says.
pub(crate) fn of_stream(dialect: Dialect, body: &[u8]) -> ClientView {
    let (mut framer, mut events) = (Framer::new(usize::MAX), Events::of(dialect));
    framer.push(Bytes::copy_from_slice(body));
    let mut heard = ClientView::default();
    let mut calls: Vec<(u32, String, String)> = Vec::new();
    let rest = std::iter::from_fn(|| framer.next_frame()).map(Result::unwrap).collect::<Vec<_>>();
    for frame in rest.into_iter().chain(framer.finish()) {
        let Some(data) = events.data(&frame).unwrap() else { continue };
        assert!(!heard.done, "nothing comes after the terminal mark: {data}");
        let step = events.read(frame.event(), &data).unwrap();
        heard.text.push_str(step.text.as_deref().unwrap_or_default());
        for piece in &step.calls {
            if !calls.iter().any(|(index, ..)| *index == piece.index) {
                calls.push((piece.index, String::new(), String::new()));
            }
            let call = calls.iter_mut().find(|(index, ..)| *index == piece.index).unwrap();
            call.1.push_str(piece.name.as_deref().unwrap_or_default());
            call.2.push_str(piece.arguments.as_deref().unwrap_or_default());
        }
        heard.finish = step.finish.first().map(|(_, reason)| reason.to_string()).or(heard.finish);
        heard.usage = step.usage.map(|usage| (usage.input, usage.output)).or(heard.usage);
        heard.error |= step.error;
        heard.done |= step.done;
    }
    heard.calls =
        calls.into_iter().map(|(_, name, text)| (name, serde_json::from_str(&text).unwrap())).collect();
    heard
}

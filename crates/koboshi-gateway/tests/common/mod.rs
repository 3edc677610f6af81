//! A gateway on a free port, two providers on real sockets, and a client: what every suite needs.
//!
//! Pauses are short and limits long unless a test says otherwise, so nothing here depends on how busy the machine is.

#![allow(dead_code, unreachable_pub, unused_imports, reason = "every suite uses a part of it")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers of gauges")]

pub mod hooked;

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi::models::Facts;
use koboshi_config::Config;
use koboshi_config::gateway::{LogFormat, ProviderConfig, ProviderKind, RouteConfig, Timeouts};
use koboshi_config::secret::Secret;
use koboshi_gateway::{Gateway, Setup, StartError};
use koboshi_store::{Entry, MemoryStore, Query, Store};
use koboshi_testkit::{Upstream, until};
use serde_json::Value;

pub use koboshi_testkit::questions::*;
pub use koboshi_testkit::{Answer, Client};

/// Milliseconds.
pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A config for tests: any port, one thread, short pauses, enough retries.
pub fn config() -> Config {
    let mut config = Config::default();
    config.serve.listen = "127.0.0.1:0".parse().unwrap();
    config.serve.threads = Some(1);
    config.serve.drain = ms(200);
    config.remedy.backoff.first = ms(1);
    config.remedy.backoff.cap = ms(5);
    config.remedy.quick = ms(2);
    config.retry_share.per_second = 100.0;
    config
}

/// A provider at this address.
pub fn provider(url: String) -> ProviderConfig {
    ProviderConfig {
        base_url: Some(url),
        keys: vec![Secret::new("sk-own")],
        ..ProviderConfig::new(ProviderKind::Openai)
    }
}

/// A route with this chain.
pub fn route(chain: &[&str]) -> RouteConfig {
    RouteConfig { chain: chain.iter().map(|&link| link.to_owned()).collect(), ..RouteConfig::default() }
}

/// Starts a gateway with this config.
pub fn start(config: Config, store: &MemoryStore) -> Result<Gateway, StartError> {
    start_as(config, store, false)
}

/// Starts a gateway on a machine in this time zone.
pub fn start_in(zone: TimeZone, config: Config, store: &MemoryStore) -> Result<Gateway, StartError> {
    Gateway::start(Setup { zone, ..setup(config, Arc::new(store.clone())) })
}

/// Starts a gateway that answers everything by itself.
pub fn start_demo(config: Config, store: &MemoryStore) -> Result<Gateway, StartError> {
    start_as(config, store, true)
}

/// Starts a gateway on this store that writes its log there.
pub fn start_on(config: Config, store: Arc<dyn Store>, log: Option<Lines>) -> Result<Gateway, StartError> {
    Gateway::start(Setup {
        log: log.map(|log| Box::new(log) as Box<dyn Write + Send>),
        ..setup(config, store)
    })
}

fn start_as(config: Config, store: &MemoryStore, demo: bool) -> Result<Gateway, StartError> {
    Gateway::start(Setup { demo, ..setup(config, Arc::new(store.clone())) })
}

fn setup(config: Config, store: Arc<dyn Store>) -> Setup {
    Setup {
        config,
        store,
        node: "test".parse().unwrap(),
        lookup: Arc::new(|_: &str| None),
        zones: TimeZoneDatabase::none(),
        zone: TimeZone::UTC,
        log: None,
        log_format: LogFormat::Json,
        seed: 7,
        demo: false,
        operator: koboshi_gateway::Operator::default(),
    }
}

/// Where a log is written and read.
#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// The lines so far.
    pub fn all(&self) -> Vec<Value> {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = String::from_utf8(bytes).unwrap();
        // The last one may be half written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Those that say this.
    pub fn like(&self, text: &str) -> Vec<Value> {
        let says = |line: &Value| line["message"].as_str().is_some_and(|message| message.contains(text));
        self.all().into_iter().filter(says).collect()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A gateway before two providers, `one` and `two`; the route `m` leads over the chain of the test.
pub struct Stage {
    pub gateway: Gateway,
    pub one: Upstream,
    pub two: Upstream,
    pub store: MemoryStore,
    pub config: Config,
}

impl Stage {
    /// With this chain for the model `m`.
    pub fn of(chain: &[&str]) -> Self {
        Self::with(chain, |_| {})
    }

    /// With this chain for the model `m`, and a config that the test changes.
    pub fn with(chain: &[&str], change: impl FnOnce(&mut Config)) -> Self {
        Self::logging(chain, None, change)
    }

    /// The same, with a log that the test reads.
    pub fn logging(chain: &[&str], log: Option<&Lines>, change: impl FnOnce(&mut Config)) -> Self {
        let (one, two) = (Upstream::start(), Upstream::start());
        let mut config = config();
        config.providers.insert("one".to_owned(), provider(one.url()));
        config.providers.insert("two".to_owned(), provider(two.url()));
        if !chain.is_empty() {
            config.routes.insert("m".to_owned(), route(chain));
        }
        change(&mut config);
        let store = MemoryStore::default();
        let gateway = start_on(config.clone(), Arc::new(store.clone()), log.cloned()).unwrap();
        Self { gateway, one, two, store, config }
    }

    pub fn client(&self) -> Client {
        Client::to(self.gateway.address())
    }

    /// Posts a chat request with more headers.
    pub fn post(&self, body: &Value, headers: &[(&str, &str)]) -> Answer {
        let mut client = self.client();
        client.send("POST", "/v1/chat/completions", headers, body.to_string().as_bytes());
        client.read()
    }

    /// Posts a chat request.
    pub fn ask(&self, body: &Value) -> Answer {
        self.post(body, &[])
    }

    pub fn get(&self, path: &str) -> Answer {
        let mut client = self.client();
        client.send("GET", path, &[], b"");
        client.read()
    }

    /// Restarts the counts.
    pub fn reset(&self) {
        self.one.reset_counts();
        self.two.reset_counts();
    }

    /// How often the two providers were asked.
    pub fn calls(&self) -> (u64, u64) {
        (self.one.all_calls(), self.two.all_calls())
    }

    /// How a target's breaker stands.
    pub fn breaker(&self, target: &str) -> String {
        let (provider, model) = target.split_once('/').unwrap();
        let labels = format!("gen_ai_provider_name=\"{provider}\",gen_ai_request_model=\"{model}\"");
        let text = self.get("/metrics").text();
        let state = gauge(&text, &format!("koboshi_breaker_state{{{labels}}}"));
        let state = state.unwrap_or_else(|| panic!("{target} is not in {text}"));
        ["closed", "probing", "open"][state as usize].to_owned()
    }

    /// Waits until a target's breaker stands like this.
    pub fn until_breaker(&self, target: &str, mode: &str) {
        until(&format!("{target} is {mode}"), || (self.breaker(target) == mode).then_some(()));
    }

    /// The journal, once it has an entry like this.
    pub fn journal(&self, what: &str, like: impl Fn(&Entry) -> bool) -> Entry {
        until(what, || {
            let query = Query { limit: 1000, ..Query::default() };
            self.store.query(&query).unwrap().into_iter().find(|entry| like(entry))
        })
    }

    /// No request is being served any more, and none waits at the providers.
    pub fn wait_until_quiet(&self) {
        until("the gateway is quiet", || {
            let text = self.get("/metrics").text();
            // The look itself is one request.
            gauge(&text, "koboshi_open_requests").is_none_or(|open| open <= 1.0).then_some(())
        });
    }
}

/// The value of a line of metrics.
pub fn gauge(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(name) && !line.starts_with('#'))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// A provider's limits: short ones for what a test is about.
pub fn timeouts(config: &mut Config, provider: &str, change: impl FnOnce(&mut Timeouts)) {
    change(&mut config.providers.get_mut(provider).unwrap().timeouts);
}

/// What a model can do.
pub fn model(config: &mut Config, name: &str, said: impl FnOnce(&mut Facts)) {
    said(&mut config.models.entry(name.to_owned()).or_default().facts);
}

/// The answer is an error with this status and code, in the dialect's envelope, that no SDK multiplies.
pub fn assert_error(answer: &Answer, status: u16, kind: &str) -> Value {
    assert_eq!((answer.status, answer.broken), (status, None), "{answer:?}");
    let error = answer.json()["error"].clone();
    assert_eq!(error["koboshi"]["kind"], kind, "{error}");
    assert_eq!(answer.header("x-koboshi-fault"), Some(kind));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert!(answer.header("x-should-retry").is_some());
    for field in ["message", "type", "code"] {
        assert!(error[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {error}");
    }
    assert!(error["koboshi"]["errorCode"].as_str().unwrap().starts_with("KBS-"), "{error}");
    error
}

/// A stream that had begun ends with one error and no terminal mark.
pub fn assert_broken_stream(answer: &Answer, kind: &str) {
    assert_eq!((answer.status, answer.broken), (200, None), "{answer:?}");
    assert!(!answer.is_done() && !answer.text().contains("[DONE]"), "{}", answer.text());
    let errors: Vec<Value> = answer.chunks().iter().filter_map(|chunk| chunk.get("error").cloned()).collect();
    assert_eq!(errors.len(), 1, "{}", answer.text());
    assert_eq!(errors[0]["koboshi"]["kind"], kind, "{}", errors[0]);
    assert_eq!(answer.finish(), None, "an answer that broke has no end");
    assert!(answer.chunks().last().unwrap().get("error").is_some(), "nothing comes after the error");
}

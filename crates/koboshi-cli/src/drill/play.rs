//! One scenario against one route: the questions of the client, what the providers do, and the store.

use std::sync::{Arc, Mutex, PoisonError};

use koboshi_config::Config;
use koboshi_gateway::{Cue, Rehearsal, RehearsedTarget, Script};
use koboshi_sim::{Asks, Reach, Scenario, ScenarioFall, StoreTrouble};
use koboshi_store::{MemoryStore, Node, Store};
use serde_json::{Value, json};

use super::judge::{self, Outcome};
use super::report::Route;
use super::store::FailingStore;
use crate::{Failure, clock};

/// A target that never falls: the advice puts it into chains.
pub(super) const SPARE: &str = "sim/koboshi-drill";
/// How often a tool call was made before the guard tells a model to stop.
const LOOPED: usize = 12;

/// Plays scenarios.
pub(super) struct Player {
    rehearsal: Rehearsal,
}

impl Player {
    pub(super) fn new(config: &Config) -> Result<Self, Failure> {
        let node = "drill".parse::<Node>().map_err(|_| Failure::new("this process has no name"))?;
        let zone = clock::now().time_zone().clone();
        let rehearsal = Rehearsal::new(config, node, clock::zones(), zone)
            .map_err(|error| Failure::new(error.to_string()))?;
        Ok(Self { rehearsal })
    }

    /// What a client would see.
    pub(super) fn play(
        &self,
        config: &Config,
        route: &Route,
        scenario: &Scenario,
    ) -> Result<Outcome, Failure> {
        let questions: Vec<Value> =
            (0..scenario.requests).map(|number| question(scenario.asks, &route.model, number)).collect();
        let requests = questions.iter().map(|body| body.to_string().into_bytes()).collect();
        let store: Arc<dyn Store> = match scenario.store {
            StoreTrouble::None => Arc::new(MemoryStore::default()),
            StoreTrouble::Away => Arc::new(FailingStore::away()),
            StoreTrouble::Full => Arc::new(FailingStore::full()),
        };
        let answers = self
            .rehearsal
            .play(config, store, script(scenario), requests)
            .map_err(|error| Failure::new(error.to_string()))?;
        Ok(judge::outcome(scenario, config, &questions, &answers))
    }
}

/// The target that is asked first falls, with all that its fall reaches.
fn script(scenario: &Scenario) -> Script {
    let first: Mutex<Option<RehearsedTarget>> = Mutex::default();
    let (reach, fall) = (scenario.reach, scenario.fall);
    Arc::new(move |asked: &RehearsedTarget| {
        let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
        let first = first.get_or_insert_with(|| asked.clone());
        if &*asked.name == SPARE || !reaches(reach, first, asked) {
            return Cue::Play("ok".to_owned());
        }
        match fall {
            ScenarioFall::Play(name) => Cue::Play(name.to_owned()),
            ScenarioFall::Unresolved => Cue::Unresolved,
            ScenarioFall::Untrusted => Cue::Untrusted,
        }
    })
}

fn reaches(reach: Reach, first: &RehearsedTarget, asked: &RehearsedTarget) -> bool {
    match reach {
        Reach::Everything => true,
        Reach::Provider => first.provider == asked.provider,
        Reach::Model => first.name == asked.name,
        Reach::Key => first.key == asked.key && first.provider == asked.provider,
        Reach::Account => first.account == asked.account && first.provider == asked.provider,
    }
}

/// What the client asks. Each question differs, so that no cached answer fits.
fn question(asks: Asks, model: &str, number: u32) -> Value {
    let text = match asks {
        Asks::Tool => format!("Question {number}: look up the weather in Aizu."),
        _ => format!("Question {number}: tell me at length about the doll that gets back up."),
    };
    let mut messages = vec![json!({"role": "user", "content": text})];
    if asks == Asks::Loop {
        for at in 0..LOOPED {
            let id = format!("call_{at}");
            let call = json!({"id": id, "type": "function",
                "function": {"name": "look_up", "arguments": "{\"city\":\"Aizu\"}"}});
            messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
            messages.push(json!({"role": "tool", "tool_call_id": id, "content": "no such city"}));
        }
    }
    let mut body = json!({"model": model, "stream": asks != Asks::Whole, "messages": messages});
    if matches!(asks, Asks::Tool | Asks::Loop) {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}},
            "required": ["city"], "additionalProperties": false});
        if let Some(body) = body.as_object_mut() {
            body.insert(
                "tools".to_owned(),
                json!([{"type": "function", "function": {"name": "look_up", "parameters": schema}}]),
            );
        }
    }
    body
}

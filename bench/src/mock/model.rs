//! The models that were asked for: what each does, how often it was asked, and whether it is in an outage.
//!
//! One thread serves everything, so cells are enough. Answers are written once and sent as they are.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use koboshi_bench::clock;

use crate::dialect::{DIALECTS, Dialect, Speech};
use crate::plan::{Fall, Plan};

/// What is ready in one dialect.
pub(crate) struct Written {
    /// The whole answer, head and body.
    pub(crate) whole: Vec<u8>,
    /// The parts of a stream.
    pub(crate) speech: Speech,
}

/// A model by its name.
pub(crate) struct Model {
    /// What its name says.
    pub(crate) plan: Plan,
    speeches: [Written; 4],
    calls: Cell<u64>,
    outage: Cell<Option<Fall>>,
    /// When it was asked; kept from its first outage on.
    asked: RefCell<Option<Vec<u64>>>,
}

impl Model {
    fn new(name: &str) -> Self {
        let plan = Plan::of(name);
        let name = serde_json::Value::from(name).to_string();
        let speeches = DIALECTS.map(|dialect| {
            let speech = Speech::new(dialect, &name, plan.chunks);
            Written { whole: json("200 OK", "", &speech.whole), speech }
        });
        Self { plan, speeches, calls: Cell::new(0), outage: Cell::new(None), asked: RefCell::new(None) }
    }

    /// What it says in this dialect.
    pub(crate) fn in_dialect(&self, dialect: Dialect) -> &Written {
        let [chat, messages, responses, gemini] = &self.speeches;
        match dialect {
            Dialect::Chat => chat,
            Dialect::Messages => messages,
            Dialect::Responses => responses,
            Dialect::Gemini => gemini,
        }
    }

    /// Counts a call and says how it falls, if it does.
    pub(crate) fn call(&self) -> Option<Fall> {
        self.calls.set(self.calls.get() + 1);
        if let Some(asked) = self.asked.borrow_mut().as_mut() {
            asked.push(clock::now());
        }
        self.outage.get().or(self.plan.fall)
    }
}

/// Everything the mock knows.
#[derive(Default)]
pub(crate) struct Models {
    known: RefCell<HashMap<String, Rc<Model>>>,
}

impl Models {
    /// The model of this name; it exists from now on.
    pub(crate) fn named(&self, name: &str) -> Rc<Model> {
        if let Some(model) = self.known.borrow().get(name) {
            return Rc::clone(model);
        }
        let model = Rc::new(Model::new(name));
        self.known.borrow_mut().insert(name.to_owned(), Rc::clone(&model));
        model
    }

    /// Begins or ends an outage. The calls of the model are noted with their times from its first outage on.
    pub(crate) fn outage(&self, name: &str, fall: Option<Fall>) {
        let model = self.named(name);
        model.outage.set(fall);
        model.asked.borrow_mut().get_or_insert_with(Vec::new);
    }

    /// Forgets every model.
    pub(crate) fn forget(&self) {
        self.known.borrow_mut().clear();
    }

    /// Calls per model, and the times of those that had an outage.
    pub(crate) fn stats(&self) -> String {
        let known = self.known.borrow();
        let calls: HashMap<&str, u64> =
            known.iter().map(|(name, model)| (name.as_str(), model.calls.get())).collect();
        let asked: HashMap<&str, Vec<u64>> = known
            .iter()
            .filter_map(|(name, model)| model.asked.borrow().clone().map(|times| (name.as_str(), times)))
            .collect();
        serde_json::json!({ "now": clock::now(), "calls": calls, "asked": asked }).to_string()
    }
}

/// A JSON answer; headers end with a line break each.
pub(crate) fn json(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

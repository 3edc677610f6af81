//! A session as a model: tabs that are cut at any place, an owner that crashes, is replaced while it is paused, or hands over, a store that is
//! behind or has lost its last write. After any schedule of steps all tabs show what the log says (P1).
//!
//! The tests and the properties that they hold:
//!
//! | | Property | Test |
//! |---|---|---|
//! | P1 | any schedule of cuts: equal transcripts | `every_schedule_ends_with_equal_transcripts`, `a_lost_write_costs_no_chat_and_no_agreement` |
//! | P2 | a replay gives what the live frames gave | the same: tabs come back at any cursor |
//! | P3 | merged frames change nothing | the same: every connection merges to a length of its own |
//! | P4 | duplicates and stale attempts change nothing | the same: frames are delivered twice, a paused owner goes on writing |
//! | P5 | one turn per chat id, one run per call | the same, [`World::check`] |
//! | P6 | numbers are dense in an epoch, and an epoch never returns | the same, [`World::note`] |
//! | P7 | after `done` only a rewind speaks of a turn | the same, [`World::note`] |
//! | P8 | memory is bounded | `a_log_holds_no_more_than_its_limits` |
//! | P9 | every state has a way to its end | the same as P1: [`World::quiet`] ends in a bounded number of rounds |
//! | P10 | no secret in frame, log or close reason | the gateway's `sessions/hostile.rs` |

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use koboshi::session::{
    Body, Busy, Change, Chat, ClientFrame, DoneReason, Entry, ErrorBody, Event, FrameResult, Limits, Log,
    Place, RetryLater, Runs, Source, Texts, Tool, ToolResult, ToolState, ToolStatus, Transcript, TurnState,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const TABS: usize = 2;

fn limits() -> Limits {
    Limits { max_tail: 12, ..Limits::default() }
}

/// What may happen next.
#[derive(Debug, Clone)]
enum Step {
    Say(usize),
    Cancel(usize),
    Retry(usize),
    Trim(usize),
    Claim(usize),
    Connect(usize),
    Cut(usize),
    /// Frames of the tab reach the owner.
    ToServer(usize),
    /// The owner writes this many events to the connection.
    Pump(usize, usize),
    /// This many frames reach the tab, the first one twice.
    ToClient(usize, usize, bool),
    Text(u8),
    Call,
    Finish,
    Breaks,
    Store,
    Crash,
    /// The owner is replaced while it is paused; its readers stay with it until it notices.
    Pause,
    HandOver,
}

fn step() -> impl Strategy<Value = Step> {
    let tab = 0..TABS;
    prop_oneof![
        3 => tab.clone().prop_map(Step::Say),
        1 => tab.clone().prop_map(Step::Cancel),
        1 => tab.clone().prop_map(Step::Retry),
        1 => tab.clone().prop_map(Step::Trim),
        2 => tab.clone().prop_map(Step::Claim),
        4 => tab.clone().prop_map(Step::Connect),
        2 => tab.clone().prop_map(Step::Cut),
        6 => tab.clone().prop_map(Step::ToServer),
        6 => (tab.clone(), 1..6_usize).prop_map(|(tab, count)| Step::Pump(tab, count)),
        6 => (tab, 1..6_usize, any::<bool>()).prop_map(|(tab, count, twice)| Step::ToClient(tab, count, twice)),
        10 => any::<u8>().prop_map(Step::Text),
        2 => Just(Step::Call),
        2 => Just(Step::Finish),
        2 => Just(Step::Breaks),
        3 => Just(Step::Store),
        1 => Just(Step::Crash),
        1 => Just(Step::Pause),
        1 => Just(Step::HandOver),
    ]
}

/// A connection: the server's cursor, and what is on its way.
struct Connection {
    cursor: (String, u64),
    place: Option<Place>,
    to_client: VecDeque<Value>,
    to_server: VecDeque<ClientFrame>,
    merges: usize,
}

/// A chat that was sent, kept until its answer is done.
struct Sent {
    id: String,
    is_accepted: bool,
}

#[derive(Default)]
struct Tab {
    name: String,
    transcript: Transcript,
    outbox: Vec<Sent>,
    connection: Option<Connection>,
    /// The calls whose tool it has run, in the memory of its page.
    ran: BTreeSet<String>,
    is_at_paused: bool,
}

/// What the store has: the log as it was stored whole, and the entries since then and in the tail.
#[derive(Clone)]
struct Stored {
    head: Value,
    /// The number of the log that was stored whole.
    whole: u64,
    entries: Vec<Entry>,
}

struct World {
    log: Log,
    /// Events that are shown and not stored.
    unstored: Vec<Entry>,
    /// The log must be stored whole: its epoch is a new one.
    head_is_old: bool,
    /// The store, newest last: the ones before are what it has after it lost its last writes.
    stored: Vec<Stored>,
    /// How many of the last writes a crash of the store may take.
    loses: usize,
    paused: Option<Log>,
    tabs: Vec<Tab>,
    /// What was ever shown under a number.
    shown: BTreeMap<(String, u64), Event>,
    epochs: u64,
    ids: u64,
    said: Vec<String>,
    runs: BTreeMap<String, u32>,
}

impl World {
    fn new(loses: usize) -> Self {
        let log = Log::new("e0");
        let tabs = (0..TABS).map(|tab| Tab { name: format!("tab-{tab}"), ..Tab::default() }).collect();
        let stored = vec![Stored { head: json!(log), whole: 0, entries: Vec::new() }];
        Self {
            log,
            unstored: Vec::new(),
            head_is_old: false,
            stored,
            loses,
            paused: None,
            tabs,
            shown: BTreeMap::new(),
            epochs: 0,
            ids: 0,
            said: Vec::new(),
            runs: BTreeMap::new(),
        }
    }

    fn id(&mut self) -> String {
        self.ids += 1;
        format!("id-{}", self.ids)
    }

    /// Every event that a reader may see, with what must hold of all of them.
    fn note(&mut self, log: &Log, events: &[Event]) {
        for event in events {
            let key = (log.epoch().to_owned(), event.seq);
            let before = self.shown.insert(key.clone(), event.clone());
            assert!(
                before.as_ref().is_none_or(|before| before == event),
                "{key:?}: {before:?} and {event:?}"
            );
        }
        for event in events {
            let is_over = log
                .transcript()
                .messages
                .iter()
                .any(|message| message.turn == event.turn && message.reason.is_some())
                && log.transcript().open.as_ref().is_none_or(|open| open.turn != event.turn);
            let speaks =
                matches!(event.body, Body::Content { .. } | Body::ToolCall { .. } | Body::Done { .. });
            assert!(!(is_over && speaks), "turn {} has ended: {event:?}", event.turn);
        }
    }

    /// Stored first, shown then.
    fn record(&mut self, change: Change) {
        self.note_before(&change);
        let log = &mut self.log;
        self.unstored.extend(change.entries());
        log.commit(change, &limits());
        self.store();
    }

    fn show(&mut self, change: Change) {
        self.note_before(&change);
        self.unstored.extend(change.entries());
        self.log.commit(change, &limits());
    }

    fn note_before(&mut self, change: &Change) {
        // One after the other: a change may end a turn and begin the next.
        let mut log = self.log.clone();
        for event in &change.events {
            self.note(&log, std::slice::from_ref(event));
            log.follow(event.clone(), &limits());
        }
    }

    /// A small write; the whole log only where it must be, or much has come since.
    fn store(&mut self) {
        let Stored { mut head, mut whole, mut entries } = self.stored.last().unwrap().clone();
        entries.append(&mut self.unstored);
        let since = entries.iter().filter(|entry| entry.event.seq > whole).count();
        if self.head_is_old || since > 30 {
            (head, whole, self.head_is_old) = (json!(self.log), self.log.seq(), false);
        }
        let keep_from = self.log.first_kept().min(whole + 1);
        entries.retain(|entry| entry.event.seq >= keep_from);
        self.stored.push(Stored { head, whole, entries });
        if self.stored.len() > 4 {
            self.stored.remove(0);
        }
    }

    /// A process takes the session: as the store has it.
    fn take(&mut self, is_in_order: bool) {
        if !is_in_order {
            for _ in 0..self.loses.min(self.stored.len() - 1) {
                self.stored.pop();
            }
        }
        let stored = self.stored.last().unwrap().clone();
        let head: Log = serde_json::from_value(stored.head).unwrap();
        // What a store keeps is text.
        let entries: Vec<Entry> = serde_json::from_value(json!(stored.entries)).unwrap();
        let log = head.restored(entries, &limits());
        if is_in_order {
            // Nothing of the log is missing where it is made from small writes.
            assert_eq!(json!(log), json!(self.log));
        }
        self.log = log.instead_of(&self.log);
        self.unstored.clear();
        if is_in_order {
            if let Some(change) = self.log.go_on(error()) {
                self.record(change);
            }
            return;
        }
        self.epochs += 1;
        self.log.begin_epoch(&format!("e{}", self.epochs));
        self.head_is_old = true;
        let error = error();
        let change = self.log.recover(error, &limits()).unwrap_or_default();
        self.record(change);
    }

    fn open_text(&self) -> Option<(u32, u64)> {
        let open = self.log.transcript().open.clone()?;
        Some((open.attempt, open.length()))
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Say(tab) => {
                let id = self.id();
                self.said.push(id.clone());
                self.tabs[tab].outbox.push(Sent { id: id.clone(), is_accepted: false });
                self.send(tab, chat(&id));
            }
            Step::Cancel(tab) => {
                let id = self.id();
                self.send(tab, ClientFrame::Cancel { id, turn: None });
            }
            Step::Retry(tab) => {
                let id = self.id();
                let last = self.tabs[tab].transcript.messages.iter().rev().find(|one| one.reason.is_some());
                if let Some(turn) = last.map(|message| message.turn) {
                    self.send(tab, ClientFrame::Retry { id, turn });
                }
            }
            Step::Trim(tab) => {
                let id = self.id();
                self.send(tab, ClientFrame::Trim { id, keep_turns: Some(1) });
            }
            Step::Claim(tab) => self.claim(tab),
            Step::Connect(tab) => self.connect(tab),
            Step::Cut(tab) => self.tabs[tab].connection = None,
            Step::ToServer(tab) => self.reach_server(tab),
            Step::Pump(tab, count) => self.pump(tab, count),
            Step::ToClient(tab, count, twice) => self.reach_client(tab, count, twice),
            Step::Text(byte) => self.text(byte),
            Step::Call => self.call(),
            Step::Finish => self.finish(),
            Step::Breaks => {
                if self.log.state() == TurnState::Running
                    && let Some(change) = self.log.rewind("connection_closed")
                {
                    self.record(change);
                }
            }
            Step::Store => self.store(),
            Step::Crash => self.take(false),
            Step::Pause => {
                self.paused = Some(self.log.clone());
                for tab in &mut self.tabs {
                    tab.is_at_paused = true;
                }
                self.take(false);
            }
            Step::HandOver => {
                self.store();
                self.take(true);
            }
        }
    }

    fn send(&mut self, tab: usize, frame: ClientFrame) {
        if let Some(connection) = &mut self.tabs[tab].connection {
            connection.to_server.push_back(frame);
        }
    }

    fn claim(&mut self, tab: usize) {
        let open = self.tabs[tab].transcript.open.iter().flat_map(|open| &open.calls);
        let offered =
            open.filter(|call| call.state == ToolState::Offered).map(|call| call.call.clone()).next();
        if let Some(call) = offered {
            self.send(tab, ClientFrame::ToolClaim { call });
        }
    }

    fn connect(&mut self, tab: usize) {
        let merges = [0, 8, 1000][(usize::try_from(self.ids).unwrap() + tab) % 3];
        let tab = &mut self.tabs[tab];
        if tab.connection.is_some() {
            return;
        }
        let cursor = (tab.transcript.epoch.clone(), tab.transcript.seq);
        let mut to_server = VecDeque::new();
        to_server.extend(tab.outbox.iter().filter(|sent| !sent.is_accepted).map(|sent| chat(&sent.id)));
        // What its tools returned may have been lost on the way.
        to_server.extend(tab.ran.iter().map(|call| result(call)));
        tab.connection =
            Some(Connection { cursor, place: None, to_client: VecDeque::new(), to_server, merges });
        tab.is_at_paused = false;
    }

    fn reach_server(&mut self, tab: usize) {
        if self.tabs[tab].is_at_paused {
            // It cannot store anything: it notices that it was replaced, and so do its readers.
            self.leave_paused();
            return;
        }
        let Some(connection) = &mut self.tabs[tab].connection else { return };
        let Some(frame) = connection.to_server.pop_front() else { return };
        let by = self.tabs[tab].name.clone();
        let reply = |world: &mut Self, frame: Value| {
            if let Some(connection) = &mut world.tabs[tab].connection {
                connection.to_client.push_back(frame);
            }
        };
        match frame {
            ClientFrame::Chat(chat) => {
                let id = chat.id.clone().unwrap();
                match self.log.chat(&id, &chat, "en", &limits()) {
                    Ok(Some(change)) => self.record(change),
                    Ok(None) => reply(self, json!({"type": "accepted", "id": id})),
                    Err(_) => reply(self, json!({"type": "error", "id": id})),
                }
            }
            ClientFrame::Cancel { id, turn } => {
                if let Some(change) = self.log.cancel(&id, turn) {
                    self.record(change);
                }
            }
            ClientFrame::Retry { id, turn } => {
                if let Ok(Some(change)) = self.log.retry(&id, turn) {
                    self.record(change);
                }
            }
            ClientFrame::Trim { id, keep_turns } => {
                if let Some(change) = self.log.trim(&id, keep_turns.unwrap()) {
                    self.record(change);
                }
            }
            ClientFrame::ToolClaim { call } => {
                if let Ok(Some(change)) = self.log.claim(&call, &by) {
                    self.record(change);
                }
            }
            ClientFrame::ToolResult(result) => {
                if let Ok(Some(change)) = self.log.result(&result, &by) {
                    self.record(change);
                }
            }
            _ => {}
        }
    }

    fn leave_paused(&mut self) {
        self.paused = None;
        for tab in &mut self.tabs {
            tab.is_at_paused = false;
        }
    }

    /// What the gateway's cursor does.
    fn pump(&mut self, tab: usize, count: usize) {
        let log = match &self.paused {
            Some(paused) if self.tabs[tab].is_at_paused => paused,
            _ => &self.log,
        };
        let Some(connection) = &mut self.tabs[tab].connection else { return };
        let (epoch, seq) = &connection.cursor;
        if connection.place.is_none() && !log.is_beyond(epoch, *seq) {
            return;
        }
        match log.replay(epoch, *seq, connection.merges).filter(|_| connection.place.is_none()) {
            Some(events) => {
                for event in events.into_iter().take(count) {
                    connection.cursor.1 = event.seq;
                    connection.to_client.push_back(json!(event));
                }
            }
            None => {
                connection.cursor = (log.epoch().to_owned(), log.seq());
                // One page after the other: the log may change between them.
                for _ in 0..count {
                    let (page, next) = log.page(connection.place.as_ref(), 200);
                    let mut frame = json!(page);
                    frame["type"] = "snapshot".into();
                    connection.to_client.push_back(frame);
                    connection.place = next;
                    if connection.place.is_none() {
                        break;
                    }
                }
            }
        }
    }

    /// What a client does with what comes.
    fn reach_client(&mut self, tab: usize, count: usize, twice: bool) {
        for at in 0..count {
            let Some(connection) = &mut self.tabs[tab].connection else { return };
            let Some(frame) = connection.to_client.pop_front() else { return };
            if twice && at == 0 && frame.get("seq").is_some() {
                self.frame(tab, &frame.clone());
            }
            self.frame(tab, &frame);
        }
    }

    fn frame(&mut self, at: usize, frame: &Value) {
        let tab = &mut self.tabs[at];
        if tab.transcript.apply_frame(frame) == FrameResult::Gap {
            tab.connection = None;
            return;
        }
        let id = frame["id"].as_str().unwrap_or_default();
        match frame["type"].as_str().unwrap() {
            "accepted" => {
                tab.outbox.iter_mut().filter(|sent| sent.id == id).for_each(|sent| sent.is_accepted = true);
            }
            "snapshot" if frame["more"] == false => {
                let known = |id: &str| frame["ids"].as_array().unwrap().iter().any(|known| known == id);
                for sent in &mut tab.outbox {
                    sent.is_accepted = known(&sent.id);
                }
                let again: Vec<_> =
                    tab.outbox.iter().filter(|sent| !sent.is_accepted).map(|sent| chat(&sent.id)).collect();
                if let Some(connection) = &mut tab.connection {
                    connection.to_server.extend(again);
                }
            }
            _ => {}
        }
        // A chat is kept until its answer is done.
        let messages = &tab.transcript.messages;
        let is_done = |id: &str| {
            let turn = messages.iter().find(|message| message.id == id).map(|message| message.turn);
            messages.iter().any(|message| Some(message.turn) == turn && message.reason.is_some())
        };
        let kept: Vec<Sent> =
            std::mem::take(&mut tab.outbox).into_iter().filter(|sent| !is_done(&sent.id)).collect();
        tab.outbox = kept;
        self.run_tools(at);
    }

    /// A tab runs what it has claimed, once in the life of its page.
    fn run_tools(&mut self, at: usize) {
        let tab = &mut self.tabs[at];
        let open = tab.transcript.open.iter().flat_map(|open| &open.calls);
        let own = open.filter(|call| call.state == ToolState::Claimed && call.by.as_ref() == Some(&tab.name));
        let new: Vec<String> =
            own.map(|call| call.call.clone()).filter(|call| !tab.ran.contains(call)).collect();
        for call in new {
            tab.ran.insert(call.clone());
            *self.runs.entry(call.clone()).or_default() += 1;
            if let Some(connection) = &mut tab.connection {
                connection.to_server.push_back(result(&call));
            }
        }
    }

    fn text(&mut self, byte: u8) {
        let data = ["富士", "🗻", "a", "word "][usize::from(byte % 4)].to_owned();
        if let Some(paused) = &mut self.paused {
            // An owner that does not know yet that it was replaced shows what is never stored.
            if paused.state() == TurnState::Running
                && let Some(open) = paused.transcript().open.clone()
            {
                let at = open.length();
                let body = Body::Content {
                    attempt: open.attempt,
                    at,
                    data: "stale".to_owned(),
                    source: Source::Model,
                };
                if let Some(change) = paused.tell(body) {
                    paused.commit(change, &limits());
                }
            }
        }
        let Some((attempt, at)) = self.open_text().filter(|_| self.log.state() == TurnState::Running) else {
            return;
        };
        if let Some(change) = self.log.tell(Body::Content { attempt, at, data, source: Source::Model }) {
            self.show(change);
        }
    }

    fn call(&mut self) {
        let Some((attempt, _)) = self.open_text().filter(|_| self.log.state() == TurnState::Running) else {
            return;
        };
        let body = Body::ToolCall {
            attempt,
            call: self.log.next_call(0),
            name: "tool".to_owned(),
            arguments: json!({}),
            runs: Runs::Client,
            deadline_ms: 1,
            at_most_once: true,
        };
        if let Some(change) = self.log.tell(body) {
            self.record(change);
        }
    }

    fn finish(&mut self) {
        if self.log.state() == TurnState::Running
            && let Some(change) = self.log.done(DoneReason::Stop, None, None)
        {
            self.record(change);
        }
    }

    /// Everything that is on its way arrives, and everyone is connected.
    fn quiet(&mut self) {
        self.leave_paused();
        for _ in 0..400 {
            for tab in 0..TABS {
                self.connect(tab);
                let unsent: Vec<_> = self.tabs[tab]
                    .outbox
                    .iter()
                    .filter(|sent| !sent.is_accepted)
                    .map(|sent| sent.id.clone())
                    .collect();
                if self.tabs[tab]
                    .connection
                    .as_ref()
                    .is_some_and(|one| one.to_server.is_empty() && one.to_client.is_empty())
                {
                    for id in unsent {
                        self.send(tab, chat(&id));
                    }
                    let ran: Vec<_> = self.tabs[tab].ran.iter().cloned().collect();
                    for call in ran {
                        self.send(tab, result(&call));
                    }
                }
                while self.tabs[tab].connection.as_ref().is_some_and(|one| !one.to_server.is_empty()) {
                    self.reach_server(tab);
                }
                self.pump(tab, usize::MAX);
                self.reach_client(tab, usize::MAX, false);
            }
            self.claim(0);
            self.finish();
            let is_quiet = self.log.state() == TurnState::Idle
                && self.tabs.iter().all(|tab| {
                    let connection = tab.connection.as_ref();
                    tab.outbox.is_empty()
                        && connection.is_some_and(|one| {
                            one.to_client.is_empty()
                                && one.place.is_none()
                                && !self.log.is_beyond(&one.cursor.0, one.cursor.1)
                        })
                });
            if is_quiet {
                return;
            }
        }
        panic!("it does not come to rest: {:?} {:?}", self.log.state(), self.log.transcript().open);
    }

    fn check(&self) {
        for tab in &self.tabs {
            assert_eq!(json!(tab.transcript), json!(self.log.transcript()), "{}", tab.name);
        }
        for id in &self.said {
            let count = self.log.transcript().messages.iter().filter(|message| message.id == *id).count();
            // One that no tab is left to send again was never accepted: there is none here.
            assert_eq!(count, 1, "{id} is one message");
        }
        if self.loses == 0 {
            for (call, runs) in &self.runs {
                assert_eq!(*runs, 1, "{call} ran once");
            }
        }
        // Numbers are dense: every number up to the last of an epoch that was shown from its beginning.
        let mut last: BTreeMap<&str, u64> = BTreeMap::new();
        for (epoch, seq) in self.shown.keys() {
            if let Some(before) = last.insert(epoch, *seq) {
                assert_eq!(before + 1, *seq, "{epoch} has no gap");
            }
        }
    }
}

fn chat(id: &str) -> ClientFrame {
    let tool = Tool { name: "tool".to_owned(), description: None, parameters: None, idempotent: false };
    ClientFrame::Chat(Box::new(Chat {
        id: Some(id.to_owned()),
        content: json!(format!("say {id}")),
        route: None,
        tools: vec![tool],
        on_busy: Busy::Queue,
        if_seq: None,
    }))
}

fn result(call: &str) -> ClientFrame {
    ClientFrame::ToolResult(ToolResult {
        call: call.to_owned(),
        status: ToolStatus::Ok,
        content: json!(call),
    })
}

fn error() -> ErrorBody {
    ErrorBody {
        code: 5001,
        kind: "unavailable".to_owned(),
        kbs: "KBS-5001".to_owned(),
        recoverable: true,
        retry: RetryLater::default(),
        scope: "turn".to_owned(),
        id: None,
        request: None,
        texts: Texts::default(),
    }
}

fn play(steps: &[Step], loses: usize) {
    let mut world = World::new(loses);
    for step in steps {
        world.run(step);
    }
    world.quiet();
    world.check();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_schedule_ends_with_equal_transcripts(steps in proptest::collection::vec(step(), 20..160)) {
        play(&steps, 0);
    }

    #[test]
    fn a_lost_write_costs_no_chat_and_no_agreement(steps in proptest::collection::vec(step(), 20..160)) {
        play(&steps, 1);
    }

    #[test]
    fn a_log_holds_no_more_than_its_limits(texts in proptest::collection::vec("[a-z]{0,400}", 1..80)) {
        let small = Limits { max_tail: 8, max_tail_bytes: 4096, max_transcript: 4096, ..Limits::default() };
        let mut log = Log::new("e");
        for (at, text) in texts.iter().enumerate() {
            let said = Chat { content: json!(text), ..match chat(&format!("c-{at}")) { ClientFrame::Chat(chat) => *chat, _ => unreachable!() } };
            let change = log.chat(&format!("c-{at}"), &said, "en", &small).unwrap().unwrap();
            log.commit(change, &small);
            let change = log.done(DoneReason::Stop, None, None).unwrap();
            log.commit(change, &small);
        }
        let replay = log.replay("e", log.first_kept() - 1, 0).unwrap();
        prop_assert!(replay.len() <= 8);
        let bytes: usize = log.transcript().messages.iter().map(|message| message.content.to_string().len()).sum();
        // The last turn stays however long it is.
        prop_assert!(bytes <= 4096 + 800, "{bytes}");
    }
}

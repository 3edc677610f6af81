//! MCP servers that know what is wanted of agents, asked by a thread of its own.
//!
//! Agents with the same server share one connection to it; each of them is asked about in turn. A server that dies, says nothing in time or
//! speaks no MCP is an error for all agents that ask it: nothing is started or stopped for it, and it is connected to again after a pause
//! that grows. What it prints on standard error is dropped, because it may hold secrets.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use koboshi::supervise::AgentAction;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ServiceExt, serve_client};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::http::HttpClient;
use super::{Question, ServerPlace, Whom};
use crate::keep::Agent;

/// The longest time that a server may take to be ready, and to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest pause before a server that failed is asked again.
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// No message of a server is longer.
const MAX_MESSAGE: usize = 1 << 20;
/// The longest wait for the thread when the supervisor ends.
const MAX_END: Duration = Duration::from_secs(1);

/// What became of a question, by the name of the agent.
pub(in crate::keep) type Replies = BTreeMap<String, Result<AgentAction, String>>;

/// The thread that asks servers.
pub(in crate::keep) struct Servers {
    answers: Arc<Mutex<Replies>>,
    bell: UnixStream,
    /// The thread ends when this is dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Agents that are asked about in one place.
struct Group {
    place: ServerPlace,
    environment: Vec<(OsString, OsString)>,
    every: Duration,
    /// Agent as `agent/project`, and the tool.
    about: Vec<(String, String)>,
}

impl Servers {
    /// Asks for these agents from now on; none where no agent has a server.
    pub(in crate::keep) fn start<'a>(agents: impl Iterator<Item = &'a Agent>) -> io::Result<Option<Self>> {
        let groups = groups(agents);
        if groups.is_empty() {
            return Ok(None);
        }
        let (bell, ring) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ring.set_nonblocking(true)?;
        let answers = Arc::new(Mutex::new(Replies::new()));
        let replies = ReplySender { answers: Arc::clone(&answers), ring: Arc::new(ring) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("mcp".to_owned()).spawn(move || {
            runtime.block_on(async {
                for group in groups {
                    tokio::spawn(ask_for_ever(group, replies.clone()));
                }
                // Either way it is the end.
                let _ = stopped.await;
            });
            runtime.shutdown_timeout(MAX_END);
        })?;
        Ok(Some(Self { answers, bell, stop: Some(stop), thread: Some(thread) }))
    }

    /// Is readable when there are answers.
    pub(in crate::keep) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// The newest answers that were not taken yet.
    pub(in crate::keep) fn take(&self) -> Replies {
        let mut rings = [0; 64];
        while let Ok(1..) = (&self.bell).read(&mut rings) {}
        std::mem::take(&mut *lock(&self.answers))
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}

fn lock(answers: &Mutex<Replies>) -> MutexGuard<'_, Replies> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}

fn groups<'a>(agents: impl Iterator<Item = &'a Agent>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for agent in agents {
        let Some(Question { whom: Whom::Server { place, tool }, every }) = &agent.question else { continue };
        let about = (agent.name.clone(), tool.clone());
        let same = |group: &&mut Group| {
            group.place == *place && group.every == *every && group.environment == agent.environment
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.about.push(about),
            None => groups.push(Group {
                place: place.clone(),
                environment: agent.environment.clone(),
                every: *every,
                about: vec![about],
            }),
        }
    }
    groups
}

/// Stores replies and rings.
#[derive(Clone)]
struct ReplySender {
    answers: Arc<Mutex<Replies>>,
    ring: Arc<UnixStream>,
}

impl ReplySender {
    fn send(&self, agent: &str, answer: Result<AgentAction, String>) {
        lock(&self.answers).insert(agent.to_owned(), answer);
        // A bell that is full has rung.
        let _ = (&*self.ring).write(&[1]);
    }
}

async fn ask_for_ever(group: Group, replies: ReplySender) {
    let mut connection = None;
    let mut failures = 0_u32;
    loop {
        match one_round(&mut connection, &group, &replies).await {
            Ok(()) => failures = 0,
            Err(why) => {
                connection = None;
                failures = failures.saturating_add(1);
                for (agent, _) in &group.about {
                    replies.send(agent, Err(why.clone()));
                }
            }
        }
        let grown = group.every.saturating_mul(1 << failures.min(16));
        sleep(grown.min(MAX_PAUSE.max(group.every))).await;
    }
}

/// Asks about every agent of a group once.
async fn one_round(
    connection: &mut Option<Connection>,
    group: &Group,
    replies: &ReplySender,
) -> Result<(), String> {
    if connection.as_ref().is_none_or(|connection| connection.service.is_closed()) {
        let connecting = timeout(TIMEOUT, Connection::open(group)).await;
        *connection = Some(connecting.map_err(|_| late("it was not ready"))??);
    }
    let Some(connection) = connection else { return Ok(()) };
    for (agent, tool) in &group.about {
        let answer = timeout(TIMEOUT, connection.ask(agent, tool)).await;
        replies.send(agent, answer.map_err(|_| late("it did not answer"))??);
    }
    Ok(())
}

fn late(what: &str) -> String {
    format!("{what} in {} s", TIMEOUT.as_secs())
}

/// A connection to a server.
struct Connection {
    service: RunningService<RoleClient, ()>,
    /// Ends with the connection.
    _process: Option<Process>,
}

impl Connection {
    async fn open(group: &Group) -> Result<Self, String> {
        match &group.place {
            ServerPlace::Command(command) => {
                let mut process =
                    Process::start(command, &group.environment).map_err(|error| error.to_string())?;
                let streams = process.0.stdout.take().zip(process.0.stdin.take());
                let (out, input) = streams.ok_or("it has no streams")?;
                let transport = AsyncRwTransport::new(out, input).with_max_line_length(MAX_MESSAGE);
                let service = serve_client((), transport).await.map_err(|error| error.to_string())?;
                Ok(Self { service, _process: Some(process) })
            }
            ServerPlace::Address { url, token } => {
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                config.auth_header = token.as_ref().map(|token| token.0.clone());
                config.max_sse_event_size = MAX_MESSAGE;
                let client = HttpClient::new()?;
                let transport = StreamableHttpClientTransport::with_client(client, config);
                let service = ().serve(transport).await.map_err(|error| error.to_string())?;
                Ok(Self { service, _process: None })
            }
        }
    }

    /// What is to be done with an agent: the outer error is one of the connection, the inner one of this answer alone.
    async fn ask(&self, agent: &str, tool: &str) -> Result<Result<AgentAction, String>, String> {
        let (agent, project) = agent.split_once('/').unwrap_or((agent, ""));
        let mut call = CallToolRequestParams::new(tool.to_owned());
        call.arguments = json!({"agent_id": agent, "project_id": project}).as_object().cloned();
        let result = self.service.call_tool(call).await.map_err(|error| error.to_string())?;
        Ok(action_of(&result))
    }
}

/// A server that we started, with everything in its process group.
struct Process(Child);

impl Process {
    fn start(command: &[OsString], environment: &[(OsString, OsString)]) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(environment.iter().cloned()).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        command.spawn().map(Self)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let group = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        // It may be gone already.
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
    }
}

/// The action in the answer of a tool: `{"action": "start"}` as structured content or as text, or the word alone.
fn action_of(result: &CallToolResult) -> Result<AgentAction, String> {
    let text = || result.content.iter().find_map(|block| block.as_text()).map(|block| block.text.as_str());
    if result.is_error == Some(true) {
        return Err("the tool reports an error".to_owned());
    }
    let of_text = || text().map(|text| serde_json::from_str(text).unwrap_or_else(|_| json!(text.trim())));
    let value = result.structured_content.clone().or_else(of_text).unwrap_or_default();
    let name = name_in(&value).or_else(|| value.get("result").and_then(name_in));
    let name = name.ok_or("the answer of the tool has no `action`")?;
    AgentAction::from_name(name).ok_or_else(|| "the tool answers with an action that is unknown".to_owned())
}

fn name_in(value: &Value) -> Option<&str> {
    value.get("action").unwrap_or(value).as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(answer: Value) -> Result<AgentAction, String> {
        action_of(&serde_json::from_value(answer).unwrap())
    }

    #[test]
    fn an_action_is_read_from_every_form_of_answer() {
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        for (answer, expected) in [
            (text(r#"{"action": "start", "reason": "a task waits"}"#), AgentAction::Start),
            (text("stop\n"), AgentAction::Stop),
            (json!({"content": [], "structuredContent": {"action": "none"}}), AgentAction::None),
            (json!({"content": [], "structuredContent": {"result": "start"}}), AgentAction::Start),
            (json!({"content": [], "structuredContent": {"result": {"action": "hold"}}}), AgentAction::None),
        ] {
            assert_eq!(answered(answer.clone()), Ok(expected), "{answer}");
        }
        for wrong in [
            json!({"content": []}),
            text("please start it"),
            text(r#"{"action": 5}"#),
            text(r#"["start"]"#),
            json!({"content": [{"type": "text", "text": "start"}], "isError": true}),
        ] {
            assert!(answered(wrong.clone()).is_err(), "{wrong}");
        }
    }
}

//! A program of this machine: it gets the message as JSON on standard input, and its exit status says whether it took it.
//!
//! Its environment is small: the keys of providers, which a gateway has in its own, are not its business.

use std::process::Stdio;

use koboshi_config::notify::ChannelConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::{Letter, MAX_ANSWER, SendError, redactor};
use crate::http::LocalFuture;

/// What it gets of our environment.
const PASSED: &[&str] = &[
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
    "XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS",
];
/// The most of its complaints that is read.
const MAX_COMPLAINT: u64 = 4096;

pub(super) fn send(channel: &ChannelConfig, letter: &Letter) -> LocalFuture<Result<(), SendError>> {
    let command = channel.command.clone();
    let body = letter.json.to_string().into_bytes();
    let variables = [
        ("KOBOSHI_NOTICE_ID", letter.id.clone()),
        ("KOBOSHI_NOTICE_HEADING", letter.heading.clone()),
        ("KOBOSHI_NOTICE_TEXT", letter.plain.clone()),
    ];
    Box::pin(async move {
        let (program, arguments) =
            command.split_first().ok_or_else(|| SendError::new("the channel has no `command`"))?;
        let passed = PASSED.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
        let child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(passed)
            .envs(variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // One that takes too long is ended.
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| SendError::new(format!("{program} cannot be started: {error}")))?;
        told(child, &body).await
    })
}

async fn told(mut child: Child, body: &[u8]) -> Result<(), SendError> {
    if let Some(mut input) = child.stdin.take() {
        // A program that does not read its input is free to do so.
        let _ = input.write_all(body).await;
        let _ = input.shutdown().await;
    }
    let mut complaint = Vec::new();
    if let Some(errors) = child.stderr.take() {
        let _ = errors.take(MAX_COMPLAINT).read_to_end(&mut complaint).await;
    }
    let status = child.wait().await.map_err(|error| SendError::new(error.to_string()))?;
    if status.success() {
        return Ok(());
    }
    let said = redactor().excerpt(&String::from_utf8_lossy(&complaint), MAX_ANSWER);
    Err(SendError::new(
        format!("the program ended with {status}: {said}").trim_end_matches([':', ' ']).to_owned(),
    ))
}

//! A program of this machine: it gets the message as JSON on standard input, and its exit status says whether it took it.
//!
//! Its environment is small: the keys of providers, which a gateway has in its own, are not its business.

use std::cell::RefCell;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{FusedFuture, join};
use koboshi_config::notify::ChannelConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::{Letter, MAX_ANSWER, SendError, Taken, redactor};
use crate::http::LocalFuture;

/// What it gets of our environment.
const PASSED: &[&str] = &[
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
    "XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS",
];
/// The most bytes of its complaints that are kept.
const MAX_COMPLAINT: usize = 4096;
/// The exit status of a program that will never take this message (EX_DATAERR).
const REFUSED: i32 = 65;
/// How long its last words are waited for, where something that it started has its output too.
const LAST_WORDS: Duration = Duration::from_millis(200);

pub(super) fn send(channel: &ChannelConfig, letter: &Letter) -> LocalFuture<Result<Taken, SendError>> {
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

async fn told(mut child: Child, body: &[u8]) -> Result<Taken, SendError> {
    let (input, errors) = (child.stdin.take(), child.stderr.take());
    let complaint = RefCell::new(Vec::new());
    let fed = async {
        let Some(mut input) = input else { return };
        // A program that does not read its input is free to do so.
        let _ = input.write_all(body).await;
        let _ = input.shutdown().await;
    };
    // All of it is read: a program that writes more than is kept must not fail for it.
    let read = async {
        let Some(mut errors) = errors else { return };
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = errors.read(&mut piece).await {
            let mut kept = complaint.borrow_mut();
            let room = MAX_COMPLAINT.saturating_sub(kept.len());
            kept.extend(piece.iter().take(length.min(room)));
        }
    };
    let mut talk = pin!(join(fed, read).fuse());
    // What it left in the background may keep its output open: its own end counts.
    let ended = tokio::select! {
        ended = child.wait() => ended,
        _ = &mut talk => child.wait().await,
    };
    if !talk.is_terminated() {
        // What it wrote last may still be on its way.
        let _ = timeout(LAST_WORDS, &mut talk).await;
    }
    let status = ended.map_err(|error| SendError::new(error.to_string()))?;
    if status.success() {
        return Ok(Taken::default());
    }
    let said = redactor().excerpt(&String::from_utf8_lossy(&complaint.borrow()), MAX_ANSWER);
    let why = format!("the program ended with {status}: {said}").trim_end_matches([':', ' ']).to_owned();
    Err(SendError { is_final: status.code() == Some(REFUSED), ..SendError::new(why) })
}

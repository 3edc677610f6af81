//! A program that prints a token. It is run without a shell, and killed if it takes too long or is no longer needed.

use std::io;
use std::process::Stdio;

use koboshi::fault::{Fault, Kind};
use tokio::io::AsyncReadExt;
use tokio::process::Command as Process;

use super::{Grant, MAX_BYTES, fault, is_token};
use crate::route::auth::fingerprint;

/// A program and its arguments.
#[derive(Debug)]
pub(crate) struct Command {
    id: String,
    program: String,
    arguments: Vec<String>,
}

impl Command {
    /// None if there is no program.
    pub(crate) fn new(words: &[String]) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        Some(Self {
            id: fingerprint(&words.join("\0")),
            program: program.clone(),
            arguments: arguments.to_vec(),
        })
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Runs it and reads what it prints. Faults repeat nothing of its output, and of its error output only what is no secret.
    pub(super) async fn ask(&self) -> Result<Grant, Box<Fault>> {
        let broken = |error: &io::Error| {
            fault(Kind::TokenExpired, &format!("the token command cannot be run: {}", error.kind()))
        };
        let mut child = Process::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| broken(&error))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (printed, complained) = tokio::join!(read(stdout), read(stderr));
        let status = child.wait().await.map_err(|error| broken(&error))?;
        if !status.success() {
            let text = String::from_utf8_lossy(&complained);
            let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
            return Err(fault(Kind::TokenExpired, &format!("the token command ended with {status}: {last}")));
        }
        grant(&printed).ok_or_else(|| {
            fault(
                Kind::TokenExpired,
                "the token command printed neither one token nor JSON with `access_token`",
            )
        })
    }
}

/// Reads output up to a limit; the rest is discarded, or the program would block.
async fn read(from: Option<impl AsyncReadExt + Unpin>) -> Vec<u8> {
    let mut kept = Vec::new();
    let Some(mut from) = from else { return kept };
    let mut block = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut block).await {
        let room = MAX_BYTES.saturating_sub(kept.len());
        kept.extend_from_slice(block.get(..count.min(room)).unwrap_or_default());
    }
    kept
}

fn grant(printed: &[u8]) -> Option<Grant> {
    let text = printed.trim_ascii();
    if text.starts_with(b"{") {
        return Grant::of_json(text);
    }
    let token = std::str::from_utf8(text).ok().filter(|text| is_token(text))?;
    Some(Grant { token: token.to_owned(), lasts: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_token_is_one_word_or_json() {
        let read = |text: &str| grant(text.as_bytes()).map(|grant| (grant.token, grant.lasts));
        assert_eq!(read("ya29.abc\n"), Some(("ya29.abc".to_owned(), None)));
        let json = r#" {"access_token": "t", "expires_in": 90, "token_type": "Bearer"}"#;
        assert_eq!(read(json), Some(("t".to_owned(), Some(Duration::from_secs(90)))));
        for wrong in ["", "\n", "not logged in", "a\nb", "{}", "{\"access_token\": \"a b\"}", "é"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}

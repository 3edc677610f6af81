//! Lines for people or for machines, on standard error.
//!
//! A line is put into a bounded queue and written by a thread of its own: a terminal that stands still stops nobody. If the queue is
//! full, lines are dropped and the next one says how many. Texts come redacted from where they are made; nothing here knows a prompt.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use jiff::Timestamp;
use koboshi::fault::Fault;
use koboshi_config::gateway::LogFormat;
use koboshi_store::{Clock, SystemClock};
use serde_json::{Value, json};

/// Lines that may wait.
const CAPACITY: usize = 4096;

/// How grave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

impl Level {
    pub(crate) fn from_name(name: &str) -> Self {
        match name {
            "error" => Self::Error,
            "warn" => Self::Warn,
            "debug" => Self::Debug,
            _ => Self::Info,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

/// What waits to be written.
enum Queued {
    Line(String),
    /// Somebody waits until everything before this is written.
    Flush(SyncSender<()>),
}

/// Where lines go.
#[derive(Clone)]
pub(crate) struct Log {
    queue: Option<SyncSender<Queued>>,
    format: LogFormat,
    least: Level,
    dropped: Arc<AtomicU64>,
}

impl Log {
    /// A log that writes to `out`.
    pub(crate) fn to(mut out: impl Write + Send + 'static, format: LogFormat, least: Level) -> Self {
        let (queue, lines) = sync_channel::<Queued>(CAPACITY);
        let dropped = Arc::new(AtomicU64::new(0));
        let writer = std::thread::Builder::new().name("koboshi-log".to_owned()).spawn(move || {
            for queued in lines {
                // Nobody is left to tell that the log cannot be written, and whoever waited may have given up.
                match queued {
                    Queued::Line(line) => drop(out.write_all(line.as_bytes())),
                    Queued::Flush(done) => drop(done.try_send(())),
                }
            }
        });
        Self { queue: writer.is_ok().then_some(queue), format, least, dropped }
    }

    /// A log that says nothing.
    pub(crate) fn silent() -> Self {
        Self { queue: None, format: LogFormat::Json, least: Level::Error, dropped: Arc::default() }
    }

    /// Whether lines of this level are written.
    pub(crate) fn is_enabled(&self, level: Level) -> bool {
        self.queue.is_some() && level <= self.least
    }

    /// Writes a line: a sentence, and the facts beside it.
    pub(crate) fn line(&self, level: Level, message: &str, facts: &Value) {
        if !self.is_enabled(level) {
            return;
        }
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            self.send(self.render(Level::Warn, "lines were dropped", &json!({"dropped": dropped})));
        }
        self.send(self.render(level, message, facts));
    }

    /// Waits until what was said so far is written, at most this long: a process that ends takes its log along.
    pub(crate) fn flush(&self, patience: Duration) {
        let (done, written) = sync_channel(1);
        if let Some(queue) = &self.queue
            && queue.try_send(Queued::Flush(done)).is_ok()
        {
            // A terminal that stands still stops nobody.
            let _ = written.recv_timeout(patience);
        }
    }

    /// A fault of a target, with the fields that operators search for.
    pub(crate) fn fault(
        &self,
        target: &str,
        fault: &Fault,
        text: &str,
        remedy: &str,
        (method, request): (&str, &str),
        code: &str,
    ) {
        if !self.is_enabled(Level::Warn) {
            return;
        }
        let facts = json!({
            "method": method,
            "errorType": fault.kind.name(),
            "errorCode": code,
            "retryable": fault.advice.later,
            "target": target,
            "status": fault.status,
            "remedy": remedy,
            "request": request,
        });
        self.line(Level::Warn, text, &facts);
    }

    fn render(&self, level: Level, message: &str, facts: &Value) -> String {
        let at: Timestamp = SystemClock.wall();
        match self.format {
            LogFormat::Json => {
                let mut line =
                    json!({"timestamp": at.to_string(), "level": level.name(), "message": message});
                if let (Some(line), Some(facts)) = (line.as_object_mut(), facts.as_object()) {
                    for (name, value) in facts.iter().filter(|(_, value)| !value.is_null()) {
                        line.insert(name.clone(), value.clone());
                    }
                }
                format!("{line}\n")
            }
            _ => {
                let mut text =
                    format!("{} {:5} {}", at.strftime("%H:%M:%S"), level.name(), one_line(message));
                for (name, value) in
                    facts.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null())
                {
                    let value = value.as_str().map_or_else(|| value.to_string(), one_line);
                    text.push_str(&format!(" {name}={value}"));
                }
                text.push('\n');
                text
            }
        }
    }

    fn send(&self, line: String) {
        if let Some(queue) = &self.queue
            && let Err(TrySendError::Full(_)) = queue.try_send(Queued::Line(line))
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Whoever wrote the text, it stays one line and moves no cursor.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    struct Lines(Sender<String>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.0.send(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn log(format: LogFormat) -> (Log, Receiver<String>) {
        let (sender, lines) = channel();
        (Log::to(Lines(sender), format, Level::Info), lines)
    }

    #[test]
    fn machines_get_one_object_a_line() {
        let (log, lines) = log(LogFormat::Json);
        log.line(Level::Debug, "not told", &json!({}));
        log.line(Level::Warn, "two\nlines", &json!({"errorCode": "KBS-3001", "none": null}));
        let line: Value = serde_json::from_str(&lines.recv().unwrap()).unwrap();
        assert_eq!((line["level"].as_str(), line["message"].as_str()), (Some("warn"), Some("two\nlines")));
        assert_eq!(line["errorCode"], "KBS-3001");
        assert!(line.get("none").is_none());
    }

    #[test]
    fn people_get_one_line_that_moves_no_cursor() {
        let (log, lines) = log(LogFormat::Pretty);
        log.line(Level::Info, "a\u{1b}[2Jb\nc", &json!({"target": "sim/ok"}));
        let line = lines.recv().unwrap();
        assert!(line.ends_with("a [2Jb c target=sim/ok\n") && !line.contains('\u{1b}'), "{line}");
    }
}

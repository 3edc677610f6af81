//! Log lines for people or for machines, on standard error.
//!
//! A line goes into a bounded queue, and a separate thread writes it: a blocked terminal blocks no request. If the queue is
//! full, lines are dropped and the next one says how many. Callers redact their texts; nothing here knows a prompt.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use koboshi::fault::Fault;
use koboshi_config::gateway::LogFormat;
use koboshi_store::{Clock, SystemClock};
use serde_json::{Value, json};

use super::otlp::logs::LogSink;

/// How many lines may wait.
const CAPACITY: usize = 4096;

/// Severity of a line.
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

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

/// An item of the queue.
enum QueueItem {
    Line(String),
    /// A caller waits until everything before this is written.
    Flush(SyncSender<()>),
}

/// The queue of log lines.
#[derive(Clone)]
pub(crate) struct Log {
    queue: Option<SyncSender<QueueItem>>,
    format: LogFormat,
    max_level: Level,
    dropped: Arc<AtomicU64>,
    /// Gets what is serious too.
    errors: Option<Arc<Self>>,
    /// Gets every line too; a reload may change it.
    collector: Arc<ArcSwapOption<LogSink>>,
}

impl Log {
    /// A log that writes to `out`.
    pub(crate) fn to(mut out: impl Write + Send + 'static, format: LogFormat, max_level: Level) -> Self {
        let (queue, lines) = sync_channel::<QueueItem>(CAPACITY);
        let dropped = Arc::new(AtomicU64::new(0));
        let writer = std::thread::Builder::new().name("koboshi-log".to_owned()).spawn(move || {
            for queued in lines {
                // A log that cannot be written cannot report it, and a waiting caller may have given up.
                match queued {
                    QueueItem::Line(line) => drop(out.write_all(line.as_bytes())),
                    QueueItem::Flush(done) => drop(done.try_send(())),
                }
            }
        });
        Self {
            queue: writer.is_ok().then_some(queue),
            format,
            max_level,
            dropped,
            errors: None,
            collector: Arc::default(),
        }
    }

    /// The same log, whose warnings and errors go to another one too.
    pub(crate) fn with_errors(self, errors: Self) -> Self {
        Self { errors: Some(Arc::new(errors)), ..self }
    }

    /// The same log without a collector: for what is wrong with the collector.
    pub(crate) fn without_collector(&self) -> Self {
        Self { collector: Arc::default(), ..self.clone() }
    }

    /// Sends lines to this collector too from now on, or to none; returns the one before.
    pub(crate) fn collect_by(&self, sink: Option<LogSink>) -> Option<LogSink> {
        self.collector.swap(sink.map(Arc::new)).and_then(Arc::into_inner)
    }

    /// The collector that lines are sent to.
    pub(crate) fn collector(&self) -> Option<Arc<LogSink>> {
        self.collector.load_full()
    }

    /// A log that writes nothing.
    pub(crate) fn silent() -> Self {
        Self {
            queue: None,
            format: LogFormat::Json,
            max_level: Level::Error,
            dropped: Arc::default(),
            errors: None,
            collector: Arc::default(),
        }
    }

    /// Whether lines of this level are written.
    pub(crate) fn is_enabled(&self, level: Level) -> bool {
        self.writes(level)
            || self.errors.as_ref().is_some_and(|errors| errors.writes(level))
            || self.collector.load().as_ref().is_some_and(|collector| collector.takes(level))
    }

    fn writes(&self, level: Level) -> bool {
        self.queue.is_some() && level <= self.max_level
    }

    /// Logs a sentence with its fields.
    pub(crate) fn line(&self, level: Level, message: &str, facts: &Value) {
        if let Some(errors) = &self.errors {
            errors.line(level, message, facts);
        }
        if let Some(collector) = self.collector.load().as_ref().filter(|collector| collector.takes(level)) {
            collector.put(SystemClock.wall(), level, message, facts);
        }
        if !self.writes(level) {
            return;
        }
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            self.send(self.render(Level::Warn, "lines were dropped", &json!({"dropped": dropped})));
        }
        self.send(self.render(level, message, facts));
    }

    /// Waits until all lines are written, at most this long: lines in the queue are lost when the process ends.
    pub(crate) fn flush(&self, patience: Duration) {
        if let Some(errors) = &self.errors {
            errors.flush(patience);
        }
        let (done, written) = sync_channel(1);
        if let Some(queue) = &self.queue
            && queue.try_send(QueueItem::Flush(done)).is_ok()
        {
            // A blocked terminal must not block the caller.
            let _ = written.recv_timeout(patience);
        }
    }

    /// Logs a fault of a target, with the fields that operators search for.
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
            && let Err(TrySendError::Full(_)) = queue.try_send(QueueItem::Line(line))
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Keeps a foreign text on one line, without control characters.
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
        log.line(Level::Debug, "not logged", &json!({}));
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

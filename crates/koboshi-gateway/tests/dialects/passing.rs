//! Answers of the client's own dialect pass as they are, whatever is in them.

use koboshi_wire::Dialect;

use crate::own::{items, message, streams};
use crate::speech::{ask, question, stage};

/// OpenAI repeats the instructions and tools of a request in the frames that open its answer.
#[test]
fn what_stands_before_content_may_be_as_long_as_a_large_request() {
    for (length, calls) in [(1_500_000, (1, 0)), (6_000_000, (1, 1))] {
        let stage = stage(Dialect::Responses, &["one/own", "two/own"], |config| {
            config.remedy.backoff.attempts = 1;
        });
        stage.one.set("own", move |_| {
            let mut frames = items(&[message("Hi")]);
            for frame in frames.iter_mut().take(2) {
                let instructions = format!("\"response\":{{\"instructions\":\"{}\",", "x".repeat(length));
                *frame = frame.replacen("\"response\":{", &instructions, 1);
            }
            streams(frames)
        });
        stage.two.set("own", |_| streams(items(&[message("Hi")])));
        let answer = ask(&stage, &question(Dialect::Responses, "Hello", true));
        assert_eq!((answer.status, stage.calls()), (200, calls), "{length}");
        assert!(answer.text().contains("response.completed"), "{length}");
    }
}

//! The dialects: how an answer, a piece of a stream and an error are written in each.
//!
//! What is the same for every answer of a model is written once. A frame is one event with its line breaks; who sends it puts it
//! into a chunk of its own.

use std::fmt::Write as _;

use koboshi_bench::answer;

/// A dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// OpenAI's chat completions.
    Chat,
    /// Anthropic's messages.
    Messages,
    /// OpenAI's responses.
    Responses,
    /// Google's Gemini.
    Gemini,
}

/// Every dialect, in the order of `Dialect as usize`.
pub(crate) const DIALECTS: [Dialect; 4] =
    [Dialect::Chat, Dialect::Messages, Dialect::Responses, Dialect::Gemini];

impl Dialect {
    /// The dialect of a request's path.
    pub(crate) fn of(path: &[u8]) -> Option<Self> {
        let has = |part: &[u8]| memchr::memmem::find(path, part).is_some();
        if has(b"/chat/completions") {
            Some(Self::Chat)
        } else if has(b"/messages") {
            Some(Self::Messages)
        } else if has(b"/responses") {
            Some(Self::Responses)
        } else if has(b"enerateContent") {
            Some(Self::Gemini)
        } else {
            None
        }
    }

    /// The body of an error.
    pub(crate) fn error(self, message: &str, status: u16) -> String {
        let (kind, google) = match status {
            429 => ("rate_limit_error", "RESOURCE_EXHAUSTED"),
            400..=499 => ("invalid_request_error", "INVALID_ARGUMENT"),
            _ => ("server_error", "UNAVAILABLE"),
        };
        match self {
            Self::Chat | Self::Responses => {
                format!(
                    r#"{{"error":{{"message":"{message}: {status}","type":"{kind}","param":null,"code":null}}}}"#
                )
            }
            Self::Messages => {
                let kind = if status >= 500 { "api_error" } else { kind };
                format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}: {status}"}}}}"#)
            }
            Self::Gemini => {
                format!(
                    r#"{{"error":{{"code":{status},"message":"{message}: {status}","status":"{google}"}}}}"#
                )
            }
        }
    }
}

/// What a model says in one dialect.
pub(crate) struct Speech {
    dialect: Dialect,
    /// The body of a whole answer.
    pub(crate) whole: String,
    /// The frames before the first piece.
    pub(crate) opening: Vec<String>,
    /// What a piece's frame begins with, up to the text.
    before: String,
    /// And what comes behind it, up to the number where frames are numbered.
    after: String,
    name: String,
    pieces: usize,
}

const CHAT_ID: &str = "chatcmpl-0123456789abcdef01234567";
const ITEM: &str = "msg_0123456789abcdef0123456789abcdef";

impl Speech {
    /// Of a model with this name, as JSON, and this many pieces.
    pub(crate) fn new(dialect: Dialect, name: &str, pieces: usize) -> Self {
        let text = answer::text(pieces);
        let mut speech = Self {
            dialect,
            whole: String::new(),
            opening: Vec::new(),
            before: String::new(),
            after: String::new(),
            name: name.to_owned(),
            pieces,
        };
        match dialect {
            Dialect::Chat => {
                speech.whole = format!(
                    r#"{{"id":"{CHAT_ID}","object":"chat.completion","created":1750000000,"model":{name},"choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}","refusal":null}},"logprobs":null,"finish_reason":"stop"}}],"usage":{}}}"#,
                    speech.cost()
                );
                let start = speech.chat_start();
                speech.opening = vec![format!(
                    "{start}{{\"role\":\"assistant\",\"content\":\"\"}},\"logprobs\":null,\"finish_reason\":null}}]}}\n\n"
                )];
                speech.before = format!(r#"{start}{{"content":""#);
                speech.after = "\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n".to_owned();
            }
            Dialect::Messages => {
                let head = format!(
                    r#""id":"msg_0123456789abcdef01234567","type":"message","role":"assistant","model":{name}"#
                );
                speech.whole = format!(
                    r#"{{{head},"content":[{{"type":"text","text":"{text}"}}],"stop_reason":"end_turn","stop_sequence":null,"usage":{{"input_tokens":21,"output_tokens":{pieces}}}}}"#
                );
                speech.opening = vec![
                    event(
                        "message_start",
                        &format!(
                            r#""message":{{{head},"content":[],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":21,"output_tokens":1}}}}"#
                        ),
                    ),
                    event("content_block_start", r#""index":0,"content_block":{"type":"text","text":""}"#),
                ];
                speech.before =
                    begin("content_block_delta") + r#","index":0,"delta":{"type":"text_delta","text":""#;
                speech.after = "\"}}\n\n".to_owned();
            }
            Dialect::Responses => {
                speech.whole = speech.response("completed", &text);
                speech.opening = vec![
                    event(
                        "response.created",
                        &format!(r#""sequence_number":0,"response":{}"#, speech.response("in_progress", "")),
                    ),
                    event(
                        "response.in_progress",
                        &format!(r#""sequence_number":1,"response":{}"#, speech.response("in_progress", "")),
                    ),
                    event(
                        "response.output_item.added",
                        &format!(
                            r#""sequence_number":2,"output_index":0,"item":{}"#,
                            item("in_progress", "")
                        ),
                    ),
                    event(
                        "response.content_part.added",
                        &format!(
                            r#""sequence_number":3,"item_id":"{ITEM}","output_index":0,"content_index":0,"part":{}"#,
                            part("")
                        ),
                    ),
                ];
                speech.before = begin("response.output_text.delta")
                    + &format!(
                        r#","item_id":"{ITEM}","output_index":0,"content_index":0,"logprobs":[],"delta":""#
                    );
                speech.after = r#"","sequence_number":"#.to_owned();
            }
            Dialect::Gemini => {
                speech.whole = format!(
                    r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}],"role":"model"}},"finishReason":"STOP","index":0}}],{}}}"#,
                    speech.google_tail()
                );
                speech.before = r#"data: {"candidates":[{"content":{"parts":[{"text":""#.to_owned();
                speech.after =
                    format!("\"}}],\"role\":\"model\"}},\"index\":0}}],{}}}\n\n", speech.google_tail());
            }
        }
        speech
    }

    /// The frame of a piece.
    pub(crate) fn piece(&self, out: &mut String, at: usize, text: &str) {
        out.push_str(&self.before);
        out.push_str(text);
        out.push_str(&self.after);
        if self.dialect == Dialect::Responses {
            let _infallible = write!(out, "{}}}\n\n", at + 4);
        }
    }

    /// The frames after the last piece, of a stream with this text.
    pub(crate) fn closing(&self, text: &str) -> Vec<String> {
        match self.dialect {
            Dialect::Chat => vec![
                format!(
                    "{}{{}},\"logprobs\":null,\"finish_reason\":\"stop\"}}],\"usage\":{}}}\n\n",
                    self.chat_start(),
                    self.cost()
                ),
                "data: [DONE]\n\n".to_owned(),
            ],
            Dialect::Messages => vec![
                event("content_block_stop", r#""index":0"#),
                event(
                    "message_delta",
                    &format!(
                        r#""delta":{{"stop_reason":"end_turn","stop_sequence":null}},"usage":{{"output_tokens":{}}}"#,
                        self.pieces
                    ),
                ),
                "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n".to_owned(),
            ],
            Dialect::Responses => {
                let number = self.pieces + 4;
                let place = format!(r#""item_id":"{ITEM}","output_index":0,"content_index":0"#);
                vec![
                    event(
                        "response.output_text.done",
                        &format!(r#""sequence_number":{number},{place},"logprobs":[],"text":"{text}""#),
                    ),
                    event(
                        "response.content_part.done",
                        &format!(r#""sequence_number":{},{place},"part":{}"#, number + 1, part(text)),
                    ),
                    event(
                        "response.output_item.done",
                        &format!(
                            r#""sequence_number":{},"output_index":0,"item":{}"#,
                            number + 2,
                            item("completed", text)
                        ),
                    ),
                    event(
                        "response.completed",
                        &format!(
                            r#""sequence_number":{},"response":{}"#,
                            number + 3,
                            self.response("completed", text)
                        ),
                    ),
                ]
            }
            Dialect::Gemini => vec![format!(
                "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"\"}}],\"role\":\"model\"}},\"finishReason\":\"STOP\",\"index\":0}}],{}}}\n\n",
                self.google_tail()
            )],
        }
    }

    fn chat_start(&self) -> String {
        format!(
            r#"data: {{"id":"{CHAT_ID}","object":"chat.completion.chunk","created":1750000000,"model":{},"choices":[{{"index":0,"delta":"#,
            self.name
        )
    }

    fn cost(&self) -> String {
        let (text, all) = (self.pieces, self.pieces + 21);
        format!(r#"{{"prompt_tokens":21,"completion_tokens":{text},"total_tokens":{all}}}"#)
    }

    fn google_tail(&self) -> String {
        let (text, all) = (self.pieces, self.pieces + 21);
        format!(
            r#""usageMetadata":{{"promptTokenCount":21,"candidatesTokenCount":{text},"totalTokenCount":{all}}},"modelVersion":{},"responseId":"0123456789abcdef""#,
            self.name
        )
    }

    fn response(&self, status: &str, text: &str) -> String {
        let (output, cost) = if status == "completed" {
            let cost = format!(
                r#"{{"input_tokens":21,"input_tokens_details":{{"cached_tokens":0}},"output_tokens":{},"output_tokens_details":{{"reasoning_tokens":0}},"total_tokens":{}}}"#,
                self.pieces,
                self.pieces + 21
            );
            (item(status, text), cost)
        } else {
            (String::new(), "null".to_owned())
        };
        format!(
            r#"{{"id":"resp_0123456789abcdef0123456789abcdef","object":"response","created_at":1750000000,"status":"{status}","error":null,"incomplete_details":null,"instructions":null,"max_output_tokens":256,"model":{},"output":[{output}],"parallel_tool_calls":true,"previous_response_id":null,"store":false,"temperature":1.0,"text":{{"format":{{"type":"text"}}}},"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled","usage":{cost},"metadata":{{}}}}"#,
            self.name
        )
    }
}

fn begin(name: &str) -> String {
    format!("event: {name}\ndata: {{\"type\":\"{name}\"")
}

fn event(name: &str, rest: &str) -> String {
    format!("{},{rest}}}\n\n", begin(name))
}

fn part(text: &str) -> String {
    format!(r#"{{"type":"output_text","annotations":[],"logprobs":[],"text":"{text}"}}"#)
}

fn item(status: &str, text: &str) -> String {
    let content = if status == "completed" { part(text) } else { String::new() };
    format!(
        r#"{{"id":"{ITEM}","type":"message","status":"{status}","role":"assistant","content":[{content}]}}"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_answers_frames_and_errors_are_json() {
        for dialect in DIALECTS {
            let speech = Speech::new(dialect, "\"ok\"", 3);
            let mut frames = speech.opening.clone();
            let mut piece = String::new();
            speech.piece(&mut piece, 0, "A ");
            frames.push(piece);
            frames.extend(speech.closing("A "));
            for frame in frames {
                let data = frame.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or_default();
                let sound = data == "[DONE]" || serde_json::from_str::<serde_json::Value>(data).is_ok();
                assert!(sound && frame.ends_with("\n\n"), "{dialect:?}: {frame}");
            }
            for body in [speech.whole, dialect.error("fallen", 503)] {
                assert!(serde_json::from_str::<serde_json::Value>(&body).is_ok(), "{dialect:?}: {body}");
            }
        }
    }

    #[test]
    fn paths_name_the_dialect() {
        assert_eq!(Dialect::of(b"POST /v1/messages"), Some(Dialect::Messages));
        assert_eq!(
            Dialect::of(b"POST /v1beta/models/ok:streamGenerateContent?alt=sse"),
            Some(Dialect::Gemini)
        );
        assert_eq!(Dialect::of(b"GET /stats"), None);
    }
}

//! Embeddings: a vector per text that depends on the text only.

use std::fmt;

use koboshi::chance::Seed;
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde_json::{Value, json};

use crate::chance::Fingerprint;
use koboshi_wire::Dialect;

use crate::error::{Problem, excerpt};
use crate::fall::Fall;
use crate::play::{Ask, Play, Stage};

/// As many inputs as OpenAI takes.
const MAX_INPUTS: usize = 2048;
/// And as many dimensions.
const MAX_DIMENSIONS: usize = 3072;
/// Numbers of all vectors of an answer: the answer sits in memory.
const MAX_NUMBERS: usize = 1_000_000;
const DIMENSIONS: usize = 256;

/// What the provider sends for this request to its embeddings. It falls under the same names as a chat does, as far as
/// a body that is no stream can.
#[must_use]
pub fn embed(ask: &Ask<'_>) -> Play {
    // Only OpenAI's are supported.
    let ask = &Ask { dialect: Dialect::Chat, ..*ask };
    let stage = Stage::of(ask);
    let plan = match stage.plan() {
        Ok(plan) => plan,
        Err(play) => return play,
    };
    let latency = plan.whole_latency();
    let request = match Request::read(ask.body) {
        Ok(request) => request,
        Err(problem) => return stage.failure(&problem, latency),
    };
    if let Fall::Context { limit } = plan.fall
        && limit.is_none_or(|limit| request.tokens() > limit)
    {
        return stage.failure(&Problem::context(request.tokens(), limit), latency);
    }
    let body = match plan.fall {
        Fall::InBand { .. } => crate::error::in_band(Dialect::Chat).to_string(),
        Fall::Empty => request.body(ask.model, &[]),
        _ => request.body(ask.model, &request.input.0),
    };
    stage.json(latency, body, plan.fall)
}

#[derive(Debug, Deserialize)]
struct Request {
    input: Inputs,
    #[serde(default)]
    encoding_format: Option<String>,
    #[serde(default)]
    dimensions: Option<usize>,
}

impl Request {
    fn read(body: &[u8]) -> Result<Self, Problem> {
        let wrong = |says: &str, param: Option<&str>| Problem::Request {
            says: says.to_owned(),
            param: param.map(str::to_owned),
        };
        let request: Self = serde_json::from_slice(body).map_err(|error| {
            let why = excerpt(&error.to_string(), 200);
            wrong(&format!("We could not parse the JSON body of your request: {why}."), None)
        })?;
        let inputs = request.input.0.len();
        if inputs == 0 || inputs > MAX_INPUTS {
            let says = format!("Invalid 'input': give 1 to {MAX_INPUTS} texts.");
            return Err(wrong(&says, Some("input")));
        }
        if request.dimensions.is_some_and(|count| count == 0 || count > MAX_DIMENSIONS) {
            let says = format!("Invalid 'dimensions': give a number from 1 to {MAX_DIMENSIONS}.");
            return Err(wrong(&says, Some("dimensions")));
        }
        if inputs.saturating_mul(request.size()) > MAX_NUMBERS {
            return Err(wrong("Invalid 'input': fewer texts, or fewer dimensions.", Some("input")));
        }
        Ok(request)
    }

    fn size(&self) -> usize {
        self.dimensions.unwrap_or(DIMENSIONS)
    }

    fn tokens(&self) -> u64 {
        self.input.0.iter().fold(0, |sum: u64, input| sum.saturating_add(input.tokens))
    }

    fn body(&self, model: &str, inputs: &[Input]) -> String {
        let in_base64 = self.encoding_format.as_deref() == Some("base64");
        let data: Vec<Value> = (0_u64..)
            .zip(inputs)
            .map(|(index, input)| {
                let vector = vector(input.print.seed(), self.size());
                let vector = if in_base64 { json!(base64(&vector)) } else { json!(vector) };
                json!({"object": "embedding", "index": index, "embedding": vector})
            })
            .collect();
        let tokens = self.tokens();
        json!({
            "object": "list", "data": data, "model": excerpt(model, 1000),
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        })
        .to_string()
    }
}

/// A vector of length 1.
#[expect(clippy::cast_possible_truncation, reason = "vectors are sent as single floats")]
fn vector(seed: Seed, size: usize) -> Vec<f32> {
    let raw: Vec<f64> = (0..size as u64).map(|nth| seed.nth(nth).fraction() - 0.5).collect();
    let length = raw.iter().map(|part| part * part).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
    raw.iter().map(|part| (part / length) as f32).collect()
}

fn base64(vector: &[f32]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes: Vec<u8> = vector.iter().flat_map(|part| part.to_le_bytes()).collect();
    let mut out = String::with_capacity(bytes.len() * 4 / 3 + 4);
    for group in bytes.chunks(3) {
        let at = |nth: usize| u32::from(group.get(nth).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4_usize {
            let digit =
                usize::try_from(bits >> (18 - 6 * place) & 63).ok().and_then(|digit| DIGITS.get(digit));
            let digit = digit.filter(|_| place <= group.len()).copied().unwrap_or(b'=');
            out.push(char::from(digit));
        }
    }
    out
}

/// What is to be turned into vectors, as fingerprints.
#[derive(Debug)]
struct Inputs(Vec<Input>);

#[derive(Debug, Clone, Copy)]
struct Input {
    print: Fingerprint,
    tokens: u64,
}

impl Input {
    fn text(text: &str) -> Self {
        Self { print: Fingerprint::new().add(text), tokens: text.len() as u64 / 4 + 1 }
    }

    fn tokens(tokens: &[u64]) -> Self {
        let print = tokens.iter().fold(Fingerprint::new(), |print, token| print.add(&token.to_string()));
        Self { print, tokens: tokens.len() as u64 }
    }
}

/// One text, or one list of tokens.
#[derive(Deserialize)]
#[serde(untagged)]
enum EmbeddingInput {
    Token(u64),
    Text(String),
    Tokens(Vec<u64>),
}

impl<'de> Deserialize<'de> for Inputs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = Inputs;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text, a list of texts or tokens as 'input'")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Inputs, E> {
                Ok(Inputs(vec![Input::text(text)]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Inputs, A::Error> {
                let mut inputs = Vec::new();
                let mut tokens = Vec::new();
                while let Some(item) = items.next_element::<EmbeddingInput>()? {
                    match item {
                        EmbeddingInput::Token(token) => tokens.push(token),
                        EmbeddingInput::Text(text) => inputs.push(Input::text(&text)),
                        EmbeddingInput::Tokens(tokens) => inputs.push(Input::tokens(&tokens)),
                    }
                }
                // Bare numbers are the tokens of one input.
                inputs.extend((!tokens.is_empty()).then(|| Input::tokens(&tokens)));
                Ok(Inputs(inputs))
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(model: &str, body: &Value) -> (Play, Value) {
        let body = body.to_string();
        let ask = Ask { model, body: body.as_bytes(), ..Ask::default() };
        let mut play = embed(&ask);
        let bytes: Vec<u8> = play.beats.by_ref().flat_map(|beat| beat.bytes).collect();
        (play, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    #[test]
    fn a_text_has_one_vector_of_length_one() {
        let (_, one) = asked("ok", &json!({"input": "hello", "dimensions": 8}));
        let (_, many) = asked("ok?chunks=3", &json!({"input": ["bye", "hello"], "dimensions": 8}));
        let vector = &one["data"][0]["embedding"];
        assert_eq!(*vector, many["data"][1]["embedding"], "whatever the model");
        assert_ne!(*vector, many["data"][0]["embedding"]);
        let length: f64 = vector.as_array().unwrap().iter().map(|part| part.as_f64().unwrap().powi(2)).sum();
        assert!((length - 1.0).abs() < 1e-5, "{length}");
        assert_eq!(asked("ok", &json!({"input": [1, 2, 3]})).1["data"].as_array().unwrap().len(), 1);
        assert_eq!(asked("ok", &json!({"input": [[1, 2], [3]]})).1["data"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn base64_is_what_the_sdks_decode() {
        let (_, answer) =
            asked("ok", &json!({"input": "hello", "dimensions": 2, "encoding_format": "base64"}));
        assert_eq!(answer["data"][0]["embedding"].as_str().unwrap().len(), 12);
        assert_eq!(base64(&[0.0, 1.0]), "AAAAAAAAgD8=");
        assert_eq!(base64(&[-1.5]), "AADAvw==");
        assert_eq!(base64(&[]), "");
    }

    #[test]
    fn it_falls_and_refuses() {
        let status = |play: &Play| match play.head {
            crate::Head::Answer { status, .. } => status,
            _ => 0,
        };
        assert_eq!(status(&asked("fail-503", &json!({"input": "a"})).0), 503);
        assert_eq!(status(&asked("ok", &json!({"input": []})).0), 400);
        assert_eq!(status(&asked("ok", &json!({"input": "a", "dimensions": 0})).0), 400);
        assert_eq!(status(&asked("ok", &json!({"input": {"a": 1}})).0), 400);
        let (cut, body) = asked("cut", &json!({"input": "a"}));
        assert_eq!((status(&cut), cut.end, body), (200, crate::End::Cut, Value::Null));
    }
}

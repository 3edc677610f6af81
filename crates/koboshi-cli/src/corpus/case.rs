//! Labelled cases of the corpus files, recognised by their fields.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A form of corpus file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    ProviderErrors,
    AgentLogs,
    ToolErrors,
    ToolArgs,
    ToolSequences,
}

impl Form {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ProviderErrors => "provider-errors",
            Self::AgentLogs => "agent-logs",
            Self::ToolErrors => "tool-errors",
            Self::ToolArgs => "tool-args",
            Self::ToolSequences => "tool-sequences",
        }
    }
}

/// One labelled case.
#[derive(Debug)]
pub(crate) enum Case {
    Provider(Box<ProviderCase>),
    Log(Box<LogCase>),
    Tool(Box<ToolCase>),
    Args(Box<ArgsCase>),
    Sequence(Box<SequenceCase>),
}

#[derive(Debug, Deserialize)]
pub(crate) struct ProviderCase {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) transport: Option<String>,
    #[serde(default)]
    pub(crate) status: Option<u16>,
    #[serde(default)]
    pub(crate) headers: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub(crate) body: Option<String>,
    #[serde(default)]
    pub(crate) stream: bool,
    pub(crate) now: String,
    pub(crate) expect: ProviderExpect,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ProviderExpect {
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) retry_after_seconds: Option<f64>,
    #[serde(default)]
    pub(crate) retry_tolerance: f64,
    pub(crate) same_provider_retry: bool,
    pub(crate) failover: bool,
    pub(crate) counts_against_health: bool,
    #[serde(default)]
    pub(crate) also_ok: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct LogCase {
    pub(crate) id: String,
    pub(crate) log: String,
    #[serde(default)]
    pub(crate) exit_code: Option<i32>,
    pub(crate) now: String,
    pub(crate) expect: LogExpect,
}

#[derive(Debug, Deserialize)]
pub(crate) struct LogExpect {
    pub(crate) reason: String,
    #[serde(default)]
    pub(crate) also_ok: Vec<String>,
    #[serde(default)]
    pub(crate) wait_seconds: Option<f64>,
    #[serde(default)]
    pub(crate) wait_tolerance: f64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ToolCase {
    pub(crate) id: String,
    pub(crate) output: String,
    pub(crate) is_error: bool,
    pub(crate) expect: ToolExpect,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ToolExpect {
    #[serde(default)]
    pub(crate) category: Option<String>,
    #[serde(default)]
    pub(crate) also_ok: Vec<Option<String>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ArgsCase {
    pub(crate) id: String,
    pub(crate) input: String,
    pub(crate) schema: Option<Value>,
    pub(crate) expect: ArgsExpect,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ArgsExpect {
    pub(crate) outcome: String,
    /// As text: numbers of any size are compared by their digits.
    pub(crate) value: Box<RawValue>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct SequenceCase {
    pub(crate) id: String,
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) limits: Limits,
    pub(crate) calls: Vec<SequenceCall>,
    pub(crate) expect: SequenceExpect,
}

/// The limits that the labels of a sequence are written for.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Limits {
    /// Three similar errors, twenty calls a turn.
    #[default]
    Source,
    /// What the gateway does by default: calls are counted and never stopped for their number.
    Gateway,
}

#[derive(Debug, Deserialize)]
pub(crate) struct SequenceCall {
    pub(crate) tool: String,
    pub(crate) args: Value,
    pub(crate) output: String,
    pub(crate) is_error: Option<bool>,
    #[serde(default)]
    pub(crate) turn: u32,
    #[serde(default)]
    pub(crate) batch: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct SequenceExpect {
    pub(crate) stop_after: Option<usize>,
    #[serde(default)]
    pub(crate) stop_ok: Option<(usize, usize)>,
}

impl Case {
    /// Reads one line of a corpus file.
    pub(crate) fn read(line: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let has = |field: &str| value.get(field).is_some();
        let case = if has("log") {
            serde_json::from_value(value).map(Self::Log)
        } else if has("output") {
            serde_json::from_value(value).map(Self::Tool)
        } else if has("body") || has("transport") {
            serde_json::from_value(value).map(Self::Provider)
        } else if has("calls") {
            serde_json::from_value(value).map(Self::Sequence)
        } else if has("input") {
            // From the line itself: a parsed value would have lost digits.
            serde_json::from_str(line).map(Self::Args)
        } else {
            return Err(
                "no case of a known form: it needs `body`, `log`, `output`, `calls` or `input`".to_owned()
            );
        };
        case.map_err(|error| error.to_string())
    }

    pub(crate) fn form(&self) -> Form {
        match self {
            Self::Provider(_) => Form::ProviderErrors,
            Self::Log(_) => Form::AgentLogs,
            Self::Tool(_) => Form::ToolErrors,
            Self::Args(_) => Form::ToolArgs,
            Self::Sequence(_) => Form::ToolSequences,
        }
    }

    /// What was printed, or written by the model: what two cases may not have in common.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Provider(case) => {
                let headers = case.headers.iter().flatten().map(|(name, value)| format!("{name}: {value}\n"));
                let text = [&case.transport, &case.body].into_iter().flatten().map(String::as_str);
                headers.collect::<String>() + &text.collect::<Vec<_>>().join("\n")
            }
            Self::Log(case) => case.log.clone(),
            Self::Tool(case) => case.output.clone(),
            Self::Args(case) => case.input.clone(),
            Self::Sequence(case) => {
                let call = |call: &SequenceCall| format!("{} {} {}\n", call.tool, call.args, call.output);
                case.calls.iter().map(call).collect()
            }
        }
    }

    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Provider(case) => &case.id,
            Self::Log(case) => &case.id,
            Self::Tool(case) => &case.id,
            Self::Args(case) => &case.id,
            Self::Sequence(case) => &case.id,
        }
    }

    /// Cases of one family are close relatives: the id without its number, or the expected category.
    pub(crate) fn family(&self) -> String {
        match self {
            Self::Tool(case) => case.expect.category.clone().unwrap_or_else(|| "none".to_owned()),
            Self::Sequence(case) => case.kind.clone(),
            Self::Args(case) => {
                case.id.rsplit_once('/').map_or(case.id.as_str(), |(family, _)| family).to_owned()
            }
            _ => {
                let id = self.id();
                let number = id.rsplit('-').next().unwrap_or_default();
                let numbered = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
                if numbered {
                    id.trim_end_matches(number).trim_end_matches('-').to_owned()
                } else {
                    id.to_owned()
                }
            }
        }
    }
}

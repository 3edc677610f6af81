//! The time limits of a target, by kind of provider and model; the config overrides each.

use std::time::Duration;

use koboshi::models::Facts;
use koboshi_config::gateway::{ProviderKind, Timeouts};

/// The limits of one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timers {
    /// Until a connection is established.
    pub(crate) connect: Duration,
    /// Until a stream's first content.
    pub(crate) first_token: Duration,
    /// Between two pieces of a stream.
    pub(crate) idle: Duration,
    /// Until an answer that is not streamed begins: nothing comes before it is complete.
    pub(crate) unary: Duration,
    /// Until the end.
    pub(crate) total: Duration,
}

impl Timers {
    /// The limits of a model: as configured for the model, then for the provider, then the defaults.
    pub(crate) fn of(
        provider: &str,
        kind: ProviderKind,
        facts: &Facts,
        of_provider: &Timeouts,
        of_model: Option<&Timeouts>,
    ) -> Self {
        let usual = usual(provider, kind, facts.reasoning == Some(true));
        let configured =
            |pick: fn(&Timeouts) -> Option<Duration>| of_model.and_then(pick).or_else(|| pick(of_provider));
        Self {
            connect: configured(|configured| configured.connect).unwrap_or(usual.connect),
            first_token: configured(|configured| configured.first_token).unwrap_or(usual.first_token),
            idle: configured(|configured| configured.idle).unwrap_or(usual.idle),
            unary: configured(|configured| configured.unary).unwrap_or(usual.unary),
            total: configured(|configured| configured.total).unwrap_or(usual.total),
        }
    }
}

fn usual(provider: &str, kind: ProviderKind, reasons: bool) -> Timers {
    let seconds = Duration::from_secs;
    let connect = match kind {
        ProviderKind::Ollama => 5,
        ProviderKind::Openai if provider == "openai" => 20,
        _ => 10,
    };
    let (first, idle, whole) = match kind {
        ProviderKind::Ollama => (600, if reasons { 120 } else { 30 }, 600),
        _ if reasons => (300, 120, 600),
        ProviderKind::Deepseek => (60, 30, 120),
        _ => (30, 30, 120),
    };
    let total = if kind == ProviderKind::Deepseek && !reasons { 120 } else { 600 };
    Timers {
        connect: seconds(connect),
        first_token: seconds(first),
        idle: seconds(idle),
        unary: seconds(whole),
        total: seconds(total),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use koboshi::models::Models;

    fn of(provider: &str, kind: ProviderKind, model: &str) -> Timers {
        let facts = Models::builtin().unwrap().facts(provider, model);
        Timers::of(provider, kind, &facts, &Timeouts::default(), None)
    }

    #[test]
    fn the_usual_limits_are_those_of_the_seeds() {
        let openai = of("openai", ProviderKind::Openai, "gpt-4o");
        assert_eq!(
            [openai.connect, openai.first_token, openai.idle, openai.total].map(|it| it.as_secs()),
            [20, 30, 30, 600]
        );
        assert_eq!(of("groq", ProviderKind::Openai, "llama").connect.as_secs(), 10);
        let deepseek = of("deepseek", ProviderKind::Deepseek, "deepseek-chat");
        assert_eq!([deepseek.first_token, deepseek.total].map(|it| it.as_secs()), [60, 120]);
        let thinker = of("openai", ProviderKind::Openai, "o3");
        assert_eq!([thinker.first_token, thinker.idle].map(|it| it.as_secs()), [300, 120]);
        let ollama = of("ollama", ProviderKind::Ollama, "llama3");
        assert_eq!([ollama.connect, ollama.first_token].map(|it| it.as_secs()), [5, 600]);
    }

    #[test]
    fn the_model_beats_the_provider_beats_the_usual() {
        let provider = Timeouts {
            first_token: Some(Duration::from_secs(1)),
            idle: Some(Duration::from_secs(2)),
            ..Timeouts::default()
        };
        let model = Timeouts { first_token: Some(Duration::from_secs(9)), ..Timeouts::default() };
        let timers = Timers::of("x", ProviderKind::Openai, &Facts::default(), &provider, Some(&model));
        assert_eq!([timers.first_token, timers.idle, timers.connect].map(|it| it.as_secs()), [9, 2, 10]);
    }
}

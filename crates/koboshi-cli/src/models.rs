//! `koboshi models`: what is known of a model, and where each fact comes from.

use std::io::{self, Write};
use std::path::PathBuf;

use anstream::stdout;
use anstyle::Style;
use koboshi::models::{Facts, Models};
use koboshi_config::Config;
use koboshi_config::gateway::{ProviderKind, SIM};
use koboshi_config::load::LoadedConfig;
use koboshi_gateway::{Origin, kind_of, owners_of, stated};
use serde_json::{Map, Value, json};

use crate::args::{Format, ModelsArgs};
use crate::say::{Say, width};
use crate::{Exit, Failure, settings};

const STRONG: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();

/// What is known of models, and the sources.
struct ModelSources {
    models: Models,
    config: Config,
    file: Option<(PathBuf, LoadedConfig)>,
}

/// A fact of a model.
struct Fact {
    key: &'static str,
    value: Value,
    from: FactOrigin,
}

/// The source of a fact.
enum FactOrigin {
    Config(FileLine),
    File(FileLine),
    BuiltIn(u64),
    Assumed,
}

/// A file and a line.
struct FileLine(String, Option<u64>);

pub(crate) fn run(args: &ModelsArgs) -> Result<Exit, Failure> {
    let file = settings::find_or_go_on(args.config.file.as_deref(), &args.lang)?;
    let config = file.as_ref().map(|(_, loaded)| loaded.config.clone()).unwrap_or_default();
    let say = Say::new(args.lang.get(&config))?;
    let known =
        ModelSources { models: koboshi_gateway::models(&config).map_err(Failure::new)?, config, file };
    let names = if args.names.is_empty() { known.named() } else { known.meant(&args.names) };
    let mut out = stdout().lock();
    match args.format {
        Format::Json => {
            serde_json::to_writer_pretty(&mut out, &known.json(&names)).map_err(io::Error::from)?;
            writeln!(out)?;
        }
        Format::Text if names.is_empty() => known.families(&mut out, &say)?,
        Format::Text => {
            for (at, name) in names.iter().enumerate() {
                if at > 0 {
                    writeln!(out)?;
                }
                known.show(&mut out, name, &say)?;
            }
        }
    }
    Ok(Exit::Good)
}

impl ModelSources {
    /// The models that the config names: links of its chains without a placeholder.
    fn named(&self) -> Vec<String> {
        let routes = self.config.routes.values();
        let links = routes.flat_map(|route| route.chain.iter().chain(&route.simple_model));
        let links = links.chain(&self.config.degrade.simple_model).filter(|link| !link.contains("{model}"));
        each_once(links.cloned())
    }

    /// The models that the user names; a route stands for the models of its chain.
    fn meant(&self, names: &[String]) -> Vec<String> {
        let each = names.iter().flat_map(|name| match self.config.routes.get(name) {
            Some(route) => route.chain.iter().map(|link| link.replace("{model}", name)).collect(),
            None => vec![name.clone()],
        });
        each_once(each)
    }

    /// Provider, its kind, and the model. A bare name belongs to its maker.
    fn target<'n>(&'n self, name: &'n str) -> (&'n str, ProviderKind, &'n str) {
        let kind = |provider: &str| {
            let own = self.config.providers.get(provider).map(|one| one.kind);
            own.or_else(|| kind_of(provider)).or((provider == SIM).then_some(ProviderKind::Sim))
        };
        if let Some((provider, model)) = name.split_once('/')
            && let Some(kind) = kind(provider)
        {
            return (provider, kind, model);
        }
        let mut owners = owners_of(&self.models, name);
        let owner = owners.next().unwrap_or_default();
        (owner, kind(owner).unwrap_or(ProviderKind::Openai), name)
    }

    /// Every fact of a model.
    fn facts(&self, name: &str) -> Vec<Fact> {
        let (provider, kind, model) = self.target(name);
        let layers: Vec<_> = stated(provider, kind, model, &self.models, &self.config).collect();
        let assumed = fields(&Facts::assumed());
        let of_key = |key: &'static str| {
            let first = layers.iter().find_map(|(facts, origin)| Some((fields(facts).remove(key)?, origin)));
            match first {
                Some((value, origin)) => Fact { key, value, from: self.from(*origin) },
                None => Fact {
                    key,
                    value: assumed.get(key).cloned().unwrap_or_default(),
                    from: FactOrigin::Assumed,
                },
            }
        };
        Facts::KEYS.iter().copied().map(of_key).collect()
    }

    fn from(&self, origin: Origin<'_>) -> FactOrigin {
        match origin {
            Origin::Config(entry) => {
                let (path, line) = self.file.as_ref().map_or((String::new(), None), |(path, loaded)| {
                    (path.display().to_string(), loaded.models.get(entry).copied())
                });
                FactOrigin::Config(FileLine(path, line))
            }
            Origin::File(entry) => match &entry.file {
                Some(file) => FactOrigin::File(FileLine(file.to_string(), Some(entry.line))),
                None => FactOrigin::BuiltIn(entry.line),
            },
        }
    }

    fn show(&self, out: &mut impl Write, name: &str, say: &Say) -> io::Result<()> {
        let (provider, kind, model) = self.target(name);
        let whole = if provider.is_empty() { model.to_owned() } else { format!("{provider}/{model}") };
        writeln!(out, "{STRONG}{whole}{STRONG:#}")?;
        let facts = self.facts(name);
        let values: Vec<String> = facts.iter().map(|fact| shown(&fact.value)).collect();
        let widest = values.iter().map(|value| width(value)).max().unwrap_or_default();
        for (fact, value) in facts.iter().zip(&values) {
            let room = widest - width(value);
            let from = fact.from.text(say);
            writeln!(out, "  {:<21}  {value}{:room$}  {QUIET}{from}{QUIET:#}", fact.key, "")?;
        }
        // A model of the simulated provider is what its name says.
        let is_unknown =
            kind != ProviderKind::Sim && facts.iter().all(|fact| matches!(fact.from, FactOrigin::Assumed));
        if is_unknown {
            writeln!(out, "{}", say.text("models-unknown", &[]))?;
        }
        Ok(())
    }

    /// Where no model is named anywhere: the naming patterns of the providers.
    fn families(&self, out: &mut impl Write, say: &Say) -> io::Result<()> {
        writeln!(out, "{}", say.text("models-none-named", &[]))?;
        for (vendor, patterns) in self.models.vendors() {
            writeln!(out, "  {vendor:<12}{}", patterns.join("  "))?;
        }
        Ok(())
    }

    fn json(&self, names: &[String]) -> Value {
        let one = |name: &String| {
            let (provider, _, model) = self.target(name);
            let facts: Map<String, Value> =
                self.facts(name).into_iter().map(|fact| (fact.key.to_owned(), fact.json())).collect();
            json!({"provider": provider, "model": model, "facts": facts})
        };
        let vendors: Map<String, Value> =
            self.models.vendors().map(|(vendor, patterns)| (vendor.to_owned(), json!(patterns))).collect();
        json!({"models": names.iter().map(one).collect::<Vec<_>>(), "vendors": vendors})
    }
}

impl Fact {
    fn json(self) -> Value {
        let (from, place) = match self.from {
            FactOrigin::Config(place) => ("config", place),
            FactOrigin::File(place) => ("file", place),
            FactOrigin::BuiltIn(line) => ("built_in", FileLine("models.yaml".to_owned(), Some(line))),
            FactOrigin::Assumed => return json!({"value": self.value, "from": "assumed"}),
        };
        json!({"value": self.value, "from": from, "file": place.0, "line": place.1})
    }
}

impl FactOrigin {
    fn text(&self, say: &Say) -> String {
        match self {
            Self::Config(place) | Self::File(place) => match place {
                FileLine(file, Some(line)) => format!("{file}:{line}"),
                FileLine(file, None) => file.clone(),
            },
            Self::BuiltIn(line) => say.text("models-built-in", &[("line", &line.to_string())]),
            Self::Assumed => say.text("models-assumed", &[]),
        }
    }
}

fn each_once(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// Facts by their keys.
fn fields(facts: &Facts) -> Map<String, Value> {
    match serde_json::to_value(facts) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

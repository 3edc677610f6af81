//! Why a config cannot be served, without starting or asking anything: for checking a config.
//!
//! A start ends at the first reason; a user who fixes a file wants to see all of them, each with its key.

use jiff::tz::TimeZoneDatabase;
use koboshi_config::Config;

use crate::route::answers::Answers;
use crate::route::plan::PlanError;
use crate::route::provider::Provider;
use crate::server::gateway::{StartError, known_to, read};
use crate::server::tls::Certificate;

/// One reason why a config cannot be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The key as in the table of keys, such as `providers.*.ca_file`; empty where no single key is at fault.
    pub key: &'static str,
    /// The name of the provider; empty outside of providers.
    pub entry: String,
    /// The reason.
    pub why: String,
}

/// Every reason why this config could not be served here. Rule files are only read where nothing else is wrong.
#[must_use]
pub fn refusals(
    config: &Config,
    zones: &TimeZoneDatabase,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Vec<Refusal> {
    let mut found: Vec<Refusal> = answers(config).into_iter().chain(certificate(config)).collect();
    let providers = config.providers.iter();
    found
        .extend(providers.filter_map(|(name, one)| Some(of_plan(Provider::compile(name, one, None).err()?))));
    if found.is_empty() {
        let error = known_to(config.clone(), zones, lookup).err();
        found.extend(error.map(|error| of_start(&error)));
    }
    found
}

fn answers(config: &Config) -> Option<Refusal> {
    let path = config.degrade.answers_file.as_deref()?;
    let parsed = read(path)
        .and_then(|text| Answers::parse(&text).map_err(|error| format!("{}: {error}", path.display())));
    Some(Refusal { key: "degrade.answers_file", entry: String::new(), why: parsed.err()? })
}

fn certificate(config: &Config) -> Option<Refusal> {
    let why = Certificate::of(&config.serve.tls).err()?;
    let of = |key: &'static str| Some((key, why.strip_prefix(key)?.strip_prefix(": ")?));
    let (key, why) = of("serve.tls.key").or_else(|| of("serve.tls.certificate")).unwrap_or(("", &why));
    Some(Refusal { key, entry: String::new(), why: why.to_owned() })
}

fn of_plan(error: PlanError) -> Refusal {
    let whole = error.to_string();
    let (key, entry, why) = match error {
        PlanError::Address(name, why) => ("providers.*.base_url", name, why.to_string()),
        PlanError::Trust(name, why) => ("providers.*.ca_file", name, why),
        PlanError::Credentials(name, why) => ("providers.*.credentials_file", name, why),
        PlanError::Key(name) => ("providers.*.keys", name, whole),
        PlanError::Lacks(..) | PlanError::Unknown(..) | PlanError::Unset(..) => ("", String::new(), whole),
    };
    Refusal { key, entry, why }
}

fn of_start(error: &StartError) -> Refusal {
    let key = match error {
        StartError::Rules(_) => "rules",
        StartError::Models(_) => "models_file",
        StartError::Zone(_) => "spend.zone",
        StartError::Unset { .. } => "routes",
        _ => "",
    };
    Refusal { key, entry: String::new(), why: error.to_string() }
}

//! Checks keys of the file against each other: contradictions, missing keys, and names that do not exist.
//!
//! Only what the file itself can answer. [`policy`](crate::policy) asks the core's policies about their values. A problem that only
//! follows from a value that could not be read is not reported.

mod agents;
mod embeddings;
mod notify;
mod providers;
mod sim;

use std::collections::BTreeMap;

use crate::at::At;
use crate::check::{MAX_PROBLEMS, Problem};
use crate::config::{Config, Language};
use crate::gateway::{SIM, open_to_others};
use crate::load::Mistake;
use crate::near::nearest;
use crate::schema::EXCLUSIVE;
use crate::tree::Spot;
use crate::walk::{GivenKey, Walk};
use crate::well_known;
use crate::wide;
use crate::words::{Text, text, tr, words};

/// Everything that does not fit together.
pub(crate) fn check(config: &Config, walk: &mut Walk<'_>, sim: fn(&str) -> Option<Mistake>) -> Vec<Problem> {
    let mut found = contradictions(walk);
    found.extend(prefix_without_server(config, walk));
    found.extend(half_of_tls(config, walk));
    found.extend(rate_without_length(walk));
    found.extend(open_without_keys(config, walk));
    found.extend(hashes_twice(config, walk));
    found.extend(providers::check(config, walk));
    found.extend(targets(config, walk));
    found.extend(sim::check(config, walk, sim));
    found.extend(models(config, walk));
    found.extend(agents::check(config, walk));
    found.extend(notify::check(config, walk));
    found
}

/// What can be used, but is probably a mistake.
pub(crate) fn warn(config: &Config, walk: &Walk<'_>, unset: fn(&str) -> Vec<&'static str>) -> Vec<Problem> {
    let mut found = providers::warn(config, walk);
    found.extend(without_variables(config, walk, unset));
    found.extend(wide_names(config, walk));
    found.extend(agents::warn(config, walk));
    found.extend(embeddings::warn(config, walk));
    found.extend(notify::warn(config, walk));
    found
}

/// Names that look like ASCII on the screen and are not: no client's model and no provider's model has such a name.
fn wide_names(config: &Config, walk: &Walk<'_>) -> Vec<Problem> {
    let routes = walk.entries("routes.*").chain(walk.entries("models.*"));
    let routes = routes.map(|(at, spot)| (at, *spot, at.entry.as_str()));
    let wide = routes.chain(named(config, walk)).filter(|(_, _, name)| wide::is_in(name));
    wide.take(MAX_PROBLEMS)
        .map(|(at, spot, _)| {
            let message = text!(
                "`{}` has full-width characters: it does not match names that are written in ASCII",
                "`{}` に全角文字があります。半角で書かれた名前とは一致しません",
                at.shown
            );
            walk.problem(at, spot, message, None)
        })
        .collect()
}

/// Targets of a well-known provider whose variables are not set here. They may be set where the gateway runs, so the file is valid.
fn without_variables(config: &Config, walk: &Walk<'_>, unset: fn(&str) -> Vec<&'static str>) -> Vec<Problem> {
    if !config.providers.is_empty() || walk.failed("providers.*", "") || walk.failed("providers", "") {
        return Vec::new();
    }
    // Once for each provider: the same variable helps all of its targets.
    let mut seen = Vec::new();
    let mut found = Vec::new();
    for (at, spot, target) in named(config, walk) {
        let Some((provider, _)) = target.split_once('/') else { continue };
        let Some(provider) = well_known::find(provider).map(|known| known.name) else { continue };
        let variables = unset(provider);
        if variables.is_empty() || seen.contains(&provider) {
            continue;
        }
        seen.push(provider);
        let (shown, names) = (&at.shown, variables.join("`, `"));
        let message = text!(
            "`{shown}` needs the environment variable `{names}`, which is not set here: without it `koboshi serve` does not start",
            "`{shown}` には環境変数 `{names}` が必要ですが、ここでは設定されていません。設定しないと `koboshi serve` は起動しません"
        );
        let set = variables.iter().map(|name| format!("export {name}=…")).collect::<Vec<_>>().join("; ");
        let hint = text!(
            "set it where the gateway runs (`{set}`), or describe `{provider}` in `providers`",
            "ゲートウェイを起動する環境で設定するか（`{set}`）、`providers` に `{provider}` を書いてください"
        );
        found.push(walk.problem(at, spot, message, Some(hint)));
    }
    found
}

/// Two keys that set the same thing: the later one in the file is reported.
fn contradictions(walk: &Walk<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    for (one, two, what) in EXCLUSIVE {
        let (Some(one), Some(two)) = (walk.given(one, ""), walk.given(two, "")) else { continue };
        let (first, second) = if one.spot <= two.spot { (one, two) } else { (two, one) };
        let (late, early, line) = (&second.at.shown, &first.at.shown, first.spot.line);
        let message = Text::of(|language| {
            let what = what.get(language);
            tr!(
                language,
                "`{late}` sets {what}, and so does `{early}` in line {line}",
                "`{late}` と {line} 行目の `{early}` は、どちらも{what}の設定です"
            )
        });
        found.push(walk.problem(&second.at, second.spot, message, Some(keep_one())));
    }
    found
}

fn prefix_without_server(config: &Config, walk: &Walk<'_>) -> Option<Problem> {
    let prefix = walk.given("store.prefix", "")?;
    if config.store.place.prefix().is_some() || walk.failed("store.redis", "") {
        return None;
    }
    let message = words(
        "`store.prefix` is read only together with `store.redis`",
        "`store.prefix` は `store.redis` と一緒に設定したときだけ使われます",
    );
    let hint = words(
        "set `store.redis`, or take `prefix` out",
        "`store.redis` を設定するか、`prefix` を削除してください",
    );
    Some(walk.problem(&prefix.at, prefix.spot, message.into(), Some(hint.into())))
}

/// A certificate without its key, or a key without its certificate.
fn half_of_tls(config: &Config, walk: &Walk<'_>) -> Option<Problem> {
    let (certificate, key) = ("serve.tls.certificate", "serve.tls.key");
    let (given, lacking) = match (&config.serve.tls.certificate, &config.serve.tls.key) {
        (Some(_), None) => (certificate, key),
        (None, Some(_)) => (key, certificate),
        _ => return None,
    };
    if walk.failed(lacking, "") {
        return None;
    }
    let given = walk.given(given, "")?;
    let shown = &given.at.shown;
    let message = text!(
        "`{shown}` alone does not turn TLS on: `{lacking}` is missing",
        "`{shown}` だけでは TLS は有効になりません。`{lacking}` がありません"
    );
    let hint = text!("set `{lacking}` too", "`{lacking}` も設定してください");
    Some(walk.problem(&given.at, given.spot, message, Some(hint)))
}

fn rate_without_length(walk: &mut Walk<'_>) -> Option<Problem> {
    let (rate, length) = ("breaker.window.slow.rate", "breaker.window.slow.longer_than");
    let given = walk.given(rate, "")?;
    if walk.given(length, "").is_some() || walk.failed(length, "") {
        return None;
    }
    let message = text!(
        "`{rate}` is set, but not from when on a call is slow",
        "`{rate}` が設定されていますが、何秒から遅いとみなすかが設定されていません"
    );
    let hint = text!("set `{length}` too, such as `30s`", "`{length}` も `30s` のように設定してください");
    let problem = walk.problem(&given.at, given.spot, message, Some(hint));
    // The core would report the same.
    walk.give_up(length);
    Some(problem)
}

/// A public address without keys: anyone who can reach the gateway could spend the keys of its owner.
fn open_without_keys(config: &Config, walk: &Walk<'_>) -> Option<Problem> {
    let listen = walk.given("serve.listen", "")?;
    let has_keys = !config.keys.is_empty() || walk.failed("keys.*", "") || walk.failed("keys", "");
    if config.serve.is_loopback() || has_keys {
        return None;
    }
    let (message, hint) = open_to_others(config.serve.listen);
    Some(walk.problem(&listen.at, listen.spot, message, Some(hint)))
}

/// One hash under two names: the owner of a request would be unknown.
fn hashes_twice(config: &Config, walk: &Walk<'_>) -> Vec<Problem> {
    let mut all: Vec<(&GivenKey, &str)> = walk
        .all_given("keys.*.sha256")
        .filter_map(|given| Some((given, config.keys.get(&given.at.entry)?.sha256.as_str())))
        .collect();
    all.extend(walk.given("admin.sha256", "").zip(config.admin.sha256.as_deref()));
    all.sort_by_key(|(given, _)| given.spot);
    let mut seen: BTreeMap<&str, &GivenKey> = BTreeMap::new();
    let mut found = Vec::new();
    for (given, hash) in all {
        let Some(first) = seen.get(hash) else {
            seen.insert(hash, given);
            continue;
        };
        let (late, early, line) = (&given.at.shown, &first.at.shown, first.spot.line);
        let message = text!(
            "`{late}` is the same key as `{early}` in line {line}",
            "`{late}` は {line} 行目の `{early}` と同じキーです"
        );
        let hint = words(
            "give each its own key, so that one can be revoked alone",
            "1 つだけ無効にできるように、別々のキーにしてください",
        );
        found.push(walk.problem(&given.at, given.spot, message, Some(hint.into())));
    }
    found
}

fn keep_one() -> Text {
    words("keep one of the two", "どちらか一方を残してください").into()
}

/// Every target that the file names, with its place.
fn named<'c>(config: &'c Config, walk: &'c Walk<'_>) -> Vec<(&'c At, Spot, &'c str)> {
    let mut named: Vec<(&At, Spot, &str)> = Vec::new();
    for given in walk.all_given("routes.*.chain") {
        let chain =
            config.routes.get(&given.at.entry).map(|route| route.chain.as_slice()).unwrap_or_default();
        named.extend(given.parts.iter().zip(chain).map(|(spot, target)| (&given.at, *spot, target.as_str())));
    }
    for given in walk.all_given("routes.*.simple_model") {
        let simple = config.routes.get(&given.at.entry).and_then(|route| route.simple_model.as_deref());
        named.extend(simple.map(|target| (&given.at, given.spot, target)));
    }
    if let (Some(given), Some(simple)) =
        (walk.given("degrade.simple_model", ""), &config.degrade.simple_model)
    {
        named.push((&given.at, given.spot, simple));
    }
    named
}

/// Chains and simple models whose provider does not exist.
fn targets(config: &Config, walk: &Walk<'_>) -> Vec<Problem> {
    if walk.failed("providers.*", "") || walk.failed("providers", "") {
        return Vec::new();
    }
    let own = config.providers.keys().map(String::as_str).chain([SIM]);
    let known: Vec<&str> = match own.clone().count() {
        1 => well_known::names().chain([SIM]).collect(),
        _ => own.collect(),
    };
    let unknown = named(config, walk).into_iter().filter_map(|(at, spot, target)| {
        let (provider, _) = target.split_once('/')?;
        (!known.contains(&provider)).then_some((at, spot, provider))
    });
    // Further ones would not be shown, and each is compared with every name.
    unknown
        .take(MAX_PROBLEMS)
        .map(|(at, spot, provider)| unknown_provider(config, walk, &known, (at, spot, provider)))
        .collect()
}

fn unknown_provider(
    config: &Config,
    walk: &Walk<'_>,
    known: &[&str],
    (at, spot, provider): (&At, Spot, &str),
) -> Problem {
    let from_environment = config.providers.is_empty();
    let (shown, quoted) = (&at.shown, walk.quote(provider));
    let message = if from_environment {
        text!(
            "`{shown}` names the provider `{quoted}`, which is none of the well-known ones",
            "`{shown}`: `{quoted}` というプロバイダーはありません"
        )
    } else {
        text!(
            "`{shown}` names the provider `{quoted}`, which is not in `providers`",
            "`{shown}` のプロバイダー `{quoted}` は`providers` にありません"
        )
    };
    let near = nearest(provider, known.iter().copied());
    let hint = Text::of(|language| {
        let meant = near.map(|near| tr!(language, "did you mean `{near}`?", "`{near}` のことですか？"));
        let known = some(known, language);
        match (meant, from_environment) {
            (Some(meant), false) => meant,
            (None, false) => tr!(language, "there are {known}", "使えるもの: {known}"),
            (meant, true) => {
                let meant = meant.map(|meant| format!("{meant} ")).unwrap_or_default();
                tr!(
                    language,
                    "{meant}those are {known}; others must be in `providers`",
                    "{meant}`providers` に書かずに使えるのは {known}です"
                )
            }
        }
    });
    walk.problem(at, spot, message, Some(hint))
}

/// The first of many names.
fn some(names: &[&str], language: Language) -> String {
    let (more, between) = match language {
        Language::En => (" and others", ", "),
        Language::Ja => ("など", "、"),
    };
    let more = if names.len() > 12 { more } else { "" };
    format!("{}{more}", names.iter().take(12).copied().collect::<Vec<_>>().join(between))
}

/// Entries of `models` for a provider that does not exist. A well-known one may be configured later.
fn models(config: &Config, walk: &Walk<'_>) -> Vec<Problem> {
    if walk.failed("providers.*", "") || walk.failed("providers", "") {
        return Vec::new();
    }
    let known: Vec<&str> =
        config.providers.keys().map(String::as_str).chain(well_known::names()).chain([SIM]).collect();
    let unknown = walk.entries("models.*").filter_map(|(at, spot)| {
        let (provider, _) = at.entry.split_once('/')?;
        (!provider.contains('*') && !known.contains(&provider)).then_some((at, *spot, provider))
    });
    unknown
        .take(MAX_PROBLEMS)
        .map(|(at, spot, provider)| {
            let (shown, quoted) = (&at.shown, walk.quote(provider));
            let message = text!(
                "`{shown}` is about the provider `{quoted}`, which is not there",
                "`{shown}` のプロバイダー `{quoted}` はありません"
            );
            let hint = match nearest(provider, known.iter().copied()) {
                Some(near) => text!("did you mean `{near}`?", "`{near}` のことですか？"),
                None => words(
                    "name one of `providers`, or write `*` for any",
                    "`providers` にある名前を書くか、すべてを指す `*` を書いてください",
                )
                .into(),
            };
            walk.problem(at, spot, message, Some(hint))
        })
        .collect()
}

//! Routes: the deployments of a model in their order, then those of its fallbacks.

use koboshi::models::is_embedding;

use super::deployments::{Deployment, Providers, is_name};
use super::note::{Level, Notes};
use super::settings::{Fallback, fallbacks};
use super::value::{entries, get, line, model, parts, string};
use crate::tree::{Node, Raw};
use crate::words::{Text, text, words};

/// Longer chains are cut.
const MAX_CHAIN: usize = 16;

/// A route of ours.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) name: String,
    pub(super) chain: Vec<String>,
}

/// Builds routes.
struct RouteBuilder<'b> {
    deployments: &'b [Deployment],
    providers: &'b Providers,
}

/// Builds all routes.
pub(super) fn build(
    root: &Node,
    deployments: &[Deployment],
    providers: &Providers,
    notes: &mut Notes,
) -> Vec<Route> {
    let build = RouteBuilder { deployments, providers };
    let mut routes: Vec<Route> = Vec::new();
    for deployment in deployments {
        if !routes.iter().any(|route| route.name == deployment.group) {
            let chain = build.chain(&deployment.group, notes);
            routes.push(Route { name: deployment.group.clone(), chain });
        }
    }
    // Models without a translated deployment may still have fallbacks.
    for name in names(root) {
        if !routes.iter().any(|route| route.name == name) {
            routes.push(Route { name, chain: Vec::new() });
        }
    }
    build.fall_back(root, &mut routes, notes);
    build.aliases(root, &mut routes, notes);
    for route in &mut routes {
        if route.chain.len() > MAX_CHAIN {
            route.chain.truncate(MAX_CHAIN);
            let reason = text!(
                "its chain has more than {MAX_CHAIN} targets; the others are left out",
                "ターゲットが {MAX_CHAIN} 個を超えるため、残りは省略しました"
            );
            notes.add(1, &model(&route.name), Level::Left, reason);
        }
    }
    routes.retain(|route| !route.chain.is_empty());
    for route in &routes {
        let is_translated = deployments.iter().any(|one| one.group == route.name);
        if let Some(at) = line_of(root, &route.name).filter(|_| !is_translated) {
            let (en, ja) = (route.chain.join(", "), route.chain.join("、"));
            let reason = Text::new(
                format!("its own deployments were not translated: its route has only its fallbacks, {en}"),
                format!("このモデル自体のデプロイは変換されず、ルートにはフォールバックだけがあります: {ja}"),
            );
            notes.add(at, &model(&route.name), Level::Changed, reason);
        }
    }
    routes
}

/// Every name of `model_list`.
fn names(root: &Node) -> Vec<String> {
    let list = get(root, "model_list").map(parts).unwrap_or_default();
    list.iter()
        .filter_map(|node| get(node, "model_name").and_then(string))
        .filter(|name| is_name(name))
        .collect()
}

/// Where `model_list` first has this name.
fn line_of(root: &Node, name: &str) -> Option<u64> {
    let list = get(root, "model_list").map(parts).unwrap_or_default();
    list.iter()
        .filter_map(|node| get(node, "model_name"))
        .find(|node| string(node).as_deref() == Some(name))
        .map(line)
}

/// A setting of the router, else of the module: the router's wins.
fn setting<'n>(root: &'n Node, key: &str) -> Option<&'n Node> {
    ["router_settings", "litellm_settings"].iter().find_map(|section| get(get(root, section)?, key))
}

/// What holds for all models and does not reach one of them was translated all the same.
fn level_of(key: &str) -> Level {
    if key == "default_fallbacks" { Level::Changed } else { Level::Left }
}

impl RouteBuilder<'_> {
    /// The targets of a model, by `order` and then in the order of the file.
    fn chain(&self, group: &str, notes: &mut Notes) -> Vec<String> {
        let mut own: Vec<(u64, usize)> = self
            .deployments
            .iter()
            .enumerate()
            .filter(|(_, one)| one.group == group)
            .map(|(number, one)| (one.order, number))
            .collect();
        own.sort();
        let mut chain = Vec::new();
        for (_, number) in own {
            if let Some(target) = self.target(group, number, notes)
                && !chain.contains(&target)
            {
                chain.push(target);
            }
        }
        chain
    }

    /// `provider/model`; none where a pattern needs no route, or leads nowhere.
    fn target(&self, group: &str, number: usize, notes: &mut Notes) -> Option<String> {
        let (deployment, provider) = (self.deployments.get(number)?, self.providers.of(number)?);
        let name = &provider.name;
        let Some((before, after)) = deployment.model.split_once('*') else {
            return Some(format!("{name}/{}", deployment.model));
        };
        // `claude-*` at `anthropic/claude-*`, and `*` at `openai/*`: the model keeps its name.
        if after.is_empty() && (group == "*" && before.is_empty() || group == deployment.model) {
            return Some(format!("{name}/{{model}}"));
        }
        // `openai/*` at `openai/*`: a model with its provider before it needs no route.
        if after.is_empty() && before.is_empty() && group == format!("{name}/*") {
            return None;
        }
        let reason = text!(
            "this pattern cannot be written as a route; ask for `{name}/MODEL` instead",
            "このパターンはルートとして書けません。代わりに `{name}/モデル名` を指定してください"
        );
        notes.add(deployment.line, &model(group), Level::Left, reason);
        None
    }

    /// The targets of a name in a fallback: a model, a deployment, or a model of a pattern.
    fn named(&self, name: &str, routes: &[Route], notes: &mut Notes) -> Option<Vec<String>> {
        if self.deployments.iter().any(|one| one.group == name) {
            return Some(self.chain(name, notes));
        }
        if let Some(number) = self.deployments.iter().position(|one| one.id.as_deref() == Some(name)) {
            return self.target(name, number, notes).map(|target| vec![target]);
        }
        if routes.iter().any(|route| route.name == name) {
            return Some(Vec::new());
        }
        let (provider, _) = name.split_once('/')?;
        let is_pattern = |one: &&Deployment| one.group == format!("{provider}/*");
        self.deployments.iter().find(is_pattern).map(|_| vec![name.to_owned()])
    }

    fn fall_back(&self, root: &Node, routes: &mut [Route], notes: &mut Notes) {
        let general = setting(root, "fallbacks").map(fallbacks).unwrap_or_default();
        for Fallback { from, line, to } in general.iter().filter(|one| one.from != "*") {
            if routes.iter().any(|route| route.name == *from) {
                self.append(from, "fallbacks", to, routes, notes);
            } else {
                let reason = words(
                    "there is no such model in `model_list`",
                    "指定されたモデルが `model_list` にありません",
                );
                notes.left(*line, &format!("fallbacks.{}", model(from)), reason);
            }
        }
        let has_own = |name: &str| general.iter().any(|one| one.from == name);
        let for_all = general.iter().filter(|one| one.from == "*");
        let mut defaults: Vec<(String, u64)> = for_all.flat_map(|one| one.to.clone()).collect();
        if let Some(node) = setting(root, "default_fallbacks") {
            defaults.extend(parts(node).iter().filter_map(|one| Some((string(one)?, line(one)))));
        }
        let names: Vec<String> = routes.iter().map(|route| route.name.clone()).collect();
        for name in names.iter().filter(|name| !has_own(name)) {
            self.append(name, "default_fallbacks", &defaults, routes, notes);
        }
        for key in ["context_window_fallbacks", "content_policy_fallbacks"] {
            let Some(node) = setting(root, key) else { continue };
            for one in fallbacks(node) {
                self.append(&one.from, key, &one.to, routes, notes);
            }
            let reason = words(
                "these targets are at the end of the chain: they are tried after every kind of failure, not after this one only",
                "これらのターゲットはルートのリストの末尾に置かれ、この種類に限らず、どの失敗の後でも試されます",
            );
            notes.add(line(node), key, Level::Changed, reason);
            if key == "content_policy_fallbacks" {
                let reason = words(
                    "`request.route_around_filters: true` was written for it: it holds for every route, so a request that a content filter refuses goes on to the next target of any chain",
                    "これに伴い `request.route_around_filters: true` を書き込みました。これはすべてのルートに適用され、どのルートでも、コンテンツフィルターに拒否されたリクエストが次のターゲットに送られます",
                );
                notes.add(line(node), key, Level::Changed, reason);
            }
        }
    }

    fn append(&self, from: &str, key: &str, to: &[(String, u64)], routes: &mut [Route], notes: &mut Notes) {
        for (name, at) in to.iter().filter(|(name, _)| name != from) {
            let Some(targets) = self.named(name, routes, notes) else {
                let reason = text!(
                    "there is no model `{}` in `model_list`",
                    "`model_list` に `{}` というモデルがありません",
                    model(name)
                );
                notes.add(*at, key, Level::Left, reason);
                continue;
            };
            let targets = self.that_fit(from, key, (name, *at), targets, notes);
            let Some(route) = routes.iter_mut().find(|route| route.name == from) else { continue };
            // A pattern without a route leads to its provider anyway: a route of fallbacks alone would hide that.
            if route.chain.is_empty() && from.contains('*') {
                let reason = text!(
                    "models that are asked for as `{}` go straight to their provider and have no fallbacks. To give one of them fallbacks, add a route with its name",
                    "`{}` の形で指定されたモデルは、直接プロバイダーに送られ、フォールバックはありません。フォールバックが必要なモデルには、その名前のルートを追加してください",
                    model(from)
                );
                notes.add(*at, key, level_of(key), reason);
                continue;
            }
            // A target with the client's model does not fit another route.
            for target in targets.into_iter().filter(|target| !target.contains("{model}")) {
                if !route.chain.contains(&target) {
                    route.chain.push(target);
                }
            }
        }
    }

    /// The targets of a fallback that can take the requests of a model. Vectors of two models do not mix, and a chat model makes none, so an
    /// embedding model falls back to nothing but the same model elsewhere.
    fn that_fit(
        &self,
        from: &str,
        key: &str,
        (name, at): (&str, u64),
        targets: Vec<String>,
        notes: &mut Notes,
    ) -> Vec<String> {
        let own: Vec<&Deployment> = self.deployments.iter().filter(|one| one.group == from).collect();
        let from_embeds = own.iter().any(|one| one.embeds);
        let fits = |target: &String| {
            let (_, to) = target.split_once('/').unwrap_or(("", target));
            let is_same = own.iter().any(|one| one.model == to);
            let embeds = is_embedding(to)
                || self.deployments.iter().any(|one| one.embeds && one.group == name && one.model == to);
            is_same || !from_embeds && !embeds
        };
        let (fitting, others): (Vec<String>, Vec<String>) = targets.into_iter().partition(fits);
        if !others.is_empty() {
            let (from, en, others) = (model(from), others.join(", "), others.join("、"));
            let reason = text!(
                "`{from}` does not fall back to {en}: an embedding model falls back to no other model, because vectors of two models cannot be compared and chat models make none",
                "`{from}` のフォールバックから {others} を除きました。モデルが異なるとベクトルを比較できず、チャットモデルはベクトルを作れないため、埋め込みモデルとほかのモデルの間ではフォールバックしません"
            );
            notes.add(at, key, level_of(key), reason);
        }
        fitting
    }

    fn aliases(&self, root: &Node, routes: &mut Vec<Route>, notes: &mut Notes) {
        let Some(node) = setting(root, "model_group_alias") else { return };
        for (alias, value) in entries(node) {
            let name = match &value.value {
                Raw::Map(_) => get(value, "model").and_then(string),
                _ => string(value),
            };
            let chain = name.as_deref().and_then(|name| routes.iter().find(|route| route.name == name));
            match chain.map(|route| route.chain.clone()).filter(|chain| !chain.is_empty()) {
                Some(chain) if is_name(alias) && !routes.iter().any(|route| route.name == alias) => {
                    routes.push(Route { name: alias.to_owned(), chain });
                }
                Some(_) => {}
                None => notes.left(
                    line(value),
                    &format!("model_group_alias.{}", model(alias)),
                    words(
                        "there is no such model in `model_list`",
                        "指定されたモデルが `model_list` にありません",
                    ),
                ),
            }
        }
    }
}

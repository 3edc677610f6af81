//! Providers held against their kind: what a kind needs and does not have, and what it has and does not read.

use crate::check::Problem;
use crate::config::Config;
use crate::gateway::{ProviderConfig, ProviderDialect, ProviderKind, SIM};
use crate::load::{Given, Walk};

/// What every provider lacks or has too much.
pub(super) fn check(config: &Config, walk: &Walk<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    for (at, _) in walk.entries("providers.*") {
        let name = at.entry.as_str();
        // Without a kind nothing can be said of what belongs to it.
        let (Some(provider), Some(kind)) = (config.providers.get(name), walk.given("providers.*.kind", name))
        else {
            continue;
        };
        let of = Of { walk, name, provider, kind };
        found.extend(of.built_in());
        found.extend(of.unread());
        found.extend(of.lacking());
        found.extend(of.two_credentials());
        found.extend(of.unspoken());
        found.extend(of.too_far());
    }
    found
}

/// One provider.
struct Of<'c> {
    walk: &'c Walk<'c>,
    name: &'c str,
    provider: &'c ProviderConfig,
    kind: &'c Given,
}

impl<'c> Of<'c> {
    fn given(&self, path: &'static str) -> Option<&'c Given> {
        self.walk.given(path, self.name)
    }

    /// Neither there nor misspelt.
    fn has_no(&self, path: &'static str) -> bool {
        self.given(path).is_none() && !self.walk.failed(path, self.name)
    }

    fn complain(&self, given: &Given, message: String, hint: &str) -> Problem {
        self.walk.problem(&given.at, given.spot, message, Some(hint.to_owned()))
    }

    fn built_in(&self) -> Option<Problem> {
        if self.name != SIM || self.provider.kind == ProviderKind::Sim {
            return None;
        }
        let message = format!("`{SIM}` is the name of the built-in provider, so its kind is `{SIM}`");
        Some(self.complain(self.kind, message, "choose another name for this provider"))
    }

    /// Keys that belong to other kinds.
    fn unread(&self) -> Vec<Problem> {
        use ProviderKind::{Azure, Sim, Vertex};
        let kind = self.provider.kind;
        let read = [
            ("providers.*.base_url", kind != Sim),
            ("providers.*.keys", kind != Sim && kind != Vertex),
            ("providers.*.token_command", kind != Sim),
            ("providers.*.credentials_file", kind == Vertex),
            ("providers.*.project", kind == Vertex),
            ("providers.*.location", kind == Vertex),
            ("providers.*.api_version", kind == Azure),
        ];
        let unread = read.into_iter().filter(|(_, read)| !read).filter_map(|(path, _)| self.given(path));
        unread
            .map(|given| {
                let message = format!("`{}` is not read for the kind `{}`", given.at.shown, kind.name());
                let hint = match (kind, given.at.key.name()) {
                    (Vertex, "keys") => "write `credentials_file` or `token_command` in its place",
                    _ => "take it out",
                };
                self.complain(given, message, hint)
            })
            .collect()
    }

    /// What the kind cannot do without.
    fn lacking(&self) -> Option<Problem> {
        let lacks = |what: &str, hint: &str| {
            let (kind, at) = (self.provider.kind.name(), &self.kind.at);
            let shown = at.shown.strip_suffix(".kind").unwrap_or(&at.shown);
            let message = format!("`{shown}` is of the kind `{kind}` and has no {what}");
            Some(self.complain(self.kind, message, hint))
        };
        match self.provider.kind {
            ProviderKind::Azure if self.has_no("providers.*.base_url") => lacks(
                "`base_url`",
                "write the endpoint of your resource, such as `https://NAME.openai.azure.com`",
            ),
            ProviderKind::Vertex
                if self.has_no("providers.*.credentials_file")
                    && self.has_no("providers.*.token_command") =>
            {
                lacks(
                    "`credentials_file` and no `token_command`",
                    "write the path of a service account's key file, or a command such as `[gcloud, auth, print-access-token]`",
                )
            }
            ProviderKind::Vertex
                if self.has_no("providers.*.project") && self.has_no("providers.*.credentials_file") =>
            {
                lacks("`project`", "write the id of the project that is billed")
            }
            _ => None,
        }
    }

    /// Two things that tell the provider who asks: nobody could say which of them is meant.
    fn two_credentials(&self) -> Option<Problem> {
        let command = self.given("providers.*.token_command")?;
        let is_vertex = self.provider.kind == ProviderKind::Vertex;
        let other = if is_vertex { "providers.*.credentials_file" } else { "providers.*.keys" };
        let other = self.given(other).filter(|_| is_vertex || !self.provider.keys.is_empty())?;
        let (first, second) = if command.spot <= other.spot { (command, other) } else { (other, command) };
        let message = format!(
            "`{}` says how to prove who asks, and so does `{}` in line {}",
            second.at.shown, first.at.shown, first.spot.line
        );
        Some(self.complain(second, message, "keep one of the two"))
    }

    /// Dialects that the kind has no path for, or that are there twice.
    fn unspoken(&self) -> Option<Problem> {
        let given = self.given("providers.*.dialects")?;
        let spoken = &self.provider.dialects;
        let known: &[ProviderDialect] = match self.provider.kind {
            ProviderKind::Azure => &[ProviderDialect::Chat, ProviderDialect::Responses],
            ProviderKind::Vertex => &[ProviderDialect::Gemini],
            _ => ProviderDialect::ALL,
        };
        let shown = &given.at.shown;
        for (place, dialect) in spoken.iter().enumerate() {
            let spot = given.parts.get(place).copied().unwrap_or(given.spot);
            let name = dialect.name();
            let said = if spoken.iter().take(place).any(|one| one == dialect) {
                (format!("`{shown}` names `{name}` twice"), "take one of them out".to_owned())
            } else if !known.contains(dialect) {
                let names: Vec<_> = known.iter().map(|one| format!("`{}`", one.name())).collect();
                let kind = self.provider.kind.name();
                let hint = format!("it knows {}", names.join(" and "));
                (format!("the kind `{kind}` has no way to speak `{name}`"), hint)
            } else {
                continue;
            };
            return Some(self.walk.problem(&given.at, spot, said.0, Some(said.1)));
        }
        None
    }

    /// An address with a part that is added to it anyway.
    fn too_far(&self) -> Option<Problem> {
        let given = self.given("providers.*.base_url")?;
        let whole = self.provider.base_url.as_deref()?.trim_end_matches('/');
        let ends: &[&str] = match self.provider.kind {
            ProviderKind::Azure => &["/chat/completions", "/responses", "/openai/v1", "/openai"],
            ProviderKind::Gemini => &["/models"],
            ProviderKind::Vertex => &["/models", "/google", "/projects"],
            _ => &["/chat/completions", "/responses", "/messages", "/embeddings"],
        };
        let end = ends.iter().find(|end| whole.ends_with(*end))?;
        let message = format!("`{}` goes too far: `{end}` is added to it", given.at.shown);
        Some(self.complain(given, message, "leave it out"))
    }
}

//! Checks providers against their kind: keys that the kind needs, and keys that it does not read.

use std::net::{IpAddr, SocketAddr};

use koboshi::redact::Redactor;

use crate::check::Problem;
use crate::config::Config;
use crate::gateway::{ProviderConfig, ProviderDialect, ProviderKind, SIM};
use crate::walk::{GivenKey, Walk};
use crate::well_known;
use crate::words::{Text, Words, text, tr, words};

/// What every provider lacks or has too much.
pub(super) fn check(config: &Config, walk: &Walk<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    for (at, _) in walk.entries("providers.*") {
        let name = at.entry.as_str();
        // Without a kind its keys cannot be checked.
        let (Some(provider), Some(kind)) = (config.providers.get(name), walk.given("providers.*.kind", name))
        else {
            continue;
        };
        let of = ProviderCheck { walk, name, provider, kind };
        found.extend(of.built_in());
        found.extend(of.unread());
        found.extend(of.lacking());
        found.extend(of.two_credentials());
        found.extend(of.unspoken());
        found.extend(of.too_far());
        found.extend(of.is_this_gateway(config));
    }
    found
}

/// What is probably a mistake: a key that looks like the name of a variable, and an address without its usual path.
pub(super) fn warn(config: &Config, walk: &Walk<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    for given in walk.all_given("providers.*.keys") {
        let Some(provider) = config.providers.get(&given.at.entry) else { continue };
        if !provider.keys.iter().any(|key| is_name_of_variable(key.expose())) {
            continue;
        }
        let message = text!(
            "a key of `{}` reads like the name of a variable: it is taken as the key itself",
            "`{}` に環境変数の名前のようなキーがあります。このままではキーそのものとして使われます",
            given.at.shown
        );
        let hint = words(
            "write `\"${OPENAI_API_KEY}\"`, with braces",
            "`\"${OPENAI_API_KEY}\"` のように波かっこを付けて書いてください",
        );
        found.push(walk.problem(&given.at, given.spot, message, Some(hint.into())));
    }
    let redactor = Redactor::new();
    for given in walk.all_given("providers.*.keys") {
        let Some(provider) = config.providers.get(&given.at.entry) else { continue };
        // Only what surely is a key: a server at home may want any word.
        let is_written = |key: &str| walk.is_in_file(key) && redactor.redact(key) != key;
        if !provider.keys.iter().any(|key| is_written(key.expose())) {
            continue;
        }
        let message = text!(
            "a key of `{}` stands in this file: who gets the file has the key",
            "`{}` のキーがこのファイルにそのまま書かれています。ファイルを入手した人は誰でもキーを使えます",
            given.at.shown
        );
        let hint = words(
            "put it into an environment variable, and write `\"${NAME}\"` here",
            "キーを環境変数に入れて、ここには `\"${変数名}\"` と書いてください",
        );
        found.push(walk.problem(&given.at, given.spot, message, Some(hint.into())));
    }
    for given in walk.all_given("providers.*.base_url") {
        let Some(provider) = config.providers.get(&given.at.entry) else { continue };
        let Some(url) = provider.base_url.as_deref() else { continue };
        if walk.given("providers.*.kind", &given.at.entry).is_none() {
            continue;
        }
        let Some(path) = missing_path(provider.kind, url) else { continue };
        let (shown, right) = (&given.at.shown, format!("{}{path}", url.trim_end_matches('/')));
        let message = text!(
            "`{shown}` has no path: the API is usually under `{path}`",
            "`{shown}` にパスがありません。API は通常 `{path}` の下にあります"
        );
        let quoted = walk.quote(&right);
        let hint = text!("write `{quoted}`", "`{quoted}` と書いてください");
        found.push(walk.problem(&given.at, given.spot, message, Some(hint)));
    }
    found
}

/// `$OPENAI_API_KEY`, `OPENAI_API_KEY` and LiteLLM's `os.environ/OPENAI_API_KEY`.
fn is_name_of_variable(key: &str) -> bool {
    let is_name = |name: &str| {
        name.contains('_')
            && name.starts_with(|first: char| first.is_ascii_uppercase())
            && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    key.starts_with("os.environ/") || is_name(key.strip_prefix('$').unwrap_or(key))
}

/// The path that an address without one probably lacks.
fn missing_path(kind: ProviderKind, url: &str) -> Option<&'static str> {
    let (_, rest) = url.split_once("://")?;
    let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
    if !path.is_empty() {
        return None;
    }
    let host = server.split(':').next().unwrap_or(server);
    match kind {
        ProviderKind::Azure | ProviderKind::Sim => None,
        ProviderKind::Gemini => Some("/v1beta"),
        _ => Some(well_known::path_at(host).unwrap_or("/v1")).filter(|path| !path.is_empty()),
    }
}

/// Whether a URL leads to this address: the same port, on the same machine by a name of loopback or by the address itself.
fn is_at(url: &str, listen: SocketAddr) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    let server = rest.split(['/', '?']).next().unwrap_or(rest);
    let server = server.rsplit('@').next().unwrap_or(server);
    let usual = if scheme == "https" { 443 } else { 80 };
    let (host, port) = match server.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port.parse().ok()),
        _ => (server, Some(usual)),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let address = host.parse::<IpAddr>().ok();
    let is_local =
        host.eq_ignore_ascii_case("localhost") || address.is_some_and(|address| address.is_loopback());
    let own = listen.ip();
    port == Some(listen.port())
        && (address == Some(own) || is_local && (own.is_loopback() || own.is_unspecified()))
}

/// One provider.
struct ProviderCheck<'c> {
    walk: &'c Walk<'c>,
    name: &'c str,
    provider: &'c ProviderConfig,
    kind: &'c GivenKey,
}

impl<'c> ProviderCheck<'c> {
    fn given(&self, path: &'static str) -> Option<&'c GivenKey> {
        self.walk.given(path, self.name)
    }

    /// Whether a key is neither there nor misspelt.
    fn has_no(&self, path: &'static str) -> bool {
        self.given(path).is_none() && !self.walk.failed(path, self.name)
    }

    fn complain(&self, given: &GivenKey, message: Text, hint: Words) -> Problem {
        self.walk.problem(&given.at, given.spot, message, Some(hint.into()))
    }

    /// A provider at the gateway's own address: each request would call itself until resources are exhausted.
    fn is_this_gateway(&self, config: &Config) -> Option<Problem> {
        let given = self.given("providers.*.base_url")?;
        let url = self.provider.base_url.as_deref()?;
        if !is_at(url, config.serve.listen) {
            return None;
        }
        let message = text!(
            "`{}` is the address of this gateway itself: every request would call itself",
            "`{}` はこのゲートウェイ自身のアドレスです。リクエストが自分自身を呼び続けることになります",
            given.at.shown
        );
        let hint = words(
            "write the provider's address, or choose another port in `serve.listen`",
            "プロバイダーのアドレスを書くか、`serve.listen` で別のポートを指定してください",
        );
        Some(self.complain(given, message, hint))
    }

    fn built_in(&self) -> Option<Problem> {
        if self.name != SIM || self.provider.kind == ProviderKind::Sim {
            return None;
        }
        let message = text!(
            "`{SIM}` is the name of the built-in provider, so its kind is `{SIM}`",
            "`{SIM}` は内蔵プロバイダーの名前なので、種類は `{SIM}` です"
        );
        let hint =
            words("choose another name for this provider", "このプロバイダーには別の名前を付けてください");
        Some(self.complain(self.kind, message, hint))
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
                let message = text!(
                    "`{}` is not read for the kind `{}`",
                    "`{}` は種類が `{}` のときは使われません",
                    given.at.shown,
                    kind.name()
                );
                let hint = match (kind, given.at.key.name()) {
                    (Vertex, "keys") => words(
                        "write `credentials_file` or `token_command` in its place",
                        "代わりに `credentials_file` か `token_command` を書いてください",
                    ),
                    _ => words("take it out", "削除してください"),
                };
                self.complain(given, message, hint)
            })
            .collect()
    }

    /// The keys that the kind needs.
    fn lacking(&self) -> Option<Problem> {
        let lacks = |what: Words, hint: Words| {
            let (kind, at) = (self.provider.kind.name(), &self.kind.at);
            let shown = at.shown.strip_suffix(".kind").unwrap_or(&at.shown);
            let message = Text::of(|language| {
                let what = what.get(language);
                tr!(
                    language,
                    "`{shown}` is of the kind `{kind}` and has no {what}",
                    "`{shown}` の種類は `{kind}` ですが、{what}がありません"
                )
            });
            Some(self.complain(self.kind, message, hint))
        };
        match self.provider.kind {
            ProviderKind::Azure if self.has_no("providers.*.base_url") => lacks(
                words("`base_url`", "`base_url`"),
                words(
                    "write the endpoint of your resource, such as `https://NAME.openai.azure.com`",
                    "`https://NAME.openai.azure.com` のような、リソースのエンドポイントを書いてください",
                ),
            ),
            ProviderKind::Vertex
                if self.has_no("providers.*.credentials_file")
                    && self.has_no("providers.*.token_command") =>
            {
                lacks(
                    words(
                        "`credentials_file` and no `token_command`",
                        "`credentials_file` または `token_command`",
                    ),
                    words(
                        "write the path of a service account's key file, or a command such as `[gcloud, auth, print-access-token]`",
                        "サービスアカウントのキーファイルのパスか、`[gcloud, auth, print-access-token]` のようなコマンドを書いてください",
                    ),
                )
            }
            ProviderKind::Vertex
                if self.has_no("providers.*.project") && self.has_no("providers.*.credentials_file") =>
            {
                lacks(
                    words("`project`", "`project`"),
                    words(
                        "write the id of the project that is billed",
                        "課金先のプロジェクト ID を書いてください",
                    ),
                )
            }
            _ => None,
        }
    }

    /// Two credentials: it is unclear which of them is meant.
    fn two_credentials(&self) -> Option<Problem> {
        let command = self.given("providers.*.token_command")?;
        let is_vertex = self.provider.kind == ProviderKind::Vertex;
        let other = if is_vertex { "providers.*.credentials_file" } else { "providers.*.keys" };
        let other = self.given(other).filter(|_| is_vertex || !self.provider.keys.is_empty())?;
        let (first, second) = if command.spot <= other.spot { (command, other) } else { (other, command) };
        let (late, early, line) = (&second.at.shown, &first.at.shown, first.spot.line);
        let message = text!(
            "`{late}` sets the credentials, and so does `{early}` in line {line}",
            "`{late}` と {line} 行目の `{early}` は、どちらも認証情報の設定です"
        );
        Some(self.complain(second, message, words("keep one of the two", "どちらか一方を残してください")))
    }

    /// Dialects that the kind has no path for, or duplicates.
    fn unspoken(&self) -> Option<Problem> {
        let given = self.given("providers.*.dialects")?;
        let spoken = &self.provider.dialects;
        let known: &[ProviderDialect] = match self.provider.kind {
            ProviderKind::Azure => &[ProviderDialect::Chat, ProviderDialect::Responses],
            ProviderKind::Vertex => &[ProviderDialect::Gemini],
            ProviderKind::Openai
            | ProviderKind::Anthropic
            | ProviderKind::Gemini
            | ProviderKind::Ollama
            | ProviderKind::Deepseek
            | ProviderKind::Sim => ProviderDialect::ALL,
        };
        let shown = &given.at.shown;
        for (place, dialect) in spoken.iter().enumerate() {
            let spot = given.parts.get(place).copied().unwrap_or(given.spot);
            let name = dialect.name();
            let said = if spoken.iter().take(place).any(|one| one == dialect) {
                (
                    text!("`{shown}` names `{name}` twice", "`{shown}` に `{name}` が 2 回あります"),
                    words("take one of them out", "片方を削除してください").into(),
                )
            } else if !known.contains(dialect) {
                let names: Vec<_> = known.iter().map(|one| format!("`{}`", one.name())).collect();
                let kind = self.provider.kind.name();
                let hint = Text::new(
                    format!("it knows {}", names.join(" and ")),
                    format!("使えるもの: {}", names.join("、")),
                );
                (
                    text!(
                        "the kind `{kind}` does not have `{name}`",
                        "種類 `{kind}` では `{name}` を使えません"
                    ),
                    hint,
                )
            } else {
                continue;
            };
            return Some(self.walk.problem(&given.at, spot, said.0, Some(said.1)));
        }
        None
    }

    /// An address that ends with a part which is added anyway.
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
        let message = text!(
            "`{}` goes too far: `{end}` is added to it",
            "`{}` に余分なパスがあります。`{end}` は自動で付きます",
            given.at.shown
        );
        Some(self.complain(given, message, words("leave it out", "末尾から削除してください")))
    }
}

#[cfg(test)]
mod tests {
    use super::{is_at, is_name_of_variable};

    #[test]
    fn a_key_that_reads_like_a_variable_is_seen() {
        for key in ["$OPENAI_API_KEY", "OPENAI_API_KEY", "os.environ/OPENAI_API_KEY"] {
            assert!(is_name_of_variable(key), "{key}");
        }
        for key in ["sk-proj-abc_DEF", "AKIAIOSFODNN7EXAMPLE", "", "$", "abc_def"] {
            assert!(!is_name_of_variable(key), "{key}");
        }
    }

    #[test]
    fn a_provider_at_the_gateways_own_address_is_seen() {
        let own = "127.0.0.1:4141".parse().unwrap();
        for url in [
            "http://localhost:4141/v1", "http://127.0.0.1:4141", "http://[::1]:4141/v1",
            "http://LOCALHOST:4141",
        ] {
            assert!(is_at(url, own), "{url}");
        }
        for url in [
            "http://localhost:4142/v1", "https://api.openai.com/v1", "http://10.0.0.1:4141/v1",
            "http://localhost/v1",
        ] {
            assert!(!is_at(url, own), "{url}");
        }
        assert!(is_at("http://localhost:4141/v1", "0.0.0.0:4141".parse().unwrap()));
        assert!(is_at("http://10.0.0.1:4141/v1", "10.0.0.1:4141".parse().unwrap()));
        assert!(is_at("http://localhost/v1", "127.0.0.1:80".parse().unwrap()));
    }
}

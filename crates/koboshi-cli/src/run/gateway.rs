//! Chooses the gateway that a command is pointed at.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use koboshi::models::Models;
use koboshi_config::Config;
use koboshi_config::agents::{AUTO, OFF};
use koboshi_config::gateway::{ProviderConfig, ProviderKind};
use koboshi_supervisor::Kind;

/// A gateway of this machine answers sooner, or does not run.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// The gateway that a command is pointed at, and what its user should know about that.
pub(crate) struct GatewayAddress {
    pub(crate) address: Option<String>,
    /// A phrase and its variables.
    pub(crate) notice: Option<(&'static str, Vec<(&'static str, String)>)>,
}

/// Chooses the gateway of a command of this kind, with this environment.
pub(crate) fn choose(
    asked: &str,
    config: &Config,
    kind: &Kind,
    environment: &[(OsString, OsString)],
) -> GatewayAddress {
    let plain = |address| GatewayAddress { address, notice: None };
    if asked == OFF || !kind.gateway.is_known() {
        return plain(None);
    }
    let found = if asked == AUTO { listening(config) } else { Some(base_of(asked)) };
    let Some(address) = found else { return plain(None) };
    let told = |id, name, value: &str, kept: Option<String>| GatewayAddress {
        notice: Some((id, vec![("address", address.clone()), (name, value.to_owned())])),
        address: kept,
    };
    if let Some(missing) = kind.gateway.missing(environment) {
        return told("run-gateway-needs", "variable", missing, None);
    }
    if asked == AUTO && !config.keys.is_empty() {
        return told("run-gateway-wants-keys", "vendor", "", None);
    }
    if asked == AUTO && !can_serve(kind, config) {
        let vendor = kind.vendor.as_deref().unwrap_or_default();
        return told("run-gateway-without-key", "vendor", vendor, None);
    }
    // The gateway would use its own key in place of the login, and another account would pay.
    if asked == AUTO && !config.serve.passthrough && kind.gateway.signs_in(environment) {
        return told("run-gateway-login", "variable", &kind.gateway.user_keys.join(", "), None);
    }
    if asked != AUTO && !is_open(asked) {
        return told("run-gateway-silent", "vendor", "", Some(address.clone()));
    }
    plain(Some(address))
}

/// An address without the path that the kinds add themselves.
pub(crate) fn base_of(address: &str) -> String {
    address.trim_end_matches('/').trim_end_matches("/v1").to_owned()
}

/// The gateway of this config, if it answers. It would refuse a command without one of its keys.
pub(crate) fn answering(config: &Config) -> Option<String> {
    if config.keys.is_empty() { listening(config) } else { None }
}

/// The gateway of this config, if it answers, whatever it wants of its clients.
fn listening(config: &Config) -> Option<String> {
    let address = reachable(config.serve.listen);
    answers(address).then(|| format!("{}://{address}", config.serve.scheme()))
}

/// Whether the gateway of this config has something for programs of this kind: a provider with a key of its own, a route, or the way through
/// to the vendor with the program's own key.
pub(crate) fn can_serve(kind: &Kind, config: &Config) -> bool {
    // One that belongs to no vendor asks for whatever the gateway has.
    let Some(vendor) = kind.vendor.as_deref() else { return true };
    let has_provider = config.providers.values().any(|one| is_usable(one) && is_of(one.kind, vendor));
    let has_route = config.routes.keys().any(|route| route == "*" || takes_models_of(vendor, route));
    // An agent that shows the gateway's key has no other one to show.
    (config.serve.passthrough && config.keys.is_empty()) || has_provider || has_route
}

/// Whether a provider can be asked without a key of the client.
fn is_usable(provider: &ProviderConfig) -> bool {
    let needs_none = matches!(provider.kind, ProviderKind::Ollama | ProviderKind::Sim | ProviderKind::Vertex);
    needs_none || !provider.keys.is_empty() || !provider.token_command.is_empty()
}

fn is_of(kind: ProviderKind, vendor: &str) -> bool {
    match vendor {
        "anthropic" => kind == ProviderKind::Anthropic,
        "openai" => matches!(kind, ProviderKind::Openai | ProviderKind::Azure),
        "google" => matches!(kind, ProviderKind::Gemini | ProviderKind::Vertex),
        _ => matches!(kind, ProviderKind::Openai | ProviderKind::Ollama | ProviderKind::Deepseek),
    }
}

/// Whether a route takes models of this vendor: by a name of one, or by a pattern that some of its names fit.
fn takes_models_of(vendor: &str, route: &str) -> bool {
    // The file of models calls a vendor as its provider is called.
    let provider = if vendor == "google" { "gemini" } else { vendor };
    let Ok(models) = Models::builtin() else { return false };
    let mut patterns =
        models.vendors().filter(|(name, _)| *name == provider).flat_map(|(_, patterns)| patterns);
    let prefix = route.strip_suffix('*').filter(|prefix| !prefix.is_empty());
    // A vendor that the file does not have calls its models by its own name.
    route.starts_with(provider)
        || models.belongs_to(provider, route)
        || patterns.any(|pattern| prefix.is_some_and(|prefix| pattern.starts_with(prefix)))
}

/// Whether a text is `auto`, `off` or an address.
pub(crate) fn parse(text: &str) -> Result<String, String> {
    let is_address = || {
        let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"))?;
        let host = rest.split('/').next()?;
        (!host.is_empty() && !host.contains(['@', ' ']) && !host.starts_with(':')).then_some(())
    };
    if matches!(text, AUTO | OFF) || is_address().is_some() {
        return Ok(text.to_owned());
    }
    Err(format!("`{text}` is no address: write it like http://127.0.0.1:4141, or `auto`, or `off`"))
}

/// Whether a server accepts connections at this address.
fn is_open(address: &str) -> bool {
    let (scheme, rest) = address.split_once("://").unwrap_or(("http", address));
    let host = rest.split('/').next().unwrap_or_default();
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = if scheme == "https" { 443 } else { 80 };
    let place = if has_port { host.to_owned() } else { format!("{host}:{port}") };
    let found = place.to_socket_addrs().into_iter().flatten();
    found.into_iter().any(|address| TcpStream::connect_timeout(&address, ANSWER_TIMEOUT).is_ok())
}

/// The local address of a gateway that listens on all addresses.
pub(crate) fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

/// Whether a Koboshi gateway answers there.
fn answers(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, ANSWER_TIMEOUT)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
        write!(
            stream,
            "GET / HTTP/1.1\r\nhost: {address}\r\naccept: application/json\r\nconnection: close\r\n\r\n"
        )?;
        let mut said = Vec::new();
        stream.take(16 * 1024).read_to_end(&mut said)?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    };
    ask().is_ok_and(|said| said.starts_with("HTTP/1.1 200") && said.contains("Koboshi"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names are those of the file of models: what is added there counts here.
    #[test]
    fn a_route_takes_models_of_the_vendor_that_owns_the_name() {
        for (vendor, route, takes) in [
            ("anthropic", "claude-sonnet-4-5", true),
            ("anthropic", "claude*", true),
            ("anthropic", "gpt-5", false),
            ("openai", "chatgpt-4o-latest", true),
            ("openai", "o3-mini", true),
            ("openai", "gpt*", true),
            ("openai", "assistant", false),
            ("google", "gemini-2.5-pro", true),
            ("google", "gemma-*", true),
            ("qwen", "qwen3-coder-plus", true),
            ("qwen", "claude-*", false),
        ] {
            assert_eq!(takes_models_of(vendor, route), takes, "{vendor} {route}");
        }
    }
}

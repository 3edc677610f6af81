//! The address of a deployment: deployments with the same one belong to one provider.

use super::super::note::{Level, Notes};
use super::super::value::{get, line, ours, string, variable};
use super::super::vendors::Vendor;
use crate::gateway::ProviderKind;
use crate::schema::{Key, Shape};
use crate::tree::{Node, Raw};
use crate::words::{Words, text, words};

/// The address of a provider, and what else its kind needs. Texts are as our file writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProviderPlace {
    pub(crate) vendor: Vendor,
    pub(crate) base_url: Option<String>,
    pub(crate) api_version: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) location: Option<String>,
    pub(crate) credentials: Option<String>,
}

/// Reads it from the parameters of a deployment; `value` returns the node of a parameter.
pub(super) fn read<'n>(
    vendor: Vendor,
    value: impl Fn(&str) -> Option<&'n Node>,
    notes: &mut Notes,
) -> Result<ProviderPlace, Words> {
    let written = value("api_base").or_else(|| value("base_url"));
    let base_url = match written {
        Some(node) => address(vendor.kind, &string(node).unwrap_or_default())?,
        None if vendor.kind == ProviderKind::Azure => Some("${AZURE_API_BASE}".to_owned()),
        None if vendor.needs_address => return Err(NO_ADDRESS),
        None => vendor.base_url.map(str::to_owned),
    };
    let mut place = ProviderPlace {
        vendor,
        base_url,
        api_version: None,
        project: None,
        location: None,
        credentials: None,
    };
    let text = |name: &str| value(name).and_then(string);
    let checked = |key: &str, text: String, reason: Words| {
        if variable(&text).is_some() || fits(key, &text) { Ok(ours(&text)) } else { Err(reason) }
    };
    match vendor.kind {
        ProviderKind::Azure => {
            let version = text("api_version");
            place.api_version =
                version.map(|text| checked("providers.*.api_version", text, NO_VERSION)).transpose()?;
        }
        ProviderKind::Vertex => {
            let project = text("vertex_project");
            place.project = project.map(|text| checked("providers.*.project", text, NO_PLACE)).transpose()?;
            // LiteLLM's own default, which is not ours.
            let location = text("vertex_location").unwrap_or_else(|| "us-central1".to_owned());
            place.location = Some(checked("providers.*.location", location, NO_PLACE)?);
            place.credentials = Some(credentials(value("vertex_credentials"), notes)?);
        }
        _ => {}
    }
    Ok(place)
}

/// The key file of a service account.
fn credentials(node: Option<&Node>, notes: &mut Notes) -> Result<String, Words> {
    let Some(node) = node else { return Ok("${GOOGLE_APPLICATION_CREDENTIALS}".to_owned()) };
    match &node.value {
        Raw::Text(text) if text.trim_start().starts_with('{') => Err(INLINE),
        Raw::Text(text) => {
            if let Some(name) = variable(text) {
                let reason = text!(
                    "`{name}` must hold the path of the key file, not its content",
                    "`{name}` には、キーファイルの内容ではなくパスを設定してください"
                );
                notes.add(line(node), "vertex_credentials", Level::Todo, reason);
            }
            Ok(ours(text))
        }
        _ => Err(INLINE),
    }
}

/// An address as our file writes it: with the path that LiteLLM adds, and without the one that we add.
fn address(kind: ProviderKind, written: &str) -> Result<Option<String>, Words> {
    if written.is_empty() {
        return Ok(None);
    }
    if let Some(name) = variable(written) {
        return Ok(Some(match kind {
            ProviderKind::Ollama => format!("${{{name}}}/v1"),
            _ => format!("${{{name}}}"),
        }));
    }
    let bare = written.trim_end_matches('/');
    let cut = |ends: &[&str]| -> String {
        ends.iter().find_map(|end| bare.find(end).and_then(|at| bare.get(..at))).unwrap_or(bare).to_owned()
    };
    let address = match kind {
        ProviderKind::Azure => cut(&["/openai/deployments", "/openai/v1", "/openai", "/chat/completions"]),
        ProviderKind::Ollama => with_path(&cut(&["/api", "/v1"]), "/v1"),
        ProviderKind::Anthropic => with_path(&cut(&["/v1/messages", "/v1"]), "/v1"),
        ProviderKind::Gemini => cut(&["/models"]),
        _ => cut(&["/chat/completions", "/embeddings"]),
    };
    if fits("providers.*.base_url", &address) { Ok(Some(address)) } else { Err(NO_URL) }
}

/// Whether a text can be the value of a key of ours.
fn fits(key: &str, text: &str) -> bool {
    match Key::find(key).map(|key| &key.shape) {
        Some(Shape::Text { form, .. }) => (form.holds)(text),
        _ => true,
    }
}

fn with_path(address: &str, path: &str) -> String {
    format!("{}{path}", address.trim_end_matches('/'))
}

/// The values of a credential of `credential_list`.
pub(super) fn credential<'n>(list: &'n [Node], name: &str) -> Option<&'n Node> {
    let is_one = |node: &&Node| get(node, "credential_name").and_then(string).as_deref() == Some(name);
    list.iter().find(is_one).and_then(|node| get(node, "credential_values"))
}

const NO_ADDRESS: Words = words(
    "it has no `api_base`, and this kind of server has no usual address",
    "`api_base` がなく、この種類のサーバーには標準の URL もありません",
);
const NO_URL: Words = words("its `api_base` is no address", "`api_base` が URL ではありません");
const NO_VERSION: Words =
    words("its `api_version` is no version", "`api_version` がバージョンではありません");
const NO_PLACE: Words = words(
    "its `vertex_project` or `vertex_location` cannot be used",
    "`vertex_project` か `vertex_location` の値を使えません",
);
const INLINE: Words = words(
    "the credentials stand in the file: save them as a JSON file and name it as `credentials_file`",
    "認証情報がファイルに直接書かれています。JSON ファイルに保存し、`credentials_file` で指定してください",
);

//! An incoming webhook of Slack, with blocks. Channel, name and icon are those of the config.
//!
//! What a person or a provider wrote is escaped: it must not become a link or call everyone in the channel.

use koboshi_config::notify::ChannelConfig;
use koboshi_report::notice::NoticeText;
use serde_json::{Value, json};

use super::{Letter, SendError, url};
use crate::http::HttpRequest;

/// The most characters of a header block.
const MAX_HEADER: usize = 150;
/// The most characters of a section.
const MAX_SECTION: usize = 2900;

pub(super) fn request(channel: &ChannelConfig, letter: &Letter) -> Result<HttpRequest, SendError> {
    let body = payload(channel, letter).to_string().into_bytes();
    Ok(HttpRequest { url: url(channel)?, headers: Vec::new(), body })
}

fn payload(channel: &ChannelConfig, letter: &Letter) -> Value {
    let header: String = letter.heading.chars().take(MAX_HEADER).collect();
    let mut blocks =
        vec![json!({"type": "header", "text": {"type": "plain_text", "text": header, "emoji": false}})];
    blocks.extend(letter.texts.iter().map(|text| section(&written(text))));
    blocks.extend(letter.rest.iter().map(|line| section(&escaped(line))));
    let by = ["Koboshi", &letter.node, &letter.id].into_iter().filter(|part| !part.is_empty());
    let by = escaped(&by.collect::<Vec<_>>().join(" · "));
    blocks.push(json!({"type": "context", "elements": [{"type": "mrkdwn", "text": by}]}));
    let mut payload =
        json!({"text": escaped(&letter.heading), "username": channel.username, "blocks": blocks});
    let icon = if channel.icon.starts_with("https://") { "icon_url" } else { "icon_emoji" };
    if let Some(fields) = payload.as_object_mut() {
        fields.insert(icon.to_owned(), channel.icon.as_str().into());
        if let Some(name) = &channel.channel {
            fields.insert("channel".to_owned(), name.as_str().into());
        }
    }
    payload
}

fn section(text: &str) -> Value {
    let text: String = text.chars().take(MAX_SECTION).collect();
    json!({"type": "section", "text": {"type": "mrkdwn", "text": text}})
}

fn written(text: &NoticeText) -> String {
    let mut lines = vec![format!("*{}*", escaped(&text.title))];
    lines.extend(text.lines.iter().map(|line| escaped(line)));
    // A fence of its own text would end the block.
    lines.extend(
        text.detail.as_deref().map(|detail| format!("```{}```", escaped(detail).replace("```", "'''"))),
    );
    lines.join("\n")
}

/// As Slack wants it: these three signs begin links, mentions and entities.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_from_outside_calls_no_one_and_links_nowhere() {
        let text = NoticeText {
            title: "<!channel> account:a&b".to_owned(),
            lines: vec!["see <https://evil.example|here>".to_owned()],
            detail: Some("``` *bold*".to_owned()),
        };
        let heading = "<!here>".to_owned();
        let letter = Letter {
            id: "msg_1".to_owned(),
            node: "<!channel>".to_owned(),
            heading,
            texts: vec![text],
            rest: Vec::new(),
            plain: String::new(),
            json: Value::Null,
        };
        let channel = ChannelConfig { channel: Some("#ops".to_owned()), ..ChannelConfig::default() };
        let payload = payload(&channel, &letter);
        assert_eq!((&payload["channel"], &payload["username"]), (&json!("#ops"), &json!("Koboshi Alert")));
        assert_eq!(payload["icon_emoji"], ":warning:");
        assert_eq!(payload["text"], "&lt;!here&gt;");
        assert_eq!(payload["blocks"][2]["elements"][0]["text"], "Koboshi · &lt;!channel&gt; · msg_1");
        let said = payload["blocks"][1]["text"]["text"].as_str().unwrap();
        assert!(!said.contains('<') && said.matches("```").count() == 2, "{said}");
    }
}

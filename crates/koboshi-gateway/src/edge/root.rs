//! `GET /`: describes the gateway to people who open its address, and to programs.
//!
//! A browser gets a small page, other clients the same as JSON. It shows nothing about keys, providers or requests, so it needs no key.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_SECURITY_POLICY, HeaderName};
use koboshi_report::phrase::Lang;
use koboshi_wire::http1::Fields;
use serde_json::json;

use crate::edge::chat;
use crate::http::response_future::ResponseFuture;
use crate::reply;
use crate::reply::endpoints::{OWN, SERVED, Vendor};
use crate::shared::context::RequestContext;
use crate::shared::core_state::CoreState;
use crate::shared::disclosure::Disclosure;

/// Answers in the format that the client accepts.
pub(crate) fn answer(core: &CoreState, context: &RequestContext, headers: &Fields) -> ResponseFuture {
    let say = |id: &str| core.state.phrases.text(context.lang, id, &[]).unwrap_or_default();
    let chat = core.state.plan().config.serve.chat;
    let screen = say(if chat { "root-chat" } else { "root-dashboard" });
    let gap = if context.lang == Lang::Ja { "" } else { " " };
    let about = format!("{}{gap}{screen}", say("root-about"));
    let own: Vec<&str> = OWN.iter().copied().chain(chat.then_some(chat::ROOT)).collect();
    let facts = Disclosure::default();
    if !headers.text(ACCEPT).unwrap_or_default().contains("text/html") {
        let served: Vec<_> = SERVED
            .iter()
            .map(|(vendor, method, path)| json!({"api": vendor.name(), "method": method, "path": path}))
            .collect();
        let body = json!({
            "name": "koboshi",
            "about": about,
            "hint": say("root-hint"),
            "served": served,
            "own": own,
        });
        return ResponseFuture::at_once(
            reply::head(200, "application/json", context, &facts),
            body.to_string().into(),
        );
    }
    let mut heading = reply::head(200, "text/html; charset=utf-8", context, &facts);
    // The page loads and runs nothing.
    heading.add(CONTENT_SECURITY_POLICY, "default-src 'none'");
    heading.add(HeaderName::from_static("vary"), "accept, accept-language");
    ResponseFuture::at_once(heading, page(context.lang, &about, &own, &say))
}

/// The page. It repeats nothing of the request.
fn page(lang: Lang, about: &str, own: &[&str], say: &dyn Fn(&str) -> String) -> Bytes {
    let list = |items: Vec<String>| format!("<ul>{}</ul>", items.concat());
    let apis = Vendor::ALL.map(|vendor| {
        let paths = SERVED.iter().filter(|(served, ..)| *served == vendor);
        let paths = paths.map(|(_, method, path)| format!("<li><code>{method} {path}</code></li>"));
        format!("<h2>{} API</h2>{}", vendor.name(), list(paths.collect()))
    });
    let own = own.iter().map(|path| format!("<li><a href=\"{path}\">{path}</a></li>"));
    format!(
        "<!doctype html><html lang=\"{}\"><meta charset=\"utf-8\"><title>Koboshi</title><h1>Koboshi</h1><p>{}</p><p>{}</p>{}<h2>{}</h2>{}</html>\n",
        lang.name(),
        about,
        say("root-hint"),
        apis.concat(),
        say("root-own"),
        list(own.collect()),
    )
    .into()
}

//! `GET /`: what this is, for people who open the address of the gateway, and for programs that look.
//!
//! A browser gets a small page, everybody else the same as JSON. It shows nothing about keys, providers or requests, so it needs no key.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_SECURITY_POLICY, HeaderName};
use koboshi_report::phrase::Lang;
use koboshi_wire::http1::Fields;
use serde_json::json;

use crate::http::response_future::ResponseFuture;
use crate::reply;
use crate::reply::endpoints::{OWN, SERVED, Vendor};
use crate::shared::context::RequestContext;
use crate::shared::core_state::CoreState;
use crate::shared::disclosure::Disclosure;

/// Answers in the form that the client reads.
pub(crate) fn answer(core: &CoreState, context: &RequestContext, headers: &Fields) -> ResponseFuture {
    let say = |id: &str| core.state.phrases.text(context.lang, id, &[]).unwrap_or_default();
    let facts = Disclosure::default();
    if !headers.text(ACCEPT).unwrap_or_default().contains("text/html") {
        let served: Vec<_> = SERVED
            .iter()
            .map(|(vendor, method, path)| json!({"api": vendor.name(), "method": method, "path": path}))
            .collect();
        let body = json!({
            "name": "koboshi",
            "about": say("root-about"),
            "hint": say("root-hint"),
            "served": served,
            "own": OWN,
        });
        return ResponseFuture::at_once(
            reply::head(200, "application/json", context, &facts),
            body.to_string().into(),
        );
    }
    let mut heading = reply::head(200, "text/html; charset=utf-8", context, &facts);
    // There is nothing to load and nothing to run.
    heading.add(CONTENT_SECURITY_POLICY, "default-src 'none'");
    heading.add(HeaderName::from_static("vary"), "accept, accept-language");
    ResponseFuture::at_once(heading, page(context.lang, &say))
}

/// The page. Everything in it is ours: nothing of the request is repeated.
fn page(lang: Lang, say: &dyn Fn(&str) -> String) -> Bytes {
    let list = |items: Vec<String>| format!("<ul>{}</ul>", items.concat());
    let apis = Vendor::ALL.map(|vendor| {
        let paths = SERVED.iter().filter(|(served, ..)| *served == vendor);
        let paths = paths.map(|(_, method, path)| format!("<li><code>{method} {path}</code></li>"));
        format!("<h2>{} API</h2>{}", vendor.name(), list(paths.collect()))
    });
    let own = OWN.iter().map(|path| format!("<li><a href=\"{path}\">{path}</a></li>"));
    format!(
        "<!doctype html><html lang=\"{}\"><meta charset=\"utf-8\"><title>Koboshi</title><h1>Koboshi</h1><p>{}</p><p>{}</p>{}<h2>{}</h2>{}</html>\n",
        lang.name(),
        say("root-about"),
        say("root-hint"),
        apis.concat(),
        say("root-own"),
        list(own.collect()),
    )
    .into()
}

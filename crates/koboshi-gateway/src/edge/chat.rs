//! `/chat/`: a small chat on sessions, for people who want to see a provider fail and the answer continue.
//!
//! The files are those of `examples/chat`, built in. They hold nothing secret, so no key is asked for here; what the page then does is asked for by
//! `/v1/session` as of any other page. Off unless `serve.chat` says so.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};

use crate::http::response_future::ResponseFuture;
use crate::reply;
use crate::shared::context::RequestContext;
use crate::shared::disclosure::Disclosure;

/// Where the page is.
pub(crate) const ROOT: &str = "/chat/";

/// Scripts and styles of the page itself, a connection to where it came from, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A file of the page: its type and its text.
fn file(name: &str) -> Option<(&'static str, &'static str)> {
    Some(match name {
        "" => (HTML, include_str!("../../../../examples/chat/index.html")),
        "chat.css" => (CSS, include_str!("../../../../examples/chat/chat.css")),
        "chat.js" => (SCRIPT, include_str!("../../../../examples/chat/chat.js")),
        "koboshi.js" => (SCRIPT, include_str!("../../../../examples/chat/koboshi.js")),
        _ => return None,
    })
}

/// Whether a path is one of the page's.
pub(crate) fn has(path: &str) -> bool {
    path == "/chat" || path.strip_prefix(ROOT).is_some_and(|name| file(name).is_some())
}

/// Answers for a path that the page [has](has).
pub(crate) fn answer(context: &RequestContext, path: &str) -> ResponseFuture {
    let facts = Disclosure::default();
    let Some((kind, text)) = path.strip_prefix(ROOT).and_then(file) else {
        // The page names its files beside itself.
        let mut heading = reply::head(308, HTML, context, &facts);
        heading.add(LOCATION, ROOT);
        return ResponseFuture::at_once(heading, Bytes::new());
    };
    let mut heading = reply::head(200, kind, context, &facts);
    heading.add(CONTENT_SECURITY_POLICY, POLICY);
    heading.add(X_CONTENT_TYPE_OPTIONS, "nosniff");
    heading.add(REFERRER_POLICY, "no-referrer");
    heading.add(CACHE_CONTROL, "no-cache");
    ResponseFuture::at_once(heading, Bytes::from_static(text.as_bytes()))
}

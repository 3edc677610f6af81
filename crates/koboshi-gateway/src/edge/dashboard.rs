//! `/koboshi/`: the dashboard, a page for operators.
//!
//! The files are those of `web/dashboard/built`, built in. They hold nothing secret, so no key is asked for here; what the page asks for is
//! asked of the admin API, which wants the key or a session.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};

use crate::admin::paths;
use crate::http::response_future::ResponseFuture;
use crate::reply;
use crate::reply::endpoints::DASHBOARD as ROOT;
use crate::shared::context::RequestContext;
use crate::shared::disclosure::Disclosure;

/// Scripts and styles of the page itself, the API beside it, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

static OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// A file of the page: its type and its text.
fn file(name: &str) -> Option<(&'static str, &'static str)> {
    Some(match name {
        "" => ("text/html; charset=utf-8", include_str!("../../../../web/dashboard/built/index.html")),
        "dashboard.css" => {
            ("text/css; charset=utf-8", include_str!("../../../../web/dashboard/built/dashboard.css"))
        }
        "dashboard.js" => {
            ("text/javascript; charset=utf-8", include_str!("../../../../web/dashboard/built/dashboard.js"))
        }
        "icon.svg" => ("image/svg+xml", include_str!("../../../../web/dashboard/built/icon.svg")),
        _ => return None,
    })
}

/// Whether a path is one of the page's.
pub(crate) fn has(path: &str) -> bool {
    path == paths::ROOT || path.strip_prefix(ROOT).is_some_and(|name| file(name).is_some())
}

/// Answers for a path that the page [has](has).
pub(crate) fn answer(context: &RequestContext, path: &str) -> ResponseFuture {
    let facts = Disclosure::default();
    let Some((kind, text)) = path.strip_prefix(ROOT).and_then(file) else {
        // The page names its files beside itself.
        let mut heading = reply::head(308, "text/html; charset=utf-8", context, &facts);
        heading.add(LOCATION, ROOT);
        return ResponseFuture::at_once(heading, Bytes::new());
    };
    let mut heading = reply::head(200, kind, context, &facts);
    heading.add(CONTENT_SECURITY_POLICY, POLICY);
    heading.add(X_CONTENT_TYPE_OPTIONS, "nosniff");
    heading.add(X_FRAME_OPTIONS, "DENY");
    heading.add(REFERRER_POLICY, "no-referrer");
    heading.add(&OPENER_POLICY, "same-origin");
    heading.add(CACHE_CONTROL, "no-cache");
    ResponseFuture::at_once(heading, Bytes::from_static(text.as_bytes()))
}

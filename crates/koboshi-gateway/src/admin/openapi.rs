//! The OpenAPI document of the admin API.
//!
//! It is a file of this folder, so that the program carries no code that makes it. A test makes it from the code that serves the API, and
//! compares: `KOBOSHI_GOLDEN=write cargo test -p koboshi-gateway --lib openapi` writes it again.

use bytes::Bytes;

const DOCUMENT: &str = include_str!("openapi.json");

/// This description.
#[cfg_attr(test, utoipa::path(get, path = super::paths::OPENAPI, tag = "config",
    responses((status = 200, description = "This description", body = serde_json::Value))))]
pub(super) fn document() -> Bytes {
    Bytes::from_static(DOCUMENT.as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use utoipa::openapi::OpenApi as Document;
    use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
    use utoipa::{Modify, OpenApi};

    use super::*;
    use crate::admin;

    #[derive(OpenApi)]
    #[openapi(
        info(title = "Koboshi admin", description = "What operators ask and change. Without an admin key only callers on the loopback address are let in."),
        paths(
            admin::targets::list, admin::change::breakers, admin::change::cooldowns, admin::journal::read,
            admin::journal::prune, admin::status::read, admin::status::keys, admin::spend::read, admin::feed::watch, admin::agents::list,
            admin::agents::order, admin::agents::log, admin::config, admin::openapi::document,
            admin::access::visitor, admin::access::change, admin::overview::overview, admin::overview::sessions, admin::hosted::check,
            admin::hosted::reload, admin::hosted::process,
        ),
        components(schemas(admin::journal::EntryView, admin::status::RowView, admin::status::GatewayView, admin::status::SupervisorView, admin::status::ChannelView)),
        modifiers(&AdminKey),
        security(("admin_key" = [])),
    )]
    struct Api;

    /// The key, as a bearer token.
    struct AdminKey;

    impl Modify for AdminKey {
        fn modify(&self, document: &mut Document) {
            let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
            let components = document.components.get_or_insert_with(Default::default);
            components.add_security_scheme("admin_key", SecurityScheme::Http(scheme));
        }
    }

    #[test]
    fn the_document_is_what_the_code_says() {
        let made = serde_json::to_value(Api::openapi()).unwrap();
        if std::env::var("KOBOSHI_GOLDEN").is_ok_and(|mode| mode == "write") {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/admin/openapi.json");
            return std::fs::write(file, format!("{}\n", serde_json::to_string_pretty(&made).unwrap()))
                .unwrap();
        }
        assert_eq!(
            serde_json::from_str::<Value>(DOCUMENT).unwrap(),
            made,
            "run `KOBOSHI_GOLDEN=write cargo test -p koboshi-gateway --lib openapi`"
        );
    }
}

//! The OpenAPI document of the admin API, generated from the code that serves it.

use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

#[derive(OpenApi)]
#[openapi(
    info(title = "Koboshi admin", description = "What operators ask and change. Without an admin key only callers on the loopback address are let in."),
    paths(
        super::targets::list, super::change::breakers, super::change::cooldowns, super::journal::read,
        super::journal::prune, super::status::read, super::status::keys, super::spend::read, super::feed::watch, super::agents::list, super::agents::order,
        super::agents::log, super::config, document,
        super::access::visitor, super::access::change, super::overview::overview, super::overview::sessions, super::hosted::check,
        super::hosted::reload, super::hosted::process,
    ),
    components(schemas(super::journal::EntryView, super::status::RowView, super::status::GatewayView, super::status::SupervisorView, super::status::ChannelView)),
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

/// This description.
#[utoipa::path(get, path = super::paths::OPENAPI, tag = "config",
    responses((status = 200, description = "This description", body = serde_json::Value)))]
pub(super) fn document() -> Document {
    Api::openapi()
}

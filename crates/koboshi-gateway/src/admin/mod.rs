//! What operators ask and change, under `/koboshi/`.
//!
//! Without an admin key only callers on the loopback address of a gateway that listens there are let in.

use std::net::SocketAddr;

use http::{Method, Request, Response};
use hyper::body::Incoming;
use koboshi::fault::Kind;
use serde_json::{Value, json};

use crate::auth::{is_key, presented};
use crate::core::Core;
use crate::edge::{say, say_json};
use crate::flow::Flow;
use crate::learn::resting;
use crate::plan::Plan;
use crate::reply;
use crate::story::Story;
use crate::target::Target;

/// Serves a request of an operator.
pub(crate) async fn handle(
    core: &Core,
    plan: &Plan,
    story: &Story,
    peer: SocketAddr,
    request: Request<Incoming>,
) -> Response<Flow> {
    if !may(plan, peer, &request) {
        let said = "this needs the admin key: set admin.sha256 and send the key as a bearer token";
        return say(reply::refuse(&core.world, plan, story, Kind::Unauthorized, 401, Some(said), None)).await;
    }
    match (request.method(), request.uri().path().trim_end_matches('/')) {
        (&Method::GET, "/koboshi/targets") => {
            let targets: Vec<Value> =
                core.world.targets.all().iter().map(|target| show(core, target)).collect();
            say_json(story, 200, &json!({"targets": targets})).await
        }
        _ => {
            let said = "nothing is served at this path";
            say(reply::refuse(&core.world, plan, story, Kind::InvalidRequest, 404, Some(said), None)).await
        }
    }
}

fn may(plan: &Plan, peer: SocketAddr, request: &Request<Incoming>) -> bool {
    match &plan.config.admin.sha256 {
        Some(hash) => presented(request.headers()).is_some_and(|key| is_key(hash, key)),
        None => peer.ip().is_loopback() && plan.config.serve.listen.ip().is_loopback(),
    }
}

/// A target with its health, and why.
fn show(core: &Core, target: &Target) -> Value {
    let world = &core.world;
    let (now, wall) = (world.now(), world.wall());
    let breaker = target.breaker.snapshot(now, wall);
    let rest = resting(world, target, now, wall);
    json!({
        "target": &*target.name,
        "provider": &*target.provider.name,
        "model": &*target.model,
        "breaker": {
            "mode": breaker.mode.name(),
            "since": breaker.since.to_string(),
            "until": breaker.until.map(|until| until.to_string()),
        },
        "resting": rest.map(|rest| json!({
            "until": rest.until.map(|until| until.to_string()),
            "parked": rest.parked,
        })),
    })
}

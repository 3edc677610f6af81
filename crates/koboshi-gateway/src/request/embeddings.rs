//! `POST /v1/embeddings`: the same chain, budget and remedies; the answer passes as it came.

use std::sync::Arc;

use koboshi::fault::{Fault, Kind, Sub};
use koboshi::remedy::Remedy;
use koboshi_wire::Dialect;
use koboshi_wire::chat::embeddings;

use crate::attempt::Shape;
use crate::attempt::journey::{Ended, Journey};
use crate::http::flow::Tap;
use crate::http::upstream::interface::Interface;
use crate::reply;
use crate::reply::refusal::Refusal;
use crate::reply::simulated;
use crate::request::talk::{Intake, send_error};
use crate::shared::core::Core;
use crate::shared::disclosure::Disclosure;
use crate::stream::unary::read_whole;

/// Serves one request.
pub(crate) async fn serve(core: &Core, intake: &Intake, tap: &Tap) {
    let Intake { story, plan, body, own_key, .. } = intake;
    let world = &core.world;
    let model = match embeddings::model(body) {
        Ok(model) => model,
        Err(error) => {
            let told = Refusal::body(&error, body).told(world, plan, story);
            return send_error(core, tap, told).await;
        }
    };
    story.trace.asks_for(&model);
    let Some(chain) = core.chains.of(world, plan, &model) else {
        let told = Refusal::model(plan, &model).told(world, plan, story);
        return send_error(core, tap, told).await;
    };
    let mut targets = match own_key {
        Some(own_key) => chain.borrowed(world, plan, own_key),
        None => chain.targets(world),
    };
    targets.retain(|target| target.embeds());
    if targets.is_empty() {
        let mut fault = Box::new(Fault::of(Kind::InvalidRequest, "gateway.interface"));
        fault.sub = Some(Sub::Capability);
        let ended = Ended::unasked(fault);
        let told = reply::tell(world, plan, story, &targets, &ended, &Disclosure::default());
        return send_error(core, tap, told).await;
    }
    let breakers: Vec<_> = targets.iter().map(|target| Arc::clone(&target.breaker)).collect();
    let shape = Shape { interface: Interface::Embeddings, streams: false, most_output: 0 };
    let mut journey = Journey::new(core, plan, story, &targets, &breakers, false);
    let mut facts = Disclosure::default();
    let ended = loop {
        let opened =
            journey.open(&shape, &mut |target| Some(embeddings::with_model(body, &target.model))).await;
        facts.tried(&journey);
        let mut open = match opened {
            Ok(open) => open,
            Err(ended) => break ended,
        };
        facts.served_by(&open.target);
        let fault = match read_whole(&mut open).await {
            Ok(answer) if is_object(&answer) => {
                journey.succeeded(open, None);
                world.meters.whole.inc();
                tap.head(reply::head(200, "application/json", story, &facts));
                return tap.send(simulated::marked(Dialect::Chat, answer, &facts)).await;
            }
            Ok(answer) => {
                let text = String::from_utf8_lossy(&answer);
                let said = journey.classify(&open.head, 200, &text, false);
                said.unwrap_or_else(|| Box::new(Fault::of(Kind::ResponseInvalid, "gateway.no_answer")))
            }
            Err(fault) => fault,
        };
        match journey.after(open, fault.clone()) {
            Remedy::Again { .. } | Remedy::Wait { .. } | Remedy::Elsewhere => {}
            _ => break journey.give_up_unheard(fault),
        }
    };
    let told = reply::tell(world, plan, story, &targets, &ended, &facts);
    send_error(core, tap, told).await;
}

/// Whether it is one whole JSON object with data in it.
fn is_object(answer: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Embeddings<'a> {
        #[serde(borrow)]
        data: Option<&'a serde_json::value::RawValue>,
    }
    serde_json::from_slice::<Embeddings<'_>>(answer).is_ok_and(|answer| answer.data.is_some())
}

//! `POST /v1/embeddings`: the same chain, budget and remedies; the answer is forwarded unchanged.

use std::sync::Arc;

use koboshi::fault::{Fault, Kind, Sub};
use koboshi::remedy::Remedy;
use koboshi_wire::Dialect;
use koboshi_wire::chat::embeddings;

use crate::attempt::Shape;
use crate::attempt::journey::{Journey, JourneyEnd};
use crate::http::response_future::ResponseSender;
use crate::http::upstream::interface::Interface;
use crate::reply;
use crate::reply::refusal::Refusal;
use crate::reply::simulated;
use crate::request::generate::{Intake, send_error};
use crate::request::spend;
use crate::shared::core_state::CoreState;
use crate::shared::disclosure::Disclosure;
use crate::stream::unary::read_whole;

/// Serves one request.
pub(crate) async fn serve(core: &CoreState, intake: &Intake, sender: &ResponseSender) {
    let Intake { context, plan, body, client_key, .. } = intake;
    let state = &core.state;
    let model = match embeddings::model(body) {
        Ok(model) => model,
        Err(error) => {
            let error_reply = Refusal::body(&error, body).reply(state, plan, context);
            return send_error(core, sender, error_reply).await;
        }
    };
    context.trace.asks_for(&model);
    let Some(chain) = core.chains.of(state, plan, &model) else {
        let error_reply = Refusal::model(plan, &model).reply(state, plan, context);
        return send_error(core, sender, error_reply).await;
    };
    if let Err(refusal) = spend::admit(core, plan, context, &chain.route, &model) {
        return send_error(core, sender, refusal.reply(state, plan, context)).await;
    }
    let mut targets = match client_key {
        Some(client_key) => chain.borrowed(state, plan, client_key),
        None => chain.targets(state),
    };
    targets.retain(|target| target.embeds());
    if targets.is_empty() {
        let mut fault = Box::new(Fault::of(Kind::InvalidRequest, "gateway.interface"));
        (fault.sub, fault.advice.other) = (Some(Sub::Capability), true);
        let ended = JourneyEnd::unasked(fault);
        let error_reply =
            reply::failure_reply(state, plan, context, &targets, &ended, &Disclosure::default());
        return send_error(core, sender, error_reply).await;
    }
    let breakers: Vec<_> = targets.iter().map(|target| Arc::clone(&target.breaker)).collect();
    let shape = Shape { interface: Interface::Embeddings, streams: false, max_output: 0 };
    let mut journey = Journey::new(core, plan, context, &targets, &breakers, false);
    let mut facts = Disclosure::default();
    let ended = loop {
        let opened =
            journey.open(&shape, &mut |target| Some(embeddings::with_model(body, &target.model))).await;
        facts.note_last_fault(&journey);
        let mut open = match opened {
            Ok(open) => open,
            Err(ended) => break ended,
        };
        facts.served_by(&open.target);
        let fault = match read_whole(core, plan, &mut open).await {
            Ok(answer) if is_object(&answer) => {
                if let Some(usage) = embeddings::usage(&answer) {
                    open.attempt_guard.set_usage(usage, true);
                }
                let _memory = open.memory.take();
                journey.succeeded(open, None);
                state.meters.whole.inc();
                sender.head(reply::head(200, "application/json", context, &facts));
                return sender.send(simulated::marked(Dialect::Chat, answer, &facts)).await;
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
            _ => break journey.give_up_before_content(fault),
        }
    };
    let error_reply = reply::failure_reply(state, plan, context, &targets, &ended, &facts);
    send_error(core, sender, error_reply).await;
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

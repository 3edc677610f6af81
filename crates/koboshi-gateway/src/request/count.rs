//! Serves token counts, for clients that ask before they send: Anthropic's, Gemini's and those of OpenAI's responses.
//!
//! A provider with a token count is asked once. Where none has one, or it does not answer, the client gets our own estimate, the same that
//! routing uses: a count is a help, and must not fail a client. So a failed count does not affect the health of a target.

use std::sync::Arc;

use bytes::Bytes;
use koboshi_wire::any::{Edits, Request};
use koboshi_wire::{Dialect, IntakeError, gemini, messages, responses};
use serde_json::Value;

use crate::attempt::Shape;
use crate::attempt::journey::Journey;
use crate::http::response_future::ResponseSender;
use crate::http::upstream::interface::Interface;
use crate::reply;
use crate::reply::refusal::Refusal;
use crate::reply::simulated;
use crate::request::generate::{Intake, send_error};
use crate::request::spend;
use crate::route::shown::MAX_MODEL;
use crate::route::target::Target;
use crate::shared::core_state::CoreState;
use crate::shared::disclosure::Disclosure;
use crate::stream::unary::read_whole;

/// Serves one request.
pub(crate) async fn serve(core: &CoreState, intake: &Intake, sender: &ResponseSender) {
    let model = intake.path_model.as_ref().map_or_else(String::new, |(model, _)| model.clone());
    let estimated = match estimate(intake.context.dialect, &model, &intake.body) {
        Ok(estimated) => estimated,
        Err(error) => {
            let error_reply =
                Refusal::body(&error, &intake.body).reply(&core.state, &intake.plan, &intake.context);
            return send_error(core, sender, error_reply).await;
        }
    };
    let mut facts = Disclosure::default();
    let counted = match Box::pin(asked(core, intake, &model, &mut facts)).await {
        Ok(counted) => counted.unwrap_or(estimated),
        Err(refusal) => {
            let error_reply = refusal.reply(&core.state, &intake.plan, &intake.context);
            return send_error(core, sender, error_reply).await;
        }
    };
    sender.head(reply::head(200, "application/json", &intake.context, &facts));
    sender.send(simulated::marked(intake.context.dialect, counted, &facts)).await;
}

/// The estimate, in the format of the dialect.
fn estimate(dialect: Dialect, model: &str, body: &[u8]) -> Result<Bytes, IntakeError> {
    let tokens = || Request::parse(dialect, body, None).map(|request| request.needs().input_tokens);
    Ok(match dialect {
        Dialect::Responses => responses::count::answer(tokens()?),
        // Chat has no such endpoint.
        Dialect::Messages | Dialect::Chat => messages::count::answer(tokens()?).into(),
        Dialect::Gemini => {
            let request = gemini::count::parse(model, body)?;
            gemini::count::answer(request.form().needs().input_tokens)
        }
    })
}

/// The count of the first target in the chain, if it speaks the client's dialect and answers. Without any provider there is an error, and
/// no estimate.
async fn asked(
    core: &CoreState,
    intake: &Intake,
    model: &str,
    facts: &mut Disclosure,
) -> Result<Option<Bytes>, Refusal> {
    let Intake { context, plan, body, client_key, .. } = intake;
    let dialect = context.dialect;
    let request = (!dialect.has_model_in_path()).then(|| Request::parse(dialect, body, None).ok()).flatten();
    let wanted = request.as_ref().map_or(model, |request| request.model());
    let chain = match core.chains.of(&core.state, plan, wanted) {
        Some(chain) => chain,
        None if plan.lacks_provider() || wanted.len() > MAX_MODEL => {
            return Err(Refusal::model(plan, wanted));
        }
        None => return Ok(None),
    };
    spend::admit(core, plan, context, &chain.route, wanted)?;
    let mut targets = match client_key {
        Some(client_key) => chain.borrowed(&core.state, plan, client_key),
        None => chain.targets(&core.state),
    };
    targets.truncate(1);
    let native = |target: &Arc<Target>| target.dialect_for(dialect) == dialect;
    if !targets.iter().all(native) {
        return Ok(None);
    }
    let breakers: Vec<_> = targets.iter().map(|target| Arc::clone(&target.breaker)).collect();
    let shape = Shape { interface: Interface::Count(dialect), streams: false, max_output: 0 };
    let mut journey = Journey::new(core, plan, context, &targets, &breakers, false).without_health();
    let mut once = true;
    let mut make = |target: &Target| {
        if !std::mem::replace(&mut once, false) {
            return None;
        }
        let Some(request) = &request else { return Some(body.clone()) };
        let edits = Edits::plain(&target.model);
        Some(request.write(body, target.traits_for(dialect), &edits).body)
    };
    let Ok(mut open) = journey.open(&shape, &mut make).await else { return Ok(None) };
    let Ok(answer) = read_whole(core, plan, &mut open).await else { return Ok(None) };
    let says = |field: &str| {
        serde_json::from_slice::<Value>(&answer).is_ok_and(|answer| answer.get(field).is_some())
    };
    let is_count = match dialect {
        Dialect::Gemini => says("totalTokens"),
        Dialect::Responses | Dialect::Messages | Dialect::Chat => says("input_tokens"),
    };
    if !is_count {
        return Ok(None);
    }
    facts.served_by(&open.target);
    journey.succeeded(open, None);
    Ok(Some(answer))
}

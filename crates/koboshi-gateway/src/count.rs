//! How many tokens a request has, for clients that ask before they send: Anthropic's and Gemini's.
//!
//! An estimate of our own, the same that routing uses, so that it needs nobody and costs nothing.

use std::rc::Rc;

use bytes::Bytes;
use koboshi::fault::Kind;
use koboshi_wire::any::Request;
use koboshi_wire::{Dialect, IntakeError, gemini, messages};

use crate::core::Core;
use crate::flow::Tap;
use crate::reply::{self, Disclosure};
use crate::talk::{Intake, send_error};

/// Serves one request.
pub(crate) async fn serve(core: Rc<Core>, intake: Intake, tap: Tap) {
    let Intake { story, plan, body, named, .. } = intake;
    let model = named.as_ref().map_or("", |(model, _)| model);
    match counted(story.dialect, model, &body) {
        Ok(answer) => {
            tap.head(reply::head(200, "application/json", &story, &Disclosure::default()));
            tap.send(answer).await;
        }
        Err(error) => {
            let (said, param) = (error.to_string(), error.param());
            let told = reply::refuse(
                &core.world,
                &plan,
                &story,
                Kind::InvalidRequest,
                400,
                Some(&said),
                param.as_deref(),
            );
            send_error(&core, &tap, told).await;
        }
    }
}

fn counted(dialect: Dialect, model: &str, body: &[u8]) -> Result<Bytes, IntakeError> {
    if dialect == Dialect::Gemini {
        let request = gemini::count::parse(model, body)?;
        return Ok(gemini::count::answer(request.form().needs().input_tokens));
    }
    let request = Request::parse(dialect, body, None)?;
    Ok(messages::models::counted(request.needs().input_tokens).into())
}

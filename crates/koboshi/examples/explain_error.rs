//! What went wrong, from what a provider answered: the kind of the fault, what it permits and how long to wait.
//!
//! Run with `cargo run -p koboshi --example explain_error`.

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use koboshi::classify::{Answer, Classifier, Rules};
use koboshi::jiff::Timestamp;
use koboshi::jiff::tz::{TimeZone, TimeZoneDatabase};

const BODY: &str = r#"{"error":{"message":"You exceeded your current quota. Try again in 6h12m.","type":"insufficient_quota"}}"#;

/// Runs the example.
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let classifier = Classifier::new(Rules::builtin()?, TimeZoneDatabase::none());
    let now = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
    let headers = [("content-type", "application/json")];
    let answer = Answer { status: Some(429), headers: &headers, body: BODY, ..Answer::default() };
    let fault = classifier.answer(&answer, &now).ok_or("nothing is wrong")?;
    println!("{} of the {}", fault.kind.name(), fault.scope.name());
    println!("the same target again: {}, another one: {}", fault.advice.same, fault.advice.other);
    println!("wait: {:?}, decided by rule {}", fault.wait.map(|wait| wait.after), fault.evidence.rule);
    Ok(())
}

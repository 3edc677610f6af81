//! A protected call: the first target is down, the second one answers, and after a few failures the first is not asked any more.
//!
//! Run with `cargo run -p koboshi --features clock --example protected_call`.

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::io;

use koboshi::call::Calls;

/// A client for two providers, of which the first refuses every connection.
async fn ask(target: usize, question: &str) -> io::Result<String> {
    match target {
        0 => Err(io::ErrorKind::ConnectionRefused.into()),
        _ => Ok(format!("You asked: {question}")),
    }
}

/// Runs the example.
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(async {
        let calls = Calls::new(2);
        for question in ["one", "two", "three"] {
            let mut asked = Vec::new();
            let answer = calls
                .run(tokio::time::sleep, async |target| {
                    asked.push(target);
                    ask(target, question).await
                })
                .await?;
            println!("{answer} (asked the targets {asked:?})");
        }
        let breaker = calls.breaker(0).ok_or("there are two")?;
        let refused = breaker.admit(koboshi::time::Moment::now()).err();
        println!("The breaker of the first target: {refused:?}");
        Ok(())
    })
}

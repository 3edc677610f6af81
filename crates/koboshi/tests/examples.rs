//! The examples run.

#![allow(dead_code, reason = "an example has a name for its own main")]

#[path = "../examples/agent_loop.rs"]
mod agent_loop;
#[path = "../examples/explain_error.rs"]
mod explain_error;
#[path = "../examples/protected_call.rs"]
mod protected_call;

#[test]
fn every_example_runs() {
    agent_loop::main().unwrap();
    explain_error::main().unwrap();
    protected_call::main().unwrap();
}

//! x
mod clock;
mod corpus;
use koboshi::classify::*;
fn main() {
    let rules = match Rules::builtin() { Ok(r) => r, Err(e) => { println!("{e}"); return; } };
    let c = Classifier::new(rules, clock::zones());
    corpus::quick(&c, &std::env::args().skip(1).collect::<Vec<_>>());
}

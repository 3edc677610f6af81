//! The simulated provider on a real socket, in every dialect, for programs that are no tests: prints its address, serves until its input ends, and
//! then prints what it was asked.
//!
//! `cargo run -p koboshi-testkit --example upstream`

use std::io::{self, Read, Write};

use koboshi_testkit::Upstream;

fn main() -> io::Result<()> {
    let upstream = Upstream::start();
    let mut out = io::stdout();
    writeln!(out, "{}", upstream.origin())?;
    out.flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    for seen in upstream.requests() {
        let query = if seen.query.is_empty() { "" } else { "?" };
        writeln!(out, "{} {}{query}{} {}", seen.dialect.name(), seen.path, seen.query, seen.model)?;
    }
    Ok(())
}

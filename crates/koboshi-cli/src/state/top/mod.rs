//! `koboshi top`: what `koboshi status` and `koboshi journal` say, on one screen of a terminal and live.
//!
//! `read` asks the source, `board` decides what is on the screen (rows, their order, widths, keys) and touches nothing, `draw` paints it, and
//! `live` is the loop of a terminal. A screen needs no more than 80 columns and 24 lines. What cannot be drawn can be printed: as JSON, once.

mod board;
mod draw;
mod live;
mod read;
mod rows;
mod widths;

use std::io::{self, IsTerminal, Write};

use super::CommandContext;
use super::args::TopArgs;
use crate::args::Format;
use crate::{Exit, Failure};

use read::Reader;

pub(crate) fn run(args: &TopArgs) -> Result<Exit, Failure> {
    let CommandContext { source, say } = CommandContext::open(&args.place)?;
    let reader = Reader::new(source, &args.place);
    if args.format == Some(Format::Json) {
        let snapshot = reader.read(say.now.timestamp())?;
        let mut out = anstream::stdout().lock();
        serde_json::to_writer_pretty(&mut out, &snapshot).map_err(io::Error::from)?;
        writeln!(out)?;
        return Ok(Exit::Good);
    }
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(Failure::new(say.text("top-no-terminal", &[])));
    }
    live::run(reader, say)?;
    Ok(Exit::Good)
}

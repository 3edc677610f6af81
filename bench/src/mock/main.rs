//! A provider that costs almost nothing: it speaks the four dialects and falls as the name of the model says.
//!
//! `mock 127.0.0.1:9001`
//!
//! One thread, its own HTTP/1.1 and answers that are ready, so that it is not what limits a measure. The names of models are in
//! `plan.rs`; `GET /stats` counts calls per model, `POST /outage` lets one fall and stand up again while others ask for it. It is
//! a bench's provider: it believes its clients, and has no limits.

mod dialect;
mod model;
mod plan;
mod request;
mod serve;

use std::net::SocketAddr;
use std::rc::Rc;

use clap::Parser;
use tokio::net::TcpSocket;

use crate::model::Models;

#[derive(Parser)]
struct Args {
    /// Address and port.
    listen: SocketAddr,
}

fn main() -> std::io::Result<()> {
    let Args { listen } = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async move {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(listen)?;
        let listener = socket.listen(4096)?;
        let models = Rc::new(Models::default());
        loop {
            // Out of descriptors, or gone before we looked: the next one may do better.
            if let Ok((socket, _)) = listener.accept().await {
                tokio::task::spawn_local(serve::converse(socket, Rc::clone(&models)));
            }
        }
    })
}

//! A client's connection as a stream of bytes, for the WebSocket library.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::http::client::Connection;

/// What is read at once: a connection that waits holds this much.
const READ_BUFFER: usize = 2 * 1024;
/// A frame above this ends the connection.
const MAX_FRAME: usize = 4 * 1024 * 1024;
/// What may wait to be written.
const MAX_WRITE: usize = 2 * 1024 * 1024;

/// The bytes of a connection.
pub(crate) struct Socket(Connection);

/// The frames of a connection.
pub(crate) type WebSocket = WebSocketStream<Socket>;

/// Speaks WebSocket on a connection whose handshake is done.
pub(crate) async fn open(connection: Connection) -> WebSocket {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_write_buffer_size(MAX_WRITE)
        .max_message_size(Some(MAX_FRAME))
        .max_frame_size(Some(MAX_FRAME));
    WebSocketStream::from_raw_socket(Socket(connection), Role::Server, Some(config)).await
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // What came along with the handshake.
        let mut early = self.0.take_all();
        if !early.is_empty() {
            let taken = early.split_to(early.len().min(buffer.remaining()));
            buffer.put_slice(&taken);
            self.0.put_back(early);
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut *self.0.stream()).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.poll_write(context, &[IoSlice::new(bytes)])
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.stream()).poll_shutdown(context)
    }
}

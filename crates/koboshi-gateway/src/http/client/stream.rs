//! The bytes of a client's connection: plain, under TLS, or one stream of a connection with HTTP/2.
//!
//! A stream of HTTP/2 comes through a pipe in this process as HTTP/1.1, so that there is one way from a request to
//! its answer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// The bytes of a client.
pub(crate) enum ClientStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Pipe(DuplexStream),
}

impl ClientStream {
    /// Whether what was written may not have left yet.
    pub(super) fn holds_back(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Writes what can be written at once.
    pub(super) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Self::Plain(stream) = self {
            return stream.try_write(bytes);
        }
        match Pin::new(self).poll_write(&mut Context::from_waker(Waker::noop()), bytes) {
            Poll::Ready(written) => written,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Whether the client reset the connection.
    pub(super) fn is_broken(&self) -> bool {
        match self {
            Self::Plain(stream) => !matches!(stream.take_error(), Ok(None)),
            Self::Tls(stream) => !matches!(stream.get_ref().0.take_error(), Ok(None)),
            Self::Pipe(_) => false,
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Pipe(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => {
                // TLS takes more than the client accepts; so it gets more only when the last of it has left.
                ready!(Pin::new(&mut *stream).poll_flush(context))?;
                Pin::new(stream).poll_write(context, bytes)
            }
            Self::Pipe(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
            Self::Tls(stream) => {
                ready!(Pin::new(&mut *stream).poll_flush(context))?;
                Pin::new(stream).poll_write_vectored(context, pieces)
            }
            Self::Pipe(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
            Self::Pipe(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Pipe(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

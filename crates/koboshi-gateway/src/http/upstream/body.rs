//! The body of an upstream's answer, from a socket or from the built-in provider, in blocks of bytes.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use hyper::body::Incoming;
use koboshi::fault::Fault;
use koboshi_sim::{Beats, End};
use tokio::time::{Sleep, sleep};

use super::connection_fault::{Stage, cut, fault_of};
use super::http2_connection::Http2Stream;
use super::pool::PooledConnection;
use crate::http::upstream::mark::StreamMark;

/// The body of an answer.
pub(crate) enum Body {
    /// On a connection of its own; none after it was read to its end.
    Http1(Option<Box<PooledConnection>>),
    /// On a shared connection.
    Http2 {
        incoming: Incoming,
        /// Counts down when it is dropped.
        _stream: Http2Stream,
        /// The result that followed the joined blocks.
        ahead: Option<Box<NextBlock>>,
    },
    Sim(Box<SimBody>),
}

/// A block; none when the answer has ended as HTTP wants it.
type NextBlock = Option<Result<Bytes, Box<Fault>>>;

/// How many bytes are joined.
const MAX_JOINED: usize = 16 * 1024;

/// The rest of the built-in provider's answer.
pub(crate) struct SimBody {
    beats: Beats,
    end: End,
    /// Marks the frames of a stream as made up.
    mark: Option<StreamMark>,
    next: Option<Bytes>,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Body {
    pub(super) fn of_http1(pooled: Box<PooledConnection>) -> Self {
        Self::Http1(Some(pooled))
    }

    pub(super) fn of_http2(incoming: Incoming, stream: Http2Stream) -> Self {
        Self::Http2 { incoming, _stream: stream, ahead: None }
    }

    /// The answer of the built-in provider.
    pub(crate) fn played(beats: Beats, end: End, mark: Option<StreamMark>) -> Self {
        Self::Sim(Box::new(SimBody { beats, end, mark, next: None, pause: None }))
    }

    /// The next block.
    pub(crate) async fn next(&mut self) -> NextBlock {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// The next block joined with those that have already come: forwarding one block costs less than forwarding many.
    pub(crate) async fn next_joined(&mut self) -> NextBlock {
        poll_fn(|context| self.poll_joined(context)).await
    }

    fn poll_joined(&mut self, context: &mut Context<'_>) -> Poll<NextBlock> {
        let first = match ready!(self.poll_next(context)) {
            // An HTTP/1.1 connection already returns all that has come.
            Some(Ok(first)) if !matches!(self, Self::Http1(_)) => first,
            other => return Poll::Ready(other),
        };
        let mut joined = BytesMut::new();
        while joined.len() < MAX_JOINED
            && let Poll::Ready(next) = self.poll_next(context)
        {
            match (next, &mut *self) {
                (Some(Ok(block)), _) => {
                    if joined.is_empty() {
                        joined.extend_from_slice(&first);
                    }
                    joined.extend_from_slice(&block);
                }
                (next, Self::Http2 { ahead, .. }) => {
                    *ahead = Some(Box::new(next));
                    break;
                }
                (_, Self::Sim(_) | Self::Http1(_)) => break,
            }
        }
        Poll::Ready(Some(Ok(if joined.is_empty() { first } else { joined.freeze() })))
    }

    /// What [`Body::next`] returns, if it is available now, so that no timer is needed.
    pub(crate) async fn next_if_ready(&mut self) -> Option<NextBlock> {
        poll_fn(|context| match self.poll_next(context) {
            Poll::Ready(block) => Poll::Ready(Some(block)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<NextBlock> {
        match self {
            Self::Http1(pooled) => {
                let Some(known) = pooled else { return Poll::Ready(None) };
                Poll::Ready(match ready!(known.connection.poll_block(context)) {
                    Some(Ok(block)) => Some(Ok(block)),
                    Some(Err(error)) => Some(Err(fault_of(&error, Stage::Answer))),
                    None => {
                        if let Some(pooled) = pooled.take() {
                            pooled.return_to_pool();
                        }
                        None
                    }
                })
            }
            Self::Http2 { ahead, .. } if ahead.is_some() => Poll::Ready(ahead.take().and_then(|next| *next)),
            Self::Http2 { incoming, .. } => loop {
                return Poll::Ready(match ready!(Pin::new(&mut *incoming).poll_frame(context)) {
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(block) if block.is_empty() => continue,
                        Ok(block) => Some(Ok(block)),
                        // Trailers are ignored.
                        Err(_) => continue,
                    },
                    Some(Err(error)) => Some(Err(fault_of(&error, Stage::Answer))),
                    None => None,
                });
            },
            Self::Sim(sim) => sim.poll_next(context),
        }
    }
}

impl SimBody {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Box<Fault>>>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            if let Some(block) = self.next.take() {
                return Poll::Ready(Some(Ok(block)));
            }
            match self.beats.next() {
                Some(beat) => {
                    self.next = Some(match &mut self.mark {
                        Some(mark) => mark.add(beat.bytes),
                        None => beat.bytes,
                    });
                    self.pause = (!beat.after.is_zero()).then(|| Box::pin(sleep(beat.after)));
                }
                None => {
                    return match self.end {
                        End::Clean => Poll::Ready(None),
                        End::Cut => Poll::Ready(Some(Err(cut("the simulated provider cut the answer")))),
                        _ => Poll::Pending,
                    };
                }
            }
        }
    }
}

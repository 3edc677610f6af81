//! The body of an upstream's answer, from a socket or from the built-in provider, in blocks of bytes.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Body as _;
use hyper::body::Incoming;
use koboshi::fault::Fault;
use koboshi_sim::{Beats, End};
use tokio::time::{Sleep, sleep};

use super::pool::Home;
use super::trouble::{Stage, cut, fault_of};

/// The body of an answer.
pub(crate) enum Body {
    Socket { incoming: Incoming, home: Option<Home> },
    Sim(Box<Playing>),
}

/// What the built-in provider still has to say.
pub(crate) struct Playing {
    beats: Beats,
    end: End,
    next: Option<Bytes>,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Body {
    pub(super) fn of(incoming: Incoming, home: Home) -> Self {
        Self::Socket { incoming, home: Some(home) }
    }

    pub(super) fn played(beats: Beats, end: End) -> Self {
        Self::Sim(Box::new(Playing { beats, end, next: None, pause: None }))
    }

    /// The next block; none when the answer has ended as HTTP wants it.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, Box<Fault>>> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// What [`Body::next`] gives, if that is there already: nobody needs to watch the clock then.
    pub(crate) async fn at_hand(&mut self) -> Option<Option<Result<Bytes, Box<Fault>>>> {
        poll_fn(|context| match self.poll_next(context) {
            Poll::Ready(block) => Poll::Ready(Some(block)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Box<Fault>>>> {
        match self {
            Self::Socket { incoming, home } => loop {
                return Poll::Ready(match ready!(Pin::new(&mut *incoming).poll_frame(context)) {
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(block) if block.is_empty() => continue,
                        Ok(block) => Some(Ok(block)),
                        // Trailers say nothing to us.
                        Err(_) => continue,
                    },
                    Some(Err(error)) => Some(Err(fault_of(&error, Stage::Answer))),
                    None => {
                        if let Some(home) = home.take() {
                            home.give_back();
                        }
                        None
                    }
                });
            },
            Self::Sim(playing) => playing.poll_next(context),
        }
    }
}

impl Playing {
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
                    self.next = Some(beat.bytes);
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

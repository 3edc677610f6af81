//! Head and body of a small message leave in one piece: copying a few hundred bytes costs less than handing the kernel a list of buffers.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;
use tokio::net::TcpStream;

/// More than this is not copied.
const SMALL: usize = 2048;

/// Writes these pieces, or the first of them.
pub(crate) fn poll_write_pieces(
    stream: &mut TcpStream,
    context: &mut Context<'_>,
    pieces: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    let mut room = [0; SMALL];
    match gathered(pieces, &mut room) {
        Some(all) => Pin::new(stream).poll_write(context, all),
        None => Pin::new(stream).poll_write_vectored(context, pieces),
    }
}

/// All pieces in one, if they fit.
fn gathered<'r>(pieces: &[IoSlice<'_>], room: &'r mut [u8; SMALL]) -> Option<&'r [u8]> {
    let mut end = 0_usize;
    for piece in pieces {
        room.get_mut(end..end.checked_add(piece.len())?)?.copy_from_slice(piece);
        end += piece.len();
    }
    room.get(..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_fit_are_one_and_others_stay_as_they_are() {
        let mut room = [0; SMALL];
        let pieces = [IoSlice::new(b"head"), IoSlice::new(b""), IoSlice::new(b"body")];
        assert_eq!(gathered(&pieces, &mut room), Some(&b"headbody"[..]));
        let long = [7; SMALL];
        assert_eq!(gathered(&[IoSlice::new(&long)], &mut room).map(<[u8]>::len), Some(SMALL));
        assert_eq!(gathered(&[IoSlice::new(&long), IoSlice::new(b"x")], &mut room), None);
    }
}

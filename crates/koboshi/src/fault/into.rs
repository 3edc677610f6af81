//! What an error of a program is, as a fault.

use std::io;

use super::{Fault, Kind, Sub};

/// An error that says which fault it is. Implement it for the error type of your client; [`Fault`] and [`io::Error`] have it.
///
/// ```
/// use koboshi::fault::{Fault, IntoFault, Kind};
///
/// enum Trouble {
///     Busy,
///     Timeout,
/// }
///
/// impl IntoFault for Trouble {
///     fn into_fault(self) -> Box<Fault> {
///         let kind = match self {
///             Self::Busy => Kind::RateLimited,
///             Self::Timeout => Kind::Timeout,
///         };
///         Box::new(Fault::of(kind, "my_client"))
///     }
/// }
/// ```
pub trait IntoFault {
    /// The fault that it is.
    fn into_fault(self) -> Box<Fault>;
}

impl IntoFault for Fault {
    fn into_fault(self) -> Box<Fault> {
        Box::new(self)
    }
}

impl IntoFault for Box<Fault> {
    fn into_fault(self) -> Box<Fault> {
        self
    }
}

impl IntoFault for io::Error {
    /// By the kind of the error; one that says nothing of a connection is a fault of this program.
    fn into_fault(self) -> Box<Fault> {
        use io::ErrorKind as Io;
        let (kind, sub) = match self.kind() {
            Io::TimedOut => (Kind::Timeout, None),
            Io::ConnectionRefused => (Kind::ConnectionRefused, None),
            Io::ConnectionReset | Io::ConnectionAborted => (Kind::ConnectionFailed, Some(Sub::Reset)),
            Io::HostUnreachable | Io::NetworkUnreachable | Io::NetworkDown => {
                (Kind::ConnectionFailed, Some(Sub::Unreachable))
            }
            Io::NotConnected | Io::AddrNotAvailable => (Kind::ConnectionFailed, None),
            Io::UnexpectedEof | Io::BrokenPipe => (Kind::ConnectionClosed, None),
            _ => (Kind::Internal, None),
        };
        let mut fault = Box::new(Fault::of(kind, "io"));
        fault.sub = sub;
        fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_connections_may_be_tried_again_and_others_not() {
        let kind = |kind: io::ErrorKind| io::Error::from(kind).into_fault().kind;
        assert_eq!(kind(io::ErrorKind::TimedOut), Kind::Timeout);
        assert_eq!(kind(io::ErrorKind::ConnectionReset), Kind::ConnectionFailed);
        assert_eq!(kind(io::ErrorKind::UnexpectedEof), Kind::ConnectionClosed);
        assert_eq!(kind(io::ErrorKind::PermissionDenied), Kind::Internal);
    }
}

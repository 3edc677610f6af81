//! The finer reason inside a kind, where it changes what a person should do.
//!
//! A sub is never needed to decide *whether* something is retried (that is the advice on the fault); it
//! picks the right sentence: a name that does not resolve and a certificate that is not trusted are both
//! `connection_failed`, but "try again later" is right for neither.

macro_rules! subs {
    ($($variant:ident = $name:literal, $meaning:literal;)+) => {
        /// The finer reason of a fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Sub {
            $(#[doc = $meaning] $variant,)+
        }

        impl Sub {
            /// Every sub.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Stable name of the sub.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// What the sub means, in a few words.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)+ }
            }
        }
    };
}

subs! {
    Dns = "dns", "the name could not be resolved";
    Unreachable = "unreachable", "no route to the host or network";
    Reset = "reset", "the connection was reset";
    Handshake = "handshake", "the TLS handshake broke off";
    Certificate = "certificate", "the certificate is not trusted or not valid";
    Proxy = "proxy", "a proxy on the way refused or failed";
    Connect = "connect", "the connect timeout passed";
    FirstContent = "first_content", "nothing came within the first-content timeout";
    Idle = "idle", "the stream sent nothing for longer than the idle timeout";
    Total = "total", "the timeout of the whole request passed";
    Unary = "unary", "no answer began within the timeout for answers without streaming";
    Upstream = "upstream", "a CDN or gateway waited too long for the provider's server";
    TimeLimit = "time_limit", "ended by a time limit, such as that of timeout(1)";
    Deadline = "deadline", "the deadline that the client set for this request passed";
    Stopping = "stopping", "the gateway is being stopped";
    Token = "token", "the gateway could not get an access token";
    Loading = "loading", "the model is still loading";
    Locked = "locked", "another request holds the conversation";
    Concurrency = "concurrency", "too many requests at the same time";
    Window = "window", "the quota of a window of hours or a week";
    Day = "day", "the quota of a day";
    Month = "month", "the quota of a month";
    Plan = "plan", "the plan does not include it";
    Billing = "billing", "only payment helps: credit, balance, spending limit";
    Region = "region", "refused for this country or region";
    Blocked = "blocked", "a firewall or CDN in front of the provider blocked it";
    Model = "model", "refused for this model or resource only";
    Capability = "capability", "this model lacks what the request needs";
    Path = "path", "the path or base URL is wrong";
    OutputLimit = "output_limit", "the output limit was reached";
    Empty = "empty", "no content";
    ToolCall = "tool_call", "the tool call in the answer is broken";
    NotApi = "not_api", "a web page or redirect instead of the API";
    Differs = "differs", "another answer than the one that was to be continued";
    Memory = "memory", "out of memory";
    Signal = "signal", "ended by a signal from outside";
    Crash = "crash", "crashed by itself: SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE";
    Command = "command", "the command is not installed or not in PATH";
    Turns = "turns", "the turn limit of the agent";
    Resources = "resources", "the gateway's own machine is out of file descriptors, ports or memory";
    Operator = "operator", "an operator decided it";
}

impl Sub {
    /// The sub with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|sub| sub.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_sub() {
        for sub in Sub::ALL {
            assert_eq!(Sub::from_name(sub.name()), Some(*sub));
        }
    }
}

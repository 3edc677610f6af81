//! What an operator's next command needs to reach this gateway, and the name of its config.
//!
//! A command that a text advises must work as it is printed. `koboshi resume` reads the store of this user, so a gateway with another
//! store names it. Only programs on the gateway's own machine get paths.

use std::net::SocketAddr;

/// How a command of the operator finds what this gateway has learned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Reach {
    /// Without any flag: it is the store of this user.
    #[default]
    Usual,
    /// With these flags, quoted for a shell and with a space before each.
    Flags(String),
    /// By asking the gateway itself: no other process has its store, or its address has a password.
    Url,
}

/// What the operator started the gateway with.
#[derive(Debug, Clone, Default)]
pub struct Operator {
    /// How a command finds the same store.
    pub reach: Reach,
    /// The config as the operator named it; none where it has the usual name.
    pub config: Option<String>,
}

impl Operator {
    /// The flags of a command for this gateway.
    pub(crate) fn flags(&self, scheme: &str, address: SocketAddr) -> String {
        match &self.reach {
            Reach::Usual => String::new(),
            Reach::Flags(flags) => flags.clone(),
            Reach::Url => {
                let mut address = address;
                if address.ip().is_unspecified() {
                    let is_v4 = address.is_ipv4();
                    address.set_ip(if is_v4 {
                        [127, 0, 0, 1].into()
                    } else {
                        std::net::Ipv6Addr::LOCALHOST.into()
                    });
                }
                format!(" --url {scheme}://{address}")
            }
        }
    }

    /// The name of the config, for who runs the gateway.
    pub(crate) fn config(&self) -> &str {
        self.config.as_deref().unwrap_or("koboshi.yaml")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_only_the_gateway_has_is_reached_through_it() {
        let operator = Operator { reach: Reach::Url, config: None };
        for (address, flags) in [
            ("127.0.0.1:4141", " --url http://127.0.0.1:4141"),
            ("0.0.0.0:80", " --url http://127.0.0.1:80"),
            ("[::]:80", " --url http://[::1]:80"),
        ] {
            assert_eq!(operator.flags("http", address.parse().unwrap()), flags);
        }
        assert_eq!(Operator::default().flags("http", "127.0.0.1:1".parse().unwrap()), "");
    }
}

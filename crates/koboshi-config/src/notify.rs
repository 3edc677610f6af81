//! Where notices go, as plain data: `notify`.

use std::time::Duration;

use crate::secret::Secret;

/// What all channels have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifyConfig {
    /// How long the first notice of a message waits for others.
    pub group_wait: Duration,
    /// How long something must be well again before its end is reported.
    pub settle: Duration,
}

impl Default for NotifyConfig {
    fn default() -> Self {
        Self { group_wait: Duration::from_secs(5), settle: Duration::from_secs(60) }
    }
}

macro_rules! names {
    ($(#[doc = $doc:literal] $type:ident: $(#[doc = $of:literal] $variant:ident $name:literal),+;)+) => {
        $(
            #[doc = $doc]
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum $type {
                $(#[doc = $of] $variant,)+
            }

            impl $type {
                /// The words of the file.
                pub const NAMES: &[&str] = &[$($name),+];

                /// Stable name.
                #[must_use]
                pub const fn name(self) -> &'static str {
                    match self {
                        $(Self::$variant => $name,)+
                    }
                }

                /// The one with this name.
                #[must_use]
                pub fn from_name(name: &str) -> Option<Self> {
                    match name {
                        $($name => Some(Self::$variant),)+
                        _ => None,
                    }
                }
            }
        )+
    };
}

names! {
    /// What a channel is.
    ChannelKind:
        /// An incoming webhook of Slack.
        Slack "slack",
        /// A web server that takes JSON.
        Webhook "webhook",
        /// Mail.
        Mail "mail",
        /// A program of this machine.
        Command "command";
    /// How a connection to a mail server is encrypted.
    MailTls:
        /// From the beginning.
        Implicit "implicit",
        /// After the server was asked for it; without it no mail is sent.
        Starttls "starttls",
        /// Not at all.
        Off "off";
}

/// What a notice can begin with.
pub const TRIGGERS: &[&str] = &["breaker", "cooldown", "park", "budget", "route"];
/// How bad it is, the least first.
pub const SEVERITIES: &[&str] = &["info", "warning", "critical"];
/// What a notice can be about.
pub const SCOPES: &[&str] = &["agent", "target", "key", "account", "model", "provider", "client", "route"];

/// One channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelConfig {
    /// What it is.
    pub kind: ChannelKind,
    /// Of `slack` and `webhook`: the address, which is often a secret.
    pub url: Option<Secret>,
    /// Of `webhook`: the key of the signature.
    pub secret: Option<Secret>,
    /// Of `command`: the program and its arguments.
    pub command: Vec<String>,
    /// Of `mail`: the server.
    pub mail: MailConfig,
    /// Of `slack`: the channel, where it is not that of the webhook.
    pub channel: Option<String>,
    /// Of `slack`: who posts.
    pub username: String,
    /// Of `slack`: the icon of who posts.
    pub icon: String,
    /// The least that is sent.
    pub severity: &'static str,
    /// Only these; empty for all.
    pub triggers: Vec<String>,
    /// Only these kinds of faults; empty for all.
    pub kinds: Vec<String>,
    /// Only about these; empty for all.
    pub scopes: Vec<String>,
    /// The language; by default that of the config.
    pub language: Option<&'static str>,
    /// When only what is critical is sent: `22:00-07:00`.
    pub quiet_hours: Option<String>,
    /// The time zone of quiet hours and of the times in the text; by default that of the machine.
    pub zone: Option<String>,
    /// The most messages in an hour.
    pub max_per_hour: u32,
    /// How long one message may take.
    pub timeout: Duration,
}

/// The mail server and the addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailConfig {
    /// Host and port.
    pub server: Option<String>,
    /// How the connection is encrypted.
    pub tls: MailTls,
    /// Who signs in.
    pub user: Option<String>,
    /// The password.
    pub password: Option<Secret>,
    /// Who sends.
    pub from: Option<String>,
    /// Who gets it.
    pub to: Vec<String>,
}

impl Default for ChannelConfig {
    fn default() -> Self {
        Self {
            kind: ChannelKind::Slack,
            url: None,
            secret: None,
            command: Vec::new(),
            mail: MailConfig {
                server: None,
                tls: MailTls::Starttls,
                user: None,
                password: None,
                from: None,
                to: Vec::new(),
            },
            channel: None,
            username: "Koboshi Alert".to_owned(),
            icon: ":warning:".to_owned(),
            severity: "warning",
            triggers: Vec::new(),
            kinds: Vec::new(),
            scopes: Vec::new(),
            language: None,
            quiet_hours: None,
            zone: None,
            max_per_hour: 30,
            timeout: Duration::from_secs(10),
        }
    }
}

/// The two times of quiet hours, in minutes of the day.
#[must_use]
pub fn quiet_minutes(text: &str) -> Option<(u16, u16)> {
    let minutes = |time: &str| {
        let (hour, minute) = time.split_once(':')?;
        let is_two = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        let (hour, minute) = (is_two(hour).then_some(hour)?, is_two(minute).then_some(minute)?);
        let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
        (hour < 24 && minute < 60).then_some(hour * 60 + minute)
    };
    let (from, to) = text.split_once('-')?;
    Some((minutes(from)?, minutes(to)?))
}

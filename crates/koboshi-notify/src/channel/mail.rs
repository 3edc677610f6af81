//! Mail over SMTP. Where TLS is asked for and the server has none, or a certificate that is not trusted, nothing is sent.

use koboshi_config::notify::{ChannelConfig, MailTls};
use lettre::address::AddressError;
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, MessageBuilder};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};

use super::{Letter, MAX_ANSWER, SendError, redactor};
use crate::http::LocalFuture;

/// The longest subject.
const MAX_SUBJECT: usize = 200;

pub(super) fn send(channel: &ChannelConfig, letter: &Letter) -> LocalFuture<Result<(), SendError>> {
    let made = transport(channel).and_then(|transport| Ok((transport, message(channel, letter)?)));
    Box::pin(async move {
        let (transport, message) = made?;
        let said = |error: &lettre::transport::smtp::Error| {
            // The cause is behind the first words: a certificate, a refused sign-in.
            let mut text = error.to_string();
            let mut cause = std::error::Error::source(error);
            while let Some(inner) = cause {
                let more = inner.to_string();
                if !text.contains(&more) {
                    text = format!("{text}: {more}");
                }
                cause = inner.source();
            }
            SendError::new(redactor().excerpt(&text, MAX_ANSWER))
        };
        transport.send(message).await.map(drop).map_err(|error| said(&error))
    })
}

fn transport(channel: &ChannelConfig) -> Result<AsyncSmtpTransport<Tokio1Executor>, SendError> {
    let mail = &channel.mail;
    let server = mail.server.as_deref().unwrap_or_default();
    let (host, port) =
        server.rsplit_once(':').ok_or_else(|| SendError::new("`server` needs a host and a port"))?;
    let port = port.parse().map_err(|_| SendError::new("`server` has no valid port"))?;
    let parameters =
        || TlsParameters::new(host.to_owned()).map_err(|error| SendError::new(error.to_string()));
    let tls = match mail.tls {
        MailTls::Implicit => Tls::Wrapper(parameters()?),
        MailTls::Starttls => Tls::Required(parameters()?),
        MailTls::Off => Tls::None,
    };
    let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host)
        .port(port)
        .tls(tls)
        .timeout(Some(channel.timeout));
    if let (Some(user), Some(password)) = (&mail.user, &mail.password) {
        builder = builder.credentials(Credentials::new(user.clone(), password.expose().to_owned()));
    }
    Ok(builder.build())
}

fn message(channel: &ChannelConfig, letter: &Letter) -> Result<Message, SendError> {
    let wrong = |error: AddressError| SendError::new(format!("an address cannot be used: {error}"));
    let mailbox =
        |text: &str| text.parse::<Address>().map(|address| Mailbox::new(None, address)).map_err(wrong);
    let from = mailbox(channel.mail.from.as_deref().unwrap_or_default())?;
    let host = from.email.domain().to_owned();
    let subject: String = format!("[Koboshi] {}", letter.heading).chars().take(MAX_SUBJECT).collect();
    let mut builder: MessageBuilder = Message::builder()
        .from(from)
        .subject(subject)
        // The same message has the same id: mail programs show it once.
        .message_id(Some(format!("<{}@{host}>", letter.id)))
        .header(ContentType::TEXT_PLAIN);
    for address in &channel.mail.to {
        builder = builder.to(mailbox(address)?);
    }
    builder.body(letter.plain.clone()).map_err(|error| SendError::new(error.to_string()))
}

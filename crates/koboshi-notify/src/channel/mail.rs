//! Mail over SMTP. Where TLS is asked for and the server has none, or a certificate that is not trusted, nothing is sent.

use koboshi_config::notify::{ChannelConfig, MailTls};
use lettre::address::{AddressError, Envelope};
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, MessageBuilder};
use lettre::transport::smtp;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::response::Category;
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};

use super::{Letter, MAX_ANSWER, SendError, Taken, redactor};
use crate::http::LocalFuture;

/// The longest subject.
const MAX_SUBJECT: usize = 200;

pub(super) fn send(channel: &ChannelConfig, letter: &Letter) -> LocalFuture<Result<Taken, SendError>> {
    let made = transport(channel).and_then(|transport| Ok((transport, message(channel, letter)?)));
    Box::pin(async move {
        let (transport, message) = made?;
        let (envelope, mail) = (message.envelope(), message.formatted());
        match transport.send_raw(envelope, &mail).await {
            Ok(_) => Ok(Taken::default()),
            Err(error) if is_about_an_address(&error) && envelope.to().len() > 1 => {
                one_by_one(&transport, envelope, &mail, &error).await
            }
            Err(error) => Err(failure(&error)),
        }
    })
}

/// Whether the server refused an address or the message, and not the one who signs in.
fn is_about_an_address(error: &smtp::Error) -> bool {
    error.is_permanent() && error.status().is_some_and(|status| status.category == Category::MailSystem)
}

/// Sends it to each recipient alone: one wrong address must not keep it from the others.
async fn one_by_one(
    transport: &AsyncSmtpTransport<Tokio1Executor>,
    envelope: &Envelope,
    mail: &[u8],
    error: &smtp::Error,
) -> Result<Taken, SendError> {
    let mut refused = Vec::new();
    for address in envelope.to() {
        let alone = Envelope::new(envelope.from().cloned(), vec![address.clone()]);
        let Ok(alone) = alone else { continue };
        if let Err(error) = transport.send_raw(&alone, mail).await {
            refused.push(format!("{address}: {}", failure(&error).why));
        }
    }
    if refused.len() >= envelope.to().len() {
        return Err(failure(error));
    }
    Ok(Taken { except: (!refused.is_empty()).then(|| refused.join("; ")) })
}

fn failure(error: &smtp::Error) -> SendError {
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
    SendError {
        // A mailbox that does not exist, a message that is too large: the same the next time.
        is_final: error.is_permanent(),
        ..SendError::new(redactor().excerpt(&text, MAX_ANSWER))
    }
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

//! A web server that takes JSON, signed as [Standard Webhooks](https://www.standardwebhooks.com) has it: the receiver can check who
//! sent it and when, and knows by the id what it has already.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use jiff::Timestamp;
use koboshi_config::notify::ChannelConfig;
use sha2::Sha256;

use super::{Letter, SendError, url};
use crate::http::HttpRequest;

/// What stands before a secret that is written in base64.
const ENCODED: &str = "whsec_";

pub(super) fn request(
    channel: &ChannelConfig,
    letter: &Letter,
    now: Timestamp,
) -> Result<HttpRequest, SendError> {
    let body = letter.json.to_string().into_bytes();
    let time = now.as_second().to_string();
    let mut headers = vec![("webhook-id", letter.id.clone()), ("webhook-timestamp", time.clone())];
    if let Some(secret) = &channel.secret {
        headers.push(("webhook-signature", signature(secret.expose(), &letter.id, &time, &body)?));
    }
    Ok(HttpRequest { url: url(channel)?, headers, body })
}

fn signature(secret: &str, id: &str, time: &str, body: &[u8]) -> Result<String, SendError> {
    let key = match secret.strip_prefix(ENCODED) {
        Some(encoded) => STANDARD
            .decode(encoded)
            .map_err(|_| SendError::new("the `secret` begins with whsec_ and is not base64 after it"))?,
        None => secret.as_bytes().to_vec(),
    };
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|error| SendError::new(error.to_string()))?;
    for part in [id.as_bytes(), b".", time.as_bytes(), b".", body] {
        mac.update(part);
    }
    Ok(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's reference libraries.
    #[test]
    fn the_signature_is_that_of_standard_webhooks() {
        let signed = signature(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330",
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signed.unwrap(), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(signature("whsec_!", "a", "1", b"").is_err());
    }
}

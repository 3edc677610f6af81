//! Routes that mix embedding models: their vectors cannot be compared, and a chat model makes none.
//!
//! An index that was filled by one model and is asked with vectors of another gives wrong answers without an error. Names tell what a
//! model makes, as far as they do; the same model at two providers is no mix.

use koboshi::models::is_embedding;

use crate::check::{MAX_PROBLEMS, Problem};
use crate::config::Config;
use crate::walk::Walk;
use crate::words::{text, words};

pub(super) fn warn(config: &Config, walk: &Walk<'_>) -> Vec<Problem> {
    let mut found = Vec::new();
    for given in walk.all_given("routes.*.chain") {
        let chain =
            config.routes.get(&given.at.entry).map(|route| route.chain.as_slice()).unwrap_or_default();
        let models: Vec<&str> = chain.iter().filter_map(|target| Some(target.split_once('/')?.1)).collect();
        let Some(embedding) = models.iter().find(|model| is_embedding(model)) else { continue };
        let Some(at) = models.iter().position(|model| !model.contains('{') && bare(model) != bare(embedding))
        else {
            continue;
        };
        let Some(other) = models.get(at) else { continue };
        let spot = given.parts.get(at).copied().unwrap_or(given.spot);
        let (shown, one, two) = (&given.at.shown, walk.quote(embedding), walk.quote(other));
        let message = text!(
            "`{shown}` mixes the embedding model `{one}` with `{two}`: vectors of two models cannot be compared, and chat models make none",
            "`{shown}` に、埋め込みモデル `{one}` と `{two}` が混在しています。モデルが異なるとベクトルを比較できず、チャットモデルはベクトルを作れません"
        );
        let hint = words(
            "let an embedding model fall back only to the same model at another provider or with another key",
            "埋め込みモデルのフォールバック先は、別のプロバイダーまたは別のキーの同じモデルだけにしてください",
        );
        found.push(walk.problem(&given.at, spot, message, Some(hint.into())));
    }
    found.truncate(MAX_PROBLEMS);
    found
}

/// The name without the vendor that relays put before it.
fn bare(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}

//! Loads what is known of agent programs: what is built in, and the user's files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use koboshi_config::Config;
use koboshi_config::load::Unservable;
use koboshi_config::words::Text;
use koboshi_supervisor::Kinds;

use crate::Failure;

/// A file of kinds is written by hand; one larger than this is something else.
const MAX_SIZE: u64 = 256 * 1024;

pub(crate) fn load(config: &Config) -> Result<Kinds, Failure> {
    let builtin = Kinds::builtin().map_err(|error| Failure::new(error.to_string()))?;
    config.kinds.iter().try_fold(builtin, |kinds, path| add(kinds, path).map_err(Failure::of))
}

fn add(kinds: Kinds, path: &Path) -> Result<Kinds, Text> {
    let name = path.display();
    let wrong = |why: String| {
        Text::new(
            format!("the file of kinds {name} cannot be used: {why}"),
            format!("エージェントの種類のファイル {name} は使えません: {why}"),
        )
    };
    let mut text = String::new();
    let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
    let size = file.take(MAX_SIZE + 1).read_to_string(&mut text).map_err(|error| wrong(error.to_string()))?;
    if u64::try_from(size).unwrap_or(u64::MAX) > MAX_SIZE {
        return Err(wrong(format!("it has more than {MAX_SIZE} bytes")));
    }
    kinds.with(&text).map_err(|error| wrong(error.to_string()))
}

/// Files of kinds that cannot be used, and kinds that do not exist, with their places.
pub(crate) fn unusable(config: &Config) -> Vec<Unservable> {
    let mut found = Vec::new();
    let Ok(mut kinds) = Kinds::builtin() else { return found };
    for path in &config.kinds {
        match add(kinds.clone(), path) {
            Ok(more) => kinds = more,
            Err(why) => found.push(Unservable { key: "kinds", entry: String::new(), why }),
        }
    }
    if found.is_empty() {
        for (name, agent) in &config.agents {
            if let Some(wanted) = agent.kind.as_ref().filter(|wanted| kinds.get(wanted).is_none()) {
                let why = unknown(wanted, &kinds);
                found.push(Unservable { key: "agents.*.kind", entry: name.clone(), why });
            }
        }
    }
    found
}

/// There is no such kind.
pub(crate) fn unknown(wanted: &str, kinds: &Kinds) -> Text {
    let names = kinds.names().collect::<Vec<_>>();
    let (en, known) = (names.join(", "), names.join("、"));
    Text::new(
        format!("there is no kind `{wanted}`: choose one of {en}, or add it to a file in `kinds`"),
        format!(
            "`{wanted}` という種類はありません。{known} から選ぶか、`kinds` のファイルに追加してください"
        ),
    )
}

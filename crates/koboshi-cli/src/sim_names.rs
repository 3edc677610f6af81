//! Describes mistakes in the models of the simulated provider: `sim` knows its names, the config knows their places.

use koboshi_config::load::Mistake;
use koboshi_config::words::Text;
use koboshi_sim::{NameError, check, names};

/// What `koboshi check` says about a name, without `sim/`.
pub(crate) fn mistake(model: &str) -> Option<Mistake> {
    let (message, hint) = match check(model).err()? {
        NameError::Unknown { name } => {
            (Text::new("`sim` has no such model", "`sim` にそのモデルはありません"), Some(unknown(&name)))
        }
        NameError::Param { name, param, known } => (
            Text::new(
                format!("`{name}` has no parameter `{param}`"),
                format!("`{name}` に `{param}` というパラメーターはありません"),
            ),
            Some(match nearest(&param, known.iter().copied()) {
                Some(near) => did_you_mean(near),
                None => Text::new(
                    format!("it has {}", known.join(", ")),
                    format!("使えるもの: {}", known.join("、")),
                ),
            }),
        ),
        NameError::Value { param, value } => (
            Text::new(
                format!("the value `{value}` of `{}` cannot be read", param.name),
                format!("`{}` の値 `{value}` を読み取れません", param.name),
            ),
            Some(Text::new(
                format!("the default is {}. {}", param.default, param.does),
                format!("既定値は {} です。書き方は docs/sim.md にあります", param.default),
            )),
        ),
        _ => (
            Text::new(
                "a parameter is given twice, or two of them do not fit together",
                "パラメーターが重複しているか、組み合わせが正しくありません",
            ),
            None,
        ),
    };
    Some(Mistake { message, hint })
}

fn unknown(name: &str) -> Text {
    if name.starts_with("fail-") {
        return Text::new(
            "write a status from 400 to 599, as in `fail-503`",
            "`fail-503` のように 400〜599 のステータスを書いてください",
        );
    }
    match nearest(name, names().iter().map(|name| name.name)) {
        Some(near) => did_you_mean(near),
        None => {
            let all: Vec<&str> = names().iter().map(|name| name.name).collect();
            Text::new(format!("there are {}", all.join(", ")), format!("使えるもの: {}", all.join("、")))
        }
    }
}

fn did_you_mean(near: &str) -> Text {
    Text::new(format!("did you mean `{near}`?"), format!("`{near}` のことですか？"))
}

fn nearest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let wrong: String = wrong.chars().take(64).collect();
    names
        .map(|name| (strsim::damerau_levenshtein(&wrong, name), name))
        .filter(|(distance, name)| *distance <= name.len().div_ceil(3) && *distance < name.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

//! Errors of a store, a gateway over the network and a rule file, for readers of either language.
//!
//! The errors themselves are in English: they occur in logs and journals too. A command prints them in the reader's
//! language. The message of a driver or of the system stays unchanged, in brackets.

use koboshi::classify::RuleError;
use koboshi_config::words::Text;
use koboshi_gateway::RemoteError;
use koboshi_store::StoreError;

use crate::Failure;

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::of(Text::new(error.to_string(), store(&error)))
    }
}

impl From<RemoteError> for Failure {
    fn from(error: RemoteError) -> Self {
        Self::of(Text::new(error.to_string(), remote(&error)))
    }
}

impl From<RuleError> for Failure {
    fn from(error: RuleError) -> Self {
        let ja = format!("{}:{}:{}: {}", error.file, error.line, error.column, error.message_ja);
        Self::of(Text::new(error.to_string(), ja))
    }
}

fn store(error: &StoreError) -> String {
    match error {
        StoreError::Newer { place, found, known } => format!(
            "{} は新しいバージョンの Koboshi で書かれています（スキーマ {found}、この Koboshi が読めるのは {known} まで）。この Koboshi を更新するか、別のファイルを使ってください。何も変更していません",
            named(place)
        ),
        StoreError::Damaged { place, why } => format!(
            "{} は Koboshi のストアとして読み取れません（{}）。何も変更していません。パスが正しいか確認してください。ファイルが壊れている場合は、そのファイルを別の場所に移動（または改名）してください。次の起動時に新しく作られます",
            named(place),
            reason(why)
        ),
        StoreError::Busy { place, doing } => {
            format!(
                "{} はほかのプロセスが使用中です（{}できませんでした）。もう一度お試しください",
                named(place),
                step(doing).0
            )
        }
        StoreError::Away { place, doing, why } => format!(
            "{}に接続できません（{}できませんでした: {why}）。起動しているか、ここから接続できるかを確認してください",
            named(place),
            step(doing).0
        ),
        StoreError::Refused { place, why } => format!(
            "{}にログインできません（{why}）。パスワードが間違っているか、指定されていません。ストアのアドレスに redis://:password@host:6379 の形で書いてください（koboshi.yaml の `store.redis`、または --store）",
            named(place)
        ),
        StoreError::Setting { place, why } => {
            let place = place.strip_prefix("the store file ").unwrap_or(place);
            format!("ストア {place} は使えません: {}", reason(why))
        }
        StoreError::Failed { place, doing, why } => {
            format!("{}: {}ませんでした: {}", named(place), step(doing).1, reason(why))
        }
        // An unknown kind is printed unchanged.
        other => other.to_string(),
    }
}

/// A store as its reader calls it.
fn named(place: &str) -> String {
    let file = place.strip_prefix("the store file ").map(|path| format!("ストアのファイル {path}"));
    let redis = || place.strip_prefix("Redis at ").map(|address| format!("Redis（{address}）"));
    file.or_else(redis).unwrap_or_else(|| place.to_owned())
}

/// The operation: as a noun for "could", and as a verb for "not".
fn step(doing: &str) -> (&'static str, &'static str) {
    match doing {
        "open the file" => ("ファイルを開くことが", "ファイルを開け"),
        "read the file" | "check the file" => ("ファイルの読み取りが", "ファイルを読み取れ"),
        "set up the file" => ("ファイルの準備が", "ファイルを準備でき"),
        "read state" => ("状態の読み取りが", "状態を読み取れ"),
        "write state" => ("状態の書き込みが", "状態を書き込め"),
        "read the journal" => ("ジャーナルの読み取りが", "ジャーナルを読み取れ"),
        "write the journal" => ("ジャーナルの書き込みが", "ジャーナルに書き込め"),
        "forget what is old" => ("古い記録の削除が", "古い記録を削除でき"),
        _ => ("処理が", "処理を完了でき"),
    }
}

/// Translates our own reasons; those of a driver or of the system stay unchanged.
fn reason(why: &str) -> String {
    const OWN: &[(&str, &str)] = &[
        (
            "it is a folder: name a file in it, such as koboshi.db",
            "フォルダーです。その中のファイルを koboshi.db のように指定してください",
        ),
        ("it is the file of another program", "別のプログラムのファイルです"),
        ("its time limit must be more than nothing", "制限時間は 0 より長くしてください"),
        (
            "it is no address of a Redis: write it like redis://:password@host:6379/0, rediss:// for TLS, unix:///path, redis+sentinel://host,host/name or redis+cluster://host,host",
            "Redis のアドレスではありません。redis://:password@host:6379/0（TLS なら rediss://）、unix:///path、redis+sentinel://host,host/name、redis+cluster://host,host のいずれかの形で書いてください",
        ),
    ];
    if let Some((_, ja)) = OWN.iter().find(|(en, _)| *en == why) {
        return (*ja).to_owned();
    }
    if let Some(said) = why.strip_suffix(": this user must be able to write the file and its folder") {
        return format!("{said}。このユーザーがファイルとそのフォルダーに書き込める必要があります");
    }
    let full = |begin: &str| why.strip_prefix(begin).and_then(|rest| rest.strip_suffix(')'));
    if let Some(said) = full("the disk is full, make room on it (") {
        return format!("ディスクがいっぱいです。空きを作ってください（{said}）");
    }
    why.to_owned()
}

fn remote(error: &RemoteError) -> String {
    match error {
        RemoteError::Address(said) => {
            let address = said.split(" is not the address").next().unwrap_or_default();
            format!(
                "{address} はゲートウェイのアドレスではありません。http://127.0.0.1:4141 のように書いてください"
            )
        }
        RemoteError::Key => "管理用キーは、改行を含まない印字可能な文字で書いてください".to_owned(),
        RemoteError::Away(address, why) => format!("{address} のゲートウェイに接続できません: {why}"),
        RemoteError::Refused(address) => format!(
            "{address} のゲートウェイに接続できません。このアドレスでは何も待ち受けていません。`koboshi serve` は起動していますか？ 別のアドレスで動いている場合は、--url（または KOBOSHI_URL）で指定してください。アドレスは `koboshi serve` の起動時に表示されます"
        ),
        RemoteError::Plain(address, plain) => format!(
            "{address} のゲートウェイに接続できません。このゲートウェイは TLS ではなく、平文の HTTP を使っています。--url {plain} と指定してください"
        ),
        RemoteError::NoKey(address, said) => format!(
            "{address} のゲートウェイに拒否されました: {said}（管理用キーは、環境変数 KOBOSHI_ADMIN_KEY、または --admin-key-file で指定したファイルから読み取ります。今回は送信していません。）"
        ),
        RemoteError::WrongKey(address, said) => {
            format!("{address} のゲートウェイは、この管理用キーを受け付けません: {said}")
        }
        RemoteError::Unknown(address, path) => {
            format!("{address} は Koboshi ゲートウェイではないか、古いバージョンです（{path} がありません）")
        }
        RemoteError::Denied(address, status, said) => {
            format!("{address} のゲートウェイがエラー {status} を返しました: {said}")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These texts must match those of the store, else readers get English.
    #[test]
    fn reasons_of_the_store_are_known() {
        let place = || "the store file a.db".to_owned();
        for (error, ja) in [
            (StoreError::Busy { place: place(), doing: "write state" }, "状態の書き込みができませんでした"),
            (StoreError::Newer { place: place(), found: 9, known: 1 }, "新しいバージョン"),
            (
                StoreError::Failed {
                    place: place(),
                    doing: "open the file",
                    why: "x: this user must be able to write the file and its folder".to_owned(),
                },
                "書き込める必要があります",
            ),
            (
                StoreError::Failed {
                    place: place(),
                    doing: "write state",
                    why: "the disk is full, make room on it (x)".to_owned(),
                },
                "ディスクがいっぱいです",
            ),
            (
                StoreError::Refused { place: "Redis at h:1".to_owned(), why: "WRONGPASS".to_owned() },
                "Redis（h:1）にログインできません",
            ),
        ] {
            let said = store(&error);
            assert!(said.contains(ja), "{said}");
        }
    }
}

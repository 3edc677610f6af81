//! Errors of the store, of a gateway that is asked over the network, and of rule files are in the reader's language.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::io::{Read, Write};
use std::net::TcpListener;

use common::served::Served;
use common::{koboshi, run_with};

/// One who answers everything with this, until the test ends.
fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

/// The same command fails in both languages, each in its own words.
fn assert_in_both_languages(args: &[&str], environment: &[(&str, &str)], en: &str, ja: &str) {
    let english = run_with(args, environment, "");
    assert_eq!(english.status, 2, "{args:?}: {}", english.error);
    assert!(english.error.contains(en), "{args:?}: {}", english.error);
    let asked = run_with(&[args, &["--lang", "ja"]].concat(), environment, "");
    let by_environment = run_with(args, &[environment, &[("LANG", "ja_JP.UTF-8")]].concat(), "");
    for out in [asked, by_environment] {
        assert_eq!(out.status, 2, "{args:?}: {}", out.error);
        assert!(out.error.contains(ja) && !out.error.contains(en), "{args:?}: {}", out.error);
    }
}

#[test]
fn errors_of_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let junk = folder.path().join("junk.db");
    std::fs::write(
        &junk,
        "this is no store at all, but a text that is long enough to be looked at".repeat(20),
    )
    .unwrap();
    let (folder, junk) = (folder.path().display().to_string(), junk.display().to_string());
    let nowhere = "/proc/there/is/none.db";
    for (args, en, ja) in [
        (
            &["status", "--store", &junk][..],
            "cannot be read as a Koboshi store",
            "Koboshi のストアとして読み取れません",
        ),
        (&["status", "--store", &folder], "it is a folder", "フォルダーです"),
        (&["status", "--store", "redis://127.0.0.1:1"], "is away", "に接続できません"),
        (&["status", "--store", "rediss://127.0.0.1:1"], "is away", "に接続できません"),
        (
            &["status", "--store", "http://127.0.0.1:1"],
            "no address of a Redis",
            "Redis のアドレスではありません",
        ),
        (
            &["status", "--store", "postgres://user:hunter2@127.0.0.1:1/koboshi"],
            "or name a file, or `memory`",
            "ファイルまたは `memory` を指定してください",
        ),
        (
            &["status", "--store", "memory"],
            "only the gateway itself knows",
            "ゲートウェイのメモリにしかありません",
        ),
        (
            &["serve", "--listen", "127.0.0.1:0", "--store", &junk],
            "cannot be read as a Koboshi store",
            "Koboshi のストアとして読み取れません",
        ),
        (
            &["serve", "--listen", "127.0.0.1:0", "--store", nowhere],
            "could not open the file",
            "ファイルを開けませんでした",
        ),
        (&["serve", "--listen", "127.0.0.1:0", "--store", nowhere], "hint: choose a store", "ヒント: "),
    ] {
        assert_in_both_languages(args, &[], en, ja);
    }
    let both = [("KOBOSHI_URL", "http://127.0.0.1:1"), ("KOBOSHI_STORE", "a.db")];
    assert_in_both_languages(&["status"], &both, "are both set", "の両方が設定されています");
}

/// A config may name the language too.
#[test]
fn the_language_of_the_config_counts() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("koboshi.yaml");
    std::fs::write(&config, "language: ja\nstore: {path: .}\n").unwrap();
    let out = koboshi(&["status", "--config", &config.display().to_string()]).output().unwrap();
    let error = String::from_utf8(out.stderr).unwrap();
    assert!(error.contains("フォルダーです"), "{error}");
}

#[test]
fn errors_of_a_gateway_over_the_network() {
    let page = answering(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 13\r\nconnection: close\r\n\r\n<html></html>",
    );
    let admin = "admin: {sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855}\n";
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("koboshi.yaml");
    std::fs::write(&config, admin).unwrap();
    let gateway = Served::start(&config, &folder.path().join("koboshi.db"));
    let url = format!("http://{}", gateway.address);
    let secure = format!("https://{}", gateway.address);
    for (args, environment, en, ja) in [
        (
            &["status", "--url", "http://127.0.0.1:1"][..],
            &[][..],
            "nothing listens there. Is `koboshi serve` running?",
            "`koboshi serve` は起動していますか",
        ),
        (
            &["status", "--url", &secure],
            &[],
            &format!("it speaks plain HTTP, not TLS. Ask it with --url {url}"),
            &format!("平文の HTTP を使っています。--url {url} と指定してください"),
        ),
        (&["status", "--url", &page], &[], "is not a Koboshi gateway", "Koboshi ゲートウェイではない"),
        (
            &["status", "--url", "ftp://127.0.0.1"],
            &[],
            "is not the address of a gateway",
            "ゲートウェイのアドレスではありません",
        ),
        (
            &["status", "--url", &url],
            &[],
            "The admin key of this gateway is missing or wrong",
            "このゲートウェイの管理用キーがないか、間違っています",
        ),
        (
            &["status", "--url", &url],
            &[("KOBOSHI_ADMIN_KEY", "wrong")],
            "The admin key of this gateway is missing or wrong",
            "このゲートウェイの管理用キーがないか、間違っています",
        ),
        (
            &["status", "--url", &url, "--admin-key-file", "/there/is/none"],
            &[],
            "cannot read the admin key",
            "管理用キーを読み取れません",
        ),
    ] {
        assert_in_both_languages(args, environment, en, ja);
    }
}

#[test]
fn errors_of_rule_files() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text, en, ja) in [
        (
            "kind", "provider: [{id: own.a, kind: quota_exceded, when: [x]}]",
            "unknown kind `quota_exceded`, did you mean", "`quota_exceded` という kind はありません",
        ),
        ("always", "provider: [{id: own.a, kind: internal}]", "would hold always", "常に当てはまります"),
        (
            "twice",
            "provider: [{id: own.a, kind: internal, when: [x]}, {id: own.a, kind: internal, when: [x]}]",
            "is used twice",
            "2 回使われています",
        ),
        (
            "pattern", "provider: [{id: own.a, kind: internal, when: [\"/(/\"]}]", "bad regular expression",
            "正規表現が正しくありません",
        ),
        (
            "status", "provider: [{id: own.a, kind: internal, status: abc}]", "is no status",
            "ステータスではありません",
        ),
        (
            "term",
            "provider: [{id: own.a, kind: internal, when: [\"Big Words\"]}]",
            "can never occur",
            "一致することがありません",
        ),
        ("yaml", "provider: [", "yaml.yaml:", "読み取れません"),
    ] {
        let file = folder.path().join(format!("{name}.yaml"));
        std::fs::write(&file, text).unwrap();
        let file = file.display().to_string();
        let english = run_with(&["explain", "--rules", &file], &[], "x");
        assert!(english.status == 2 && english.error.contains(en), "{name}: {}", english.error);
        let japanese = run_with(&["explain", "--rules", &file, "--lang", "ja"], &[], "x");
        assert!(japanese.status == 2 && japanese.error.contains(ja), "{name}: {}", japanese.error);
        assert!(japanese.error.contains(&file), "{name}: {}", japanese.error);
    }
    assert_in_both_languages(
        &["explain", "--rules", "/there/is/none.yaml"],
        &[],
        "cannot read rule file",
        "ルールファイル /there/is/none.yaml を読み取れません",
    );
}

/// Who forgot the time learns of both ways to write it.
#[test]
fn cool_without_a_time_names_both_ways() {
    let out = run_with(&["cool", "provider:openai"], &[], "");
    assert!(out.status == 2 && out.error.contains("--for") && out.error.contains("--until"), "{}", out.error);
}

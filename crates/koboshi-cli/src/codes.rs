//! `koboshi codes`: the fault table, for people, programs and the documentation.

use std::io::{self, Write};

use anstream::stdout;
use koboshi::fault::{Row, Sub, TABLE};
use koboshi_report::phrase::{Lang, Phrases};
use serde_json::{Value, json};

use crate::args::{CodesArgs, CodesFormat};
use crate::{Exit, Failure, settings};

pub(crate) fn run(args: &CodesArgs) -> Result<Exit, Failure> {
    let phrases = Phrases::new().map_err(|error| Failure::new(error.to_string()))?;
    let found = settings::find_or_go_on(args.config.file.as_deref(), &args.lang)?;
    let config = found.map(|(_, loaded)| loaded.config).unwrap_or_default();
    let lang = args.lang.get(&config);
    let prefix = args.prefix.as_deref().unwrap_or(&config.code_prefix);
    let mut out = stdout().lock();
    match args.format {
        CodesFormat::Text => text(&mut out, prefix, &phrases, lang)?,
        CodesFormat::Json => json(&mut out, prefix, &phrases, lang)?,
        CodesFormat::Markdown => markdown(&mut out, prefix)?,
    }
    Ok(Exit::Good)
}

fn http(row: &Row) -> String {
    row.http_status.map_or_else(|| "-".to_owned(), |status| status.to_string())
}

fn text(out: &mut impl Write, prefix: &str, phrases: &Phrases, lang: Lang) -> io::Result<()> {
    for row in TABLE {
        writeln!(
            out,
            "{}  {:<22}  HTTP {:<3}  {}",
            row.kind.code(prefix),
            row.name,
            http(row),
            phrases.message(lang, row.kind, None)
        )?;
    }
    let note =
        phrases.text(lang, "codes-own-key", &[("kinds", &own_key_kinds(lang.comma()))]).unwrap_or_default();
    writeln!(out, "\n{note}")
}

/// The kinds that are about a key, and go out with another status where it is the gateway's own.
fn own_key_kinds(comma: &str) -> String {
    let of_keys = TABLE.iter().filter(|row| matches!(row.http_status, Some(401 | 403)));
    of_keys.map(|row| row.name).collect::<Vec<_>>().join(comma)
}

fn json(out: &mut impl Write, prefix: &str, phrases: &Phrases, lang: Lang) -> io::Result<()> {
    let kinds: Vec<Value> = TABLE
        .iter()
        .map(|row| {
            json!({
                "kind": row.name,
                "code": row.kind.code(prefix),
                "stream_code": row.stream_code,
                "http_status": row.http_status,
                "origin": row.origin.name(),
                "scope": row.scope.name(),
                "same": row.same.name(),
                "other": row.other.name(),
                "later": row.later.name(),
                "health": row.health.name(),
                "meaning": row.meaning,
                "message": phrases.message(lang, row.kind, None),
                "suggestion": phrases.suggestion(lang, row.kind, None),
            })
        })
        .collect();
    let subs: Vec<Value> =
        Sub::ALL.iter().map(|sub| json!({"sub": sub.name(), "meaning": sub.meaning()})).collect();
    serde_json::to_writer_pretty(
        &mut *out,
        &json!({"prefix": prefix, "lang": lang.name(), "kinds": kinds, "subs": subs}),
    )?;
    writeln!(out)
}

fn markdown(out: &mut impl Write, prefix: &str) -> io::Result<()> {
    writeln!(out, "# Fault codes\n")?;
    writeln!(
        out,
        "Every failure becomes one of these kinds. The page is printed by `koboshi codes --format markdown`; a test keeps it equal to the table in the code.\n"
    )?;
    writeln!(
        out,
        "*same*: may the same target be tried again? *other*: may another target succeed? *later*: may the user try later? *health*: does it count against the target's health? A single fault may differ from its row: the rule that saw it says where.\n"
    )?;
    writeln!(out, "| kind | code | stream | HTTP | origin | scope | same | other | later | health | when |")?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|---|---|")?;
    for row in TABLE {
        let mark = if matches!(row.http_status, Some(401 | 403)) { " †" } else { "" };
        writeln!(
            out,
            "| `{}` | {} | {} | {}{mark} | {} | {} | {} | {} | {} | {} | {} |",
            row.name,
            row.kind.code(prefix),
            row.stream_code,
            http(row),
            row.origin.name(),
            row.scope.name(),
            row.same.name(),
            row.other.name(),
            row.later.name(),
            row.health.name(),
            row.meaning
        )?;
    }
    writeln!(
        out,
        "\n† 502 where the provider refused a key *of the gateway*: 401 or 403 would make the client throw away its own key.\n"
    )?;
    writeln!(
        out,
        "## Subs\n\nThe finer reason, where it changes what a person should do.\n\n| sub | meaning |\n|---|---|"
    )?;
    for sub in Sub::ALL {
        writeln!(out, "| `{}` | {} |", sub.name(), sub.meaning())?;
    }
    Ok(())
}

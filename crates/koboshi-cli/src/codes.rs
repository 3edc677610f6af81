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
    let config = settings::load_without_keys(args.config.file.as_deref(), &args.lang)?;
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
    Ok(())
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
        writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
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
        "\nTowards a client, a dead credential *of the gateway* is answered with 502, so that the client does not throw away its own key.\n"
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

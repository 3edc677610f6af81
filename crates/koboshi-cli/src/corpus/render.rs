//! Prints what a corpus check showed.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anstream::stdout;
use serde_json::{Value, json};

use super::{FileReport, Measure, Tally};
use crate::args::{CheckArgs, Format};

pub(super) fn print(reports: &[FileReport], args: &CheckArgs) -> io::Result<()> {
    let mut out = stdout().lock();
    match args.format {
        Format::Text => text(&mut out, reports, args),
        Format::Json => {
            serde_json::to_writer_pretty(&mut out, &document(reports, args.failures))?;
            writeln!(out)
        }
    }
}

fn text(out: &mut impl Write, reports: &[FileReport], args: &CheckArgs) -> io::Result<()> {
    for report in reports {
        let flagged = if report.without_flag.is_some() { ", with the error flag" } else { "" };
        line(out, &format!("{} ({}{flagged})", report.file, report.form.name()), report.measure.total)?;
        details(out, &report.measure, args.failures)?;
        if let Some(measure) = &report.without_flag {
            line(out, &format!("{} (without the error flag)", report.file), measure.total)?;
            details(out, measure, args.failures)?;
        }
    }
    if reports.len() > 1 {
        line(out, "all files", total(reports))?;
    }
    Ok(())
}

fn line(out: &mut impl Write, name: &str, tally: Tally) -> io::Result<()> {
    writeln!(out, "{:6.2} %  {}/{} right, {} harmful  {name}", tally.percent(), tally.right, tally.cases, tally.harmful)
}

/// The families that are not all right, what was taken for what, and on demand every wrong case.
fn details(out: &mut impl Write, measure: &Measure, failures: bool) -> io::Result<()> {
    for (family, tally) in measure.families.iter().filter(|(_, tally)| tally.right < tally.cases) {
        writeln!(out, "          {family}: {}/{}", tally.right, tally.cases)?;
    }
    for ((expected, got), count) in confusion(measure) {
        writeln!(out, "          {count} × {expected} taken for {got}")?;
    }
    if failures {
        for miss in &measure.misses {
            let harmful = if miss.score.harmful { "  HARMFUL" } else { "" };
            writeln!(out, "          {}: expected {}, got {} by {}{harmful}", miss.id, miss.score.expected, miss.score.got, miss.score.rule)?;
        }
    }
    Ok(())
}

/// How often one answer was given for another, by first word; waits and flags apart.
fn confusion(measure: &Measure) -> BTreeMap<(&str, &str), usize> {
    let mut pairs = BTreeMap::new();
    for miss in &measure.misses {
        let expected = miss.score.expected.split(' ').next().unwrap_or_default();
        let got = miss.score.got.split(' ').next().unwrap_or_default();
        if expected != got {
            *pairs.entry((expected, got)).or_insert(0) += 1;
        }
    }
    pairs
}

fn total(reports: &[FileReport]) -> Tally {
    reports.iter().fold(Tally::default(), |mut all, report| {
        all.join(report.measure.total);
        all
    })
}

fn document(reports: &[FileReport], failures: bool) -> Value {
    let mut document = tally(total(reports));
    document["files"] = reports.iter().map(|report| file(report, failures)).collect();
    document
}

fn file(report: &FileReport, failures: bool) -> Value {
    let mut value = measure(&report.measure, failures);
    value["file"] = json!(report.file);
    value["form"] = json!(report.form.name());
    if let Some(without_flag) = &report.without_flag {
        value["without_flag"] = measure(without_flag, failures);
    }
    value
}

fn measure(measure: &Measure, failures: bool) -> Value {
    let mut value = tally(measure.total);
    value["families"] = measure.families.iter().map(|(family, counts)| (family.clone(), tally(*counts))).collect::<serde_json::Map<_, _>>().into();
    value["confusion"] = confusion(measure).into_iter().map(|((expected, got), count)| json!({"expected": expected, "got": got, "count": count})).collect();
    if failures {
        let misses = measure.misses.iter().map(|miss| {
            json!({
                "id": miss.id,
                "family": miss.family,
                "expected": miss.score.expected,
                "got": miss.score.got,
                "rule": miss.score.rule,
                "harmful": miss.score.harmful,
            })
        });
        value["failures"] = misses.collect();
    }
    value
}

fn tally(tally: Tally) -> Value {
    json!({"cases": tally.cases, "right": tally.right, "harmful": tally.harmful})
}

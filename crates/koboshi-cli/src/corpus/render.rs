//! Prints what a corpus check showed.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anstream::stdout;
use serde::Serialize;

use super::score::Score;
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
    if reports.iter().flat_map(FileReport::passes).count() > 1 {
        line(out, "total of all passes above", total(reports))?;
    }
    Ok(())
}

fn line(out: &mut impl Write, name: &str, tally: Tally) -> io::Result<()> {
    writeln!(
        out,
        "{:6.2} %  {}/{} right, {} harmful  {name}",
        tally.percent(),
        tally.right,
        tally.cases,
        tally.harmful
    )
}

/// The families with mistakes, the confusions, and on demand every wrong case.
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
            writeln!(
                out,
                "          {}: expected {}, got {} by {}{harmful}",
                miss.id, miss.score.expected, miss.score.got, miss.score.rule
            )?;
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

/// Every pass counts: a sum without the bad ones would be wrong.
fn total(reports: &[FileReport]) -> Tally {
    reports.iter().flat_map(FileReport::passes).fold(Tally::default(), |mut all, pass| {
        all.join(pass.total);
        all
    })
}

/// The whole check as one object.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    total: Tally,
    files: Vec<FileDocument<'a>>,
}

#[derive(Serialize)]
struct FileDocument<'a> {
    file: &'a str,
    form: &'static str,
    #[serde(flatten)]
    measure: MeasureDocument<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    without_flag: Option<MeasureDocument<'a>>,
}

#[derive(Serialize)]
struct MeasureDocument<'a> {
    #[serde(flatten)]
    total: Tally,
    families: &'a BTreeMap<String, Tally>,
    confusion: Vec<Confusion<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failures: Option<Vec<FailureDocument<'a>>>,
}

#[derive(Serialize)]
struct Confusion<'a> {
    expected: &'a str,
    got: &'a str,
    count: usize,
}

#[derive(Serialize)]
struct FailureDocument<'a> {
    id: &'a str,
    family: &'a str,
    #[serde(flatten)]
    score: &'a Score,
}

fn document(reports: &[FileReport], failures: bool) -> Document<'_> {
    let file = |report| file(report, failures);
    Document { total: total(reports), files: reports.iter().map(file).collect() }
}

fn file(report: &FileReport, failures: bool) -> FileDocument<'_> {
    FileDocument {
        file: &report.file,
        form: report.form.name(),
        measure: measure(&report.measure, failures),
        without_flag: report.without_flag.as_ref().map(|without| measure(without, failures)),
    }
}

fn measure(measure: &Measure, failures: bool) -> MeasureDocument<'_> {
    let confusion = confusion(measure).into_iter();
    let misses = measure.misses.iter();
    MeasureDocument {
        total: measure.total,
        families: &measure.families,
        confusion: confusion.map(|((expected, got), count)| Confusion { expected, got, count }).collect(),
        failures: failures.then(|| {
            misses
                .map(|miss| FailureDocument { id: &miss.id, family: &miss.family, score: &miss.score })
                .collect()
        }),
    }
}

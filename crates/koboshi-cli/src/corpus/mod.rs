//! `koboshi corpus check`: measures the classifiers against labelled cases. `koboshi corpus add` files new ones.
//!
//! Each file holds one form of case, which follows from its fields. Tool errors and sequences are measured in two passes: with the
//! error flag that some wire formats carry, and without it. The total counts every pass. A *harmful* answer is wrong in the way that
//! hurts: a failure taken for health, or health for a failure.

mod add;
mod calls;
mod case;
mod render;
mod score;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

use koboshi::classify::Classifier;
use serde::Serialize;

pub(crate) use self::add::{REASONS, run as add};
pub(crate) use self::case::Case;
use self::case::Form;
use self::score::Score;
pub(crate) use self::score::score;
use crate::args::CheckArgs;
use crate::{Exit, Failure, clock, rules};

/// Cases, right answers, harmful answers.
#[derive(Debug, Default, Clone, Copy, Serialize)]
struct Tally {
    cases: usize,
    right: usize,
    harmful: usize,
}

impl Tally {
    fn add(&mut self, score: &Score) {
        self.cases += 1;
        self.right += usize::from(score.right);
        self.harmful += usize::from(score.harmful);
    }

    fn join(&mut self, other: Self) {
        self.cases += other.cases;
        self.right += other.right;
        self.harmful += other.harmful;
    }

    #[expect(clippy::cast_precision_loss, reason = "a percentage of a few thousand cases")]
    fn percent(self) -> f64 {
        if self.cases == 0 { 100.0 } else { self.right as f64 * 100.0 / self.cases as f64 }
    }
}

/// A case that was answered wrong.
#[derive(Debug)]
struct WrongCase {
    id: String,
    family: String,
    score: Score,
}

/// One way of measuring one file.
#[derive(Debug, Default)]
struct Measure {
    total: Tally,
    families: BTreeMap<String, Tally>,
    misses: Vec<WrongCase>,
}

impl FileReport {
    /// The passes over this file.
    fn passes(&self) -> impl Iterator<Item = &Measure> {
        std::iter::once(&self.measure).chain(&self.without_flag)
    }
}

/// What one file showed.
#[derive(Debug)]
struct FileReport {
    file: String,
    form: Form,
    measure: Measure,
    /// Tool errors once more, without the flag.
    without_flag: Option<Measure>,
}

pub(crate) fn run(args: &CheckArgs) -> Result<Exit, Failure> {
    let classifier = Classifier::new(rules::load(&args.rules.files)?, clock::zones());
    let reports = args.files.iter().map(|file| check(&classifier, file)).collect::<Result<Vec<_>, _>>()?;
    render::print(&reports, args)?;
    let low = reports.iter().flat_map(FileReport::passes).any(|pass| pass.total.percent() < args.min);
    Ok(if low { Exit::Found } else { Exit::Good })
}

fn check(classifier: &Classifier, path: &Path) -> Result<FileReport, Failure> {
    let name = path.display().to_string();
    let cases = read(path, &name)?;
    let Some(form) = cases.first().map(|(_, case)| case.form()) else {
        return Err(Failure::new(format!("{name}: there is no case in this file")));
    };
    if let Some((line, case)) = cases.iter().find(|(_, case)| case.form() != form) {
        return Err(Failure::new(format!(
            "{name}:{line}: a case of form {} among {} cases",
            case.form().name(),
            form.name()
        )));
    }
    let measure = measure(classifier, &name, &cases, true)?;
    let flagged = matches!(form, Form::ToolErrors | Form::ToolSequences);
    let without_flag = flagged.then(|| self::measure(classifier, &name, &cases, false)).transpose()?;
    Ok(FileReport { file: name, form, measure, without_flag })
}

fn read(path: &Path, name: &str) -> Result<Vec<(usize, Case)>, Failure> {
    let file =
        std::fs::File::open(path).map_err(|error| Failure::new(format!("cannot read {name}: {error}")))?;
    let mut cases = Vec::new();
    for (line, number) in BufReader::new(file).lines().zip(1..) {
        let line = line.map_err(|error| Failure::new(format!("{name}:{number}: {error}")))?;
        if !line.trim().is_empty() {
            let case =
                Case::read(&line).map_err(|error| Failure::new(format!("{name}:{number}: {error}")))?;
            cases.push((number, case));
        }
    }
    Ok(cases)
}

fn measure(
    classifier: &Classifier,
    name: &str,
    cases: &[(usize, Case)],
    with_flag: bool,
) -> Result<Measure, Failure> {
    let mut measure = Measure::default();
    for (line, case) in cases {
        let score = score(classifier, case, with_flag)
            .map_err(|error| Failure::new(format!("{name}:{line}: {error}")))?;
        let family = case.family();
        measure.total.add(&score);
        measure.families.entry(family.clone()).or_default().add(&score);
        if !score.right {
            measure.misses.push(WrongCase { id: case.id().to_owned(), family, score });
        }
    }
    Ok(measure)
}

//! `koboshi corpus check`: measures the classifiers against labelled cases.

mod case;
mod score;

use koboshi::classify::Classifier;

pub(crate) fn quick(classifier: &Classifier, files: &[String]) {
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        for flag in [true, false] {
            let (mut n, mut ok, mut harm) = (0, 0, 0);
            let mut form = None;
            for line in text.lines() {
                let case = case::Case::read(line).unwrap();
                form = Some(case.form());
                let s = score::score(classifier, &case, flag).unwrap();
                n += 1;
                ok += usize::from(s.right);
                harm += usize::from(s.harmful);
                if !s.right { println!("{} [{}] want {} got {}  rule {}", case.id(), flag, s.expected, s.got, s.rule); }
            }
            println!("{file} flag={flag}: {ok}/{n} = {:.1}% harmful {harm}", 100.0 * ok as f64 / n as f64);
            if form != Some(case::Form::ToolErrors) { break; }
        }
    }
}

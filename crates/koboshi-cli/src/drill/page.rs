//! A drill as a page that needs nothing else: no script, no style sheet, no picture of another host.

use std::fmt::Write;

use koboshi_report::phrase::Lang;

use super::render::{seconds, seen};
use super::report::Report;
use crate::say::Say;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
color-scheme:light dark}table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem;\
border-bottom:1px solid #8884;vertical-align:top}.bad{color:#c22;font-weight:600}.good{color:#282}\
@media(prefers-color-scheme:dark){.bad{color:#f88}.good{color:#8d8}}";

pub(super) fn page(say: &Say, report: &Report) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut page, say, report);
    page
}

fn write(page: &mut String, say: &Say, report: &Report) -> std::fmt::Result {
    let text = |id: &str| escaped(&say.text(id, &[]));
    let (title, lang) = (text("drill-page-title"), if say.lang == Lang::Ja { "ja" } else { "en" });
    let numbers = [report.good, report.total].map(|number| number.to_string());
    let (score, [good, total]) = (format!("{:.1}", report.score), &numbers);
    let score = escaped(&say.text("drill-score", &[("score", &score), ("good", good), ("total", total)]));
    writeln!(
        page,
        "<!doctype html>\n<html lang=\"{lang}\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         <h1>{title}</h1>\n<p><strong>{score}</strong></p>\n<p>{}</p>",
        text("drill-virtual")
    )?;
    if !report.advice.is_empty() {
        writeln!(page, "<h2>{}</h2>\n<ul>", text("drill-better"))?;
        for advice in &report.advice {
            let (key, why) = (escaped(&advice.key), escaped(&advice.text));
            writeln!(
                page,
                "<li><code>{key}</code>: {why}<br><small>{}</small></li>",
                advice.scenarios.join(", ")
            )?;
        }
        writeln!(page, "</ul>")?;
    }
    for route in &report.routes {
        writeln!(page, "<h2>{}</h2>\n<p>{}</p>", escaped(&route.name), escaped(&route.targets.join(" → ")))?;
        writeln!(
            page,
            "<table>\n<tr><th>{}</th><th>{}</th><th>{}</th><th>{}</th></tr>",
            text("drill-head-scenario"),
            text("drill-head-client"),
            text("drill-head-after"),
            text("drill-head-calls")
        )?;
        for one in report.scenarios.iter().filter(|one| one.route == route.name) {
            let (mark, class) = if one.good { ("✓", "good") } else { ("✗", "bad") };
            writeln!(
                page,
                "<tr><td><span class=\"{class}\">{mark}</span> {}</td><td>{}<br><small>{}</small></td><td>{} s</td><td>{}</td></tr>",
                escaped(&one.title),
                escaped(&seen(say, one)),
                escaped(one.message.as_deref().unwrap_or_default()),
                seconds(one.after_seconds),
                one.upstream_calls
            )?;
        }
        writeln!(page, "</table>")?;
    }
    writeln!(page, "</html>")
}

/// Names come from the config, and messages repeat them.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_the_config_is_no_markup() {
        assert_eq!(escaped("<b a=\"1\">&"), "&lt;b a=&quot;1&quot;&gt;&amp;");
    }
}

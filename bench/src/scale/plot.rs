//! The figures as a picture: wasted calls and the peak after a quota, over the number of gateways, both axes logarithmic.

use std::fmt::Write as _;

use crate::node::Policy;
use crate::scenario::Scenario;
use crate::world::Toll;

const PANEL: (f64, f64) = (380.0, 260.0);
const COLOURS: [&str; 4] = ["#c0392b", "#2980b9", "#7f8c8d", "#8e44ad"];

type Row = (Scenario, Policy, usize, Toll);

pub fn draw(rows: &[Row]) -> String {
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 380\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"960\" height=\"380\" fill=\"#ffffff\"/>\n",
    );
    panel(&mut svg, 60.0, "Wasted calls, 5-hour quota", rows, |toll| toll.wasted);
    panel(&mut svg, 540.0, "Peak of calls in one second after the quota", rows, |toll| toll.peak);
    for (nth, policy) in Policy::ALL.iter().enumerate() {
        let x = 80.0 + 220.0 * nth as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"352\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{}\" y=\"363\">{}</text>",
            COLOURS[nth],
            x + 18.0,
            policy.name()
        );
    }
    svg + "</svg>\n"
}

fn panel(svg: &mut String, left: f64, title: &str, rows: &[Row], of: impl Fn(&Toll) -> u64) {
    let rows: Vec<_> = rows.iter().filter(|row| row.0 == Scenario::Quota).collect();
    let high = rows.iter().map(|row| of(&row.3)).max().unwrap_or(1).max(10) as f64;
    let decades = high.log10().ceil();
    let bottom = 40.0 + PANEL.1;
    let x = |nodes: usize| left + (nodes as f64).log10() / 3.0 * PANEL.0;
    let y = |value: u64| bottom - (value.max(1) as f64).log10() / decades * PANEL.1;
    let _ = writeln!(svg, "<text x=\"{left}\" y=\"24\" font-size=\"14\">{title}</text>");
    for decade in 0..=decades as u32 {
        let value = 10_u64.pow(decade);
        let at = y(value);
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
            left + PANEL.0,
            left - 6.0,
            at + 4.0
        );
    }
    for nodes in [1, 10, 100, 1_000] {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{nodes}</text>",
            x(nodes),
            bottom + 18.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">gateways</text>",
        left + PANEL.0 / 2.0,
        bottom + 36.0
    );
    for (nth, policy) in Policy::ALL.iter().enumerate() {
        let points: Vec<String> = rows
            .iter()
            .filter(|row| row.1 == *policy)
            .map(|row| format!("{:.1},{:.1}", x(row.2), y(of(&row.3))))
            .collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>",
            points.join(" "),
            COLOURS[nth]
        );
    }
}

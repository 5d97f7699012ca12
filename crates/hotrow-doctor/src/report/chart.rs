//! The average number of sessions by class over time, as text for a terminal and as a picture. A second picture has wait
//! events.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::diagnosis::load::Class;
use crate::report::Sessions;
use crate::report::escape;

/// Rows of the chart in a terminal.
const ROWS: usize = 8;
/// Colors of the most frequent wait events. The others share one.
const WAIT_COLORS: [&str; 7] = ["#c0392b", "#2980b9", "#27ae60", "#e67e22", "#8e44ad", "#16a085", "#f1c40f"];
const OTHER_WAITS: (&str, &str) = ("all others", "#7f8c8d");

type Series = [BTreeMap<&'static str, f64>];

fn letter(class: Class) -> char {
    match class {
        Class::RowLock => '#',
        Class::Lock => 'L',
        Class::Flush => 'f',
        Class::Io => 'i',
        Class::Memory => 'm',
        Class::Cpu => '+',
        Class::Other => 'o',
        Class::Client => '.',
    }
}

fn color(class: Class) -> &'static str {
    match class {
        Class::RowLock => "#c0392b",
        Class::Lock => "#e67e22",
        Class::Flush => "#2980b9",
        Class::Io => "#8e44ad",
        Class::Memory => "#16a085",
        Class::Cpu => "#27ae60",
        Class::Other => "#7f8c8d",
        Class::Client => "#d5d8dc",
    }
}

fn total(point: &BTreeMap<&'static str, f64>) -> f64 {
    point.values().sum()
}

fn top(series: &Series) -> f64 {
    series.iter().map(total).fold(1.0, f64::max).ceil()
}

fn classes(series: &Series) -> Vec<Class> {
    let is_there = |class: &Class| {
        series.iter().any(|point| point.get(class.name()).is_some_and(|value| *value >= 0.05))
    };
    Class::ALL.into_iter().filter(is_there).collect()
}

/// A chart with a column for each point.
pub fn terminal(series: &Series) -> String {
    let (top, classes) = (top(series), classes(series));
    let mut chart = String::new();
    for row in (0..ROWS).rev() {
        // The middle of the row decides what is drawn there.
        let height = top * (row as f64 + 0.5) / ROWS as f64;
        let label = if row == ROWS - 1 { format!("{top:.0}") } else { String::new() };
        let column = |point: &BTreeMap<&'static str, f64>| {
            let mut sum = 0.0;
            let at_height = classes.iter().find(|class| {
                sum += point.get(class.name()).copied().unwrap_or(0.0);
                sum > height
            });
            at_height.map_or(' ', |class| letter(*class))
        };
        let line: String = series.iter().map(column).collect();
        chart.push_str(format!("  {label:>5} |{line}").trim_end());
        chart.push('\n');
    }
    chart.push_str(&format!("      0 +{}\n", "-".repeat(series.len())));
    let legend: Vec<String> =
        classes.iter().map(|class| format!("{} {}", letter(*class), class.name())).collect();
    chart.push_str(&format!("         {}\n", legend.join("   ")));
    chart
}

/// The same as an SVG picture.
pub fn svg(series: &Series, seconds: f64) -> String {
    let classes = classes(series);
    let column = |point: &BTreeMap<&'static str, f64>| {
        classes.iter().map(|class| point.get(class.name()).copied().unwrap_or(0.0)).collect()
    };
    let columns: Vec<Vec<f64>> = series.iter().map(column).collect();
    let legend: Vec<_> = classes.iter().map(|class| (class.name(), color(*class))).collect();
    picture("class", &columns, &legend, seconds)
}

/// An SVG picture of the sessions by wait event over time.
pub fn waits_svg(sessions: &Sessions, seconds: f64) -> String {
    let mut waits: Vec<(&String, &f64)> = sessions.by_wait.iter().collect();
    waits.sort_by(|left, right| right.1.total_cmp(left.1));
    let names = waits.iter().map(|(name, _)| name.as_str());
    let mut legend: Vec<(&str, &str)> = names.zip(WAIT_COLORS).collect();
    let column = |point: &BTreeMap<String, f64>| {
        let mut column: Vec<f64> =
            legend.iter().map(|(name, _)| point.get(*name).copied().unwrap_or(0.0)).collect();
        let others = point.values().sum::<f64>() - column.iter().sum::<f64>();
        column.push(others.max(0.0));
        column
    };
    let columns: Vec<Vec<f64>> = sessions.by_wait_over_time.iter().map(column).collect();
    if waits.len() > legend.len() {
        legend.push(OTHER_WAITS);
    }
    picture("wait event", &columns, &legend, seconds)
}

/// Columns of parts in the order of the legend, from below.
fn picture(what: &str, columns: &[Vec<f64>], legend: &[(&str, &str)], seconds: f64) -> String {
    let top = columns.iter().map(|parts| parts.iter().sum()).fold(1.0, f64::max).ceil();
    let (width, height) = (760.0, 220.0);
    let step = width / columns.len().max(1) as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 840 290\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\
         <title>Average number of sessions by {what} over {seconds:.0} seconds</title>"
    );
    for (place, parts) in columns.iter().enumerate() {
        let mut below = 0.0;
        for (value, (_, color)) in parts.iter().zip(legend) {
            let (size, y) = (height * value / top, 10.0 + height * (1.0 - (below + value) / top));
            below += value;
            if size > 0.0 {
                let x = 50.0 + step * place as f64;
                let _ = write!(
                    svg,
                    "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{step:.1}\" height=\"{size:.1}\" fill=\"{color}\"/>"
                );
            }
        }
    }
    let _ = write!(
        svg,
        "<path d=\"M50 10V230H810\" fill=\"none\" stroke=\"#555\"/><text x=\"44\" y=\"18\" text-anchor=\"end\">{top:.0}</text>\
         <text x=\"44\" y=\"232\" text-anchor=\"end\">0</text><text x=\"810\" y=\"246\" text-anchor=\"end\">{seconds:.0} s</text>"
    );
    for (place, (name, color)) in legend.iter().enumerate() {
        let (x, y) = (50 + 190 * (place % 4), 258 + 18 * (place / 4));
        let _ = write!(
            svg,
            "<rect x=\"{x}\" y=\"{}\" width=\"11\" height=\"11\" fill=\"{color}\"/><text x=\"{}\" y=\"{y}\">{}</text>",
            y - 10,
            x + 16,
            escape(name)
        );
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_shows_the_classes_from_below() {
        let point = BTreeMap::from([("row lock", 6.0), ("CPU", 2.0)]);
        let chart = terminal(&[point, BTreeMap::new()]);
        let columns: String =
            chart.lines().take(ROWS).filter_map(|line| line.split_once('|')?.1.chars().next()).collect();
        assert_eq!(columns, "++######");
        assert!(chart.contains("      8 |") || chart.lines().next().unwrap().contains("8 |+"), "{chart}");
        assert!(chart.contains("# row lock   + CPU"), "{chart}");
    }

    #[test]
    fn the_picture_is_well_formed() {
        let picture = svg(&[BTreeMap::from([("WAL flush", 1.5), ("idle in transaction", 3.0)])], 10.0);
        let document = roxmltree::Document::parse(&picture).unwrap();
        assert_eq!(document.descendants().filter(|node| node.has_tag_name("rect")).count(), 4);
    }

    #[test]
    fn the_most_frequent_wait_events_have_colors_and_the_others_share_one() {
        let point: BTreeMap<String, f64> =
            (1..=9).map(|number| (format!("Extension:<{number}>"), f64::from(number))).collect();
        let sessions = Sessions {
            total: 45.0,
            active: 45.0,
            by_wait: point.clone(),
            over_time: Vec::new(),
            by_wait_over_time: vec![point, BTreeMap::new()],
        };
        let picture = waits_svg(&sessions, 10.0);
        let document = roxmltree::Document::parse(&picture).unwrap();
        let texts: Vec<_> = document.descendants().filter_map(|node| node.text()).collect();
        assert!(texts.contains(&"Extension:<9>") && texts.contains(&"Extension:<3>"), "{texts:?}");
        assert!(!texts.contains(&"Extension:<2>"), "{texts:?}");
        let gray = document.descendants().filter(|node| node.attribute("fill") == Some(OTHER_WAITS.1));
        let heights: Vec<_> = gray.filter_map(|node| node.attribute("height")).collect();
        assert_eq!(heights, ["14.7", "11"], "3 of 45 sessions, and the legend");
    }
}

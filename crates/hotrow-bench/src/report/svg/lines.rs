//! The panel of a scenario with several numbers of clients: throughput by clients, a line per technique.

use super::super::numbers::whole;
use super::canvas::{Canvas, Marker};
use super::scale::LogScale;
use super::{BLUE, GREEN, GREY, LEFT, OCHRE, PURPLE, RIGHT, VERMILION, WIDTH};
use crate::results::{ScenarioResult, TechniqueResult};
use crate::scenario::Through;

pub(super) const HEIGHT: f64 = 420.0;
const BELOW: f64 = 60.0;
const AXIS: f64 = 90.0;
const MOST_TICKS: usize = 14;
const LABEL_GAP: f64 = 18.0;

/// How a line looks: never by colour alone.
struct Look {
    colour: &'static str,
    marker: Marker,
    width: f64,
    dashes: &'static str,
}

/// A line's name and where it would best stand.
struct Label<'a> {
    name: &'a str,
    colour: &'static str,
    last: (f64, f64),
    y: f64,
}

pub(super) fn draw(canvas: &mut Canvas, scenario: &ScenarioResult, top: f64) {
    let clients = scenario.clients();
    let (bottom, right) = (top + HEIGHT - BELOW, WIDTH - RIGHT);
    let figures = scenario
        .techniques
        .iter()
        .flat_map(|technique| clients.iter().filter_map(|count| technique.figures(*count)));
    let extremes = figures.flat_map(|figures| [figures.per_second.min, figures.per_second.max]);
    let Some(scale) = LogScale::around(extremes, bottom, top + 10.0) else {
        canvas.text(LEFT, top + 20.0, "start", GREY, "no figures");
        return;
    };
    draw_axes(canvas, &scale, &clients, bottom);
    let mut labels = Vec::new();
    let mut others = 0;
    for technique in &scenario.techniques {
        let look = look(technique, &mut others);
        labels.extend(draw_line(canvas, technique, &look, &clients, &scale));
    }
    spread_out(&mut labels);
    for label in labels {
        if (label.y - label.last.1).abs() > 1.0 || label.last.0 < right - 1.0 {
            canvas.line((label.last.0 + 7.0, label.last.1), (right + 10.0, label.y), "#BBBBBB", 1.0);
        }
        canvas.text(right + 14.0, label.y + 4.5, "start", label.colour, label.name);
    }
}

fn draw_axes(canvas: &mut Canvas, scale: &LogScale, clients: &[u32], bottom: f64) {
    for tick in scale.ticks(MOST_TICKS) {
        let y = scale.at(tick);
        canvas.line((AXIS, y), (WIDTH - RIGHT, y), "#E2E2E2", 1.0);
        canvas.text(AXIS - 8.0, y + 4.5, "end", GREY, &whole(tick));
    }
    for (position, count) in clients.iter().enumerate() {
        canvas.text(x_of(position, clients.len()), bottom + 20.0, "middle", GREY, &whole((*count).into()));
    }
    let middle = (AXIS + WIDTH - RIGHT) / 2.0;
    canvas.text(
        middle,
        bottom + 42.0,
        "middle",
        GREY,
        "clients (done per second, logarithmic; bars: least to most of the rounds)",
    );
}

/// Hotrow stands out; the cheapest request is dashed, because it does no work; the others take turns.
fn look(technique: &TechniqueResult, others: &mut usize) -> Look {
    const OTHERS: [(&str, Marker); 4] = [
        (BLUE, Marker::Square),
        (OCHRE, Marker::Triangle),
        (GREEN, Marker::Diamond),
        (PURPLE, Marker::Cross),
    ];
    if technique.through == Through::Hotrow {
        return Look { colour: VERMILION, marker: Marker::Circle, width: 3.0, dashes: "" };
    }
    if technique.name.starts_with("select-1") {
        return Look { colour: GREY, marker: Marker::Cross, width: 1.5, dashes: "6 4" };
    }
    let (colour, marker) = OTHERS[*others % OTHERS.len()];
    *others += 1;
    Look { colour, marker, width: 2.0, dashes: "" }
}

fn draw_line<'a>(
    canvas: &mut Canvas,
    technique: &'a TechniqueResult,
    look: &Look,
    clients: &[u32],
    scale: &LogScale,
) -> Option<Label<'a>> {
    let mut points = Vec::new();
    for (position, count) in clients.iter().enumerate() {
        if let Some(figures) = technique.figures(*count) {
            let x = x_of(position, clients.len());
            let spread = figures.per_second;
            canvas.line((x, scale.at(spread.min)), (x, scale.at(spread.max)), look.colour, 1.5);
            points.push((x, scale.at(spread.median)));
        }
    }
    canvas.path(&points, look.colour, look.width, look.dashes);
    for point in &points {
        canvas.mark(*point, look.marker, look.colour);
    }
    let last = *points.last()?;
    Some(Label { name: technique.name, colour: look.colour, last, y: last.1 })
}

/// Client counts stand at equal distances, with half of one at either end.
fn x_of(position: usize, positions: usize) -> f64 {
    let step = (WIDTH - RIGHT - AXIS - 60.0) / (positions.max(2) - 1) as f64;
    AXIS + 30.0 + position as f64 * step
}

/// Moves labels that would cover each other apart, as little as needed.
fn spread_out(labels: &mut [Label<'_>]) {
    labels.sort_by(|one, other| one.y.total_cmp(&other.y));
    for _ in 0..labels.len() {
        for upper in 1..labels.len() {
            let overlap = LABEL_GAP - (labels[upper].y - labels[upper - 1].y);
            if overlap > 0.0 {
                labels[upper - 1].y -= overlap / 2.0;
                labels[upper].y += overlap / 2.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LABEL_GAP, Label, spread_out};

    #[test]
    fn labels_of_lines_that_end_together_stay_readable() {
        let label = |y| Label { name: "", colour: "", last: (0.0, y), y };
        let mut labels = vec![label(100.0), label(300.0), label(101.0), label(102.0)];
        spread_out(&mut labels);
        for pair in labels.windows(2) {
            assert!(pair[1].y - pair[0].y > LABEL_GAP * 0.8, "{} {}", pair[0].y, pair[1].y);
        }
        assert!((labels[3].y - 300.0).abs() < 0.01, "a label with room enough stays where it was");
    }
}

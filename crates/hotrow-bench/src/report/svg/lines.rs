//! The panel of a scenario with several numbers of clients: one line per technique for its throughput.

use super::super::numbers::whole;
use super::canvas::Canvas;
use super::look::{Colour, Marker, colour_of, marker_of, title_of};
use super::scale::LogScale;
use super::{LEFT, RIGHT, WIDTH};
use crate::results::{ScenarioResult, TechniqueResult};

pub(super) const HEIGHT: f64 = 436.0;
const BELOW: f64 = 76.0;
const AXIS: f64 = 90.0;
const MOST_TICKS: usize = 14;
const LABEL_GAP: f64 = 18.0;

/// The look of a line, which differs from others in more than its colour.
struct Look {
    colour: Colour,
    marker: Marker,
    width: f64,
    dashes: &'static str,
}

/// A line's title and its best position.
struct Label {
    title: String,
    colour: Colour,
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
        canvas.text(LEFT, top + 20.0, "start", Colour::GREY, "no figures");
        return;
    };
    draw_axes(canvas, &scale, &clients, bottom);
    let mut labels = Vec::new();
    for (position, technique) in scenario.techniques.iter().enumerate() {
        let look = look(technique.name, position);
        labels.extend(draw_line(canvas, technique, &look, &clients, &scale));
    }
    spread_out(&mut labels);
    for label in labels {
        if (label.y - label.last.1).abs() > 1.0 || label.last.0 < right - 1.0 {
            canvas.line((label.last.0 + 7.0, label.last.1), (right + 10.0, label.y), Colour::LEADER, 1.0);
        }
        canvas.text(right + 14.0, label.y + 4.5, "start", label.colour, &label.title);
    }
}

fn draw_axes(canvas: &mut Canvas, scale: &LogScale, clients: &[u32], bottom: f64) {
    for tick in scale.ticks(MOST_TICKS) {
        let y = scale.at(tick);
        canvas.line((AXIS, y), (WIDTH - RIGHT, y), Colour::GRID, 1.0);
        canvas.text(AXIS - 8.0, y + 4.5, "end", Colour::GREY, &whole(tick));
    }
    for (position, count) in clients.iter().enumerate() {
        canvas.text(
            x_of(position, clients.len()),
            bottom + 20.0,
            "middle",
            Colour::GREY,
            &whole((*count).into()),
        );
    }
    let middle = (AXIS + WIDTH - RIGHT) / 2.0;
    canvas.text(middle, bottom + 40.0, "middle", Colour::GREY, "clients");
    canvas.text(
        AXIS,
        bottom + 62.0,
        "start",
        Colour::GREY,
        "vertical bars: lowest to highest round; logarithmic scale",
    );
    canvas.text_upwards(
        22.0,
        (bottom + 10.0 + bottom - HEIGHT + BELOW) / 2.0,
        Colour::GREY,
        "done per second",
    );
}

/// Hotrow has a thick line. `select 1` is dashed, because it does no work.
fn look(technique: &str, position: usize) -> Look {
    let (width, dashes) = match technique {
        "hotrow" => (3.0, ""),
        name if name.starts_with("select-1") => (1.5, "6 4"),
        _ => (2.0, ""),
    };
    Look { colour: colour_of(technique), marker: marker_of(technique, position), width, dashes }
}

fn draw_line(
    canvas: &mut Canvas,
    technique: &TechniqueResult,
    look: &Look,
    clients: &[u32],
    scale: &LogScale,
) -> Option<Label> {
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
    Some(Label { title: title_of(technique.name), colour: look.colour, last, y: last.1 })
}

/// The positions of the numbers of clients, at equal distances.
fn x_of(position: usize, positions: usize) -> f64 {
    let step = (WIDTH - RIGHT - AXIS - 60.0) / (positions.max(2) - 1) as f64;
    AXIS + 30.0 + position as f64 * step
}

/// Moves overlapping labels apart.
fn spread_out(labels: &mut [Label]) {
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
    use super::{Colour, LABEL_GAP, Label, spread_out};

    #[test]
    fn labels_of_lines_that_end_together_stay_readable() {
        let label = |y| Label { title: String::new(), colour: Colour::BLUE, last: (0.0, y), y };
        let mut labels = vec![label(100.0), label(300.0), label(101.0), label(102.0)];
        spread_out(&mut labels);
        for pair in labels.windows(2) {
            assert!(pair[1].y - pair[0].y > LABEL_GAP * 0.8, "{} {}", pair[0].y, pair[1].y);
        }
        assert!((labels[3].y - 300.0).abs() < 0.01, "a label without overlap keeps its position");
    }
}

//! The panel of a latency scenario: p50, p99 and p99.9 of each technique on one logarithmic axis.

use super::super::numbers::{counted, whole};
use super::canvas::Canvas;
use super::look::{Colour, Marker, colour_of, title_of};
use super::scale::LogScale;
use super::{LEFT, RIGHT, WIDTH};
use crate::results::{Figures, ScenarioResult, TechniqueResult};

const ROW: f64 = 44.0;
const MOST_TICKS: usize = 9;
const BELOW: f64 = 76.0;

pub(super) fn height(scenario: &ScenarioResult) -> f64 {
    ROW * rows(scenario).len() as f64 + BELOW
}

pub(super) fn draw(canvas: &mut Canvas, scenario: &ScenarioResult, top: f64) {
    let rows = rows(scenario);
    let bottom = top + ROW * rows.len() as f64;
    let latencies = rows.iter().filter_map(|(_, _, figures)| marks(figures.as_ref()?));
    let extremes = latencies.flatten().map(|(_, latency_us)| latency_us as f64);
    let Some(scale) = LogScale::around(extremes, LEFT + 20.0, WIDTH - RIGHT + 60.0) else {
        canvas.text(LEFT, top + 20.0, "start", Colour::GREY, "no figures");
        return;
    };
    for tick in scale.ticks(MOST_TICKS) {
        canvas.line((scale.at(tick), top), (scale.at(tick), bottom), Colour::GRID, 1.0);
        canvas.text(scale.at(tick), bottom + 18.0, "middle", Colour::GREY, &(tick / 1000.0).to_string());
    }
    for (row, (technique, clients, figures)) in rows.iter().enumerate() {
        let y = top + (row as f64 + 0.5) * ROW;
        let colour = colour_of(technique.name);
        canvas.text(LEFT - 10.0, y - 2.0, "end", colour, &title_of(technique.name));
        let Some(figures) = figures else {
            canvas.text(LEFT + 6.0, y + 4.0, "start", Colour::GREY, "no figure");
            continue;
        };
        canvas.text(LEFT - 10.0, y + 14.0, "end", Colour::GREY, &circumstances(*clients, figures));
        let marks = marks(figures)
            .into_iter()
            .flatten()
            .map(|(marker, latency)| (marker, (scale.at(latency as f64), y)));
        let marks: Vec<_> = marks.collect();
        canvas.path(&marks.iter().map(|(_, point)| *point).collect::<Vec<_>>(), colour, 1.5, "");
        for (marker, point) in marks {
            canvas.mark(point, marker, colour);
        }
    }
    let axis = "time from due to answered, in ms (logarithmic)";
    canvas.text((LEFT + WIDTH - RIGHT) / 2.0, bottom + 38.0, "middle", Colour::GREY, axis);
    let legend = "circle: p50, diamond: p99, square: p99.9";
    canvas.text(LEFT, bottom + 58.0, "start", Colour::GREY, legend);
}

type Row<'a> = (&'a TechniqueResult, u32, Option<&'a Figures>);

fn rows(scenario: &ScenarioResult) -> Vec<Row<'_>> {
    let clients = scenario.clients();
    let row =
        |technique, count| -> Row<'_> { (technique, count, TechniqueResult::figures(technique, count)) };
    clients
        .iter()
        .flat_map(|count| scenario.techniques.iter().map(move |technique| row(technique, *count)))
        .collect()
}

fn marks(figures: &Figures) -> Option<[(Marker, u64); 3]> {
    let latency = figures.latency?;
    Some([
        (Marker::Circle, latency.p50_us),
        (Marker::Diamond, latency.p99_us),
        (Marker::Square, latency.p999_us),
    ])
}

fn circumstances(clients: u32, figures: &Figures) -> String {
    match figures.due_per_second {
        Some(due) => format!("{}/s, {}", whole(due.into()), counted(clients, "client")),
        None => counted(clients, "client"),
    }
}

//! The panel of a scenario with one number of clients: one bar per technique for its throughput.

use super::super::numbers::{counted, whole};
use super::canvas::Canvas;
use super::look::{Colour, colour_of, title_of};
use super::{LEFT, RIGHT, WIDTH};
use crate::results::ScenarioResult;

const ROW: f64 = 34.0;
const BELOW: f64 = 56.0;

pub(super) fn height(scenario: &ScenarioResult) -> f64 {
    ROW * scenario.techniques.len() as f64 + BELOW
}

pub(super) fn draw(canvas: &mut Canvas, scenario: &ScenarioResult, top: f64) {
    let Some(clients) = scenario.clients().first().copied() else { return };
    let all = || scenario.techniques.iter().map(|technique| (technique, technique.figures(clients)));
    let most =
        all().filter_map(|(_, figures)| Some(figures?.per_second.max)).fold(f64::MIN_POSITIVE, f64::max);
    let length = |per_second: f64| per_second / most * (WIDTH - LEFT - RIGHT);
    for (row, (technique, figures)) in all().enumerate() {
        let y = top + row as f64 * ROW;
        let colour = colour_of(technique.name);
        canvas.text(LEFT - 10.0, y + 17.0, "end", colour, &title_of(technique.name));
        let Some(figures) = figures else {
            canvas.text(LEFT + 6.0, y + 17.0, "start", Colour::GREY, "no figure");
            continue;
        };
        let spread = figures.per_second;
        canvas.rectangle((LEFT, y), (length(spread.median), 24.0), colour);
        let middle = y + 12.0;
        canvas.line(
            (LEFT + length(spread.min), middle),
            (LEFT + length(spread.max), middle),
            Colour::INK,
            1.5,
        );
        let end = LEFT + length(spread.max) + 8.0;
        canvas.text(end, y + 17.0, "start", colour, &format!("{}/s", whole(spread.median)));
    }
    let bottom = top + height(scenario);
    canvas.text((LEFT + WIDTH - RIGHT) / 2.0, bottom - 40.0, "middle", Colour::GREY, "done per second");
    let note = format!("{}; thin line: lowest to highest round", counted(clients, "client"));
    canvas.text(LEFT, bottom - 20.0, "start", Colour::GREY, &note);
}

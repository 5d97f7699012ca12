//! The report as a picture: one panel per scenario, one below the other; computes no figures.

mod bars;
mod canvas;
mod dots;
mod lines;
mod scale;

use crate::results::{Report, ScenarioResult};
use crate::scenario::{Figure, Through};
use canvas::Canvas;

/// Colours that people with any kind of colour vision can tell apart (Okabe and Ito), dark enough to be read as text on white.
const BLUE: &str = "#0072B2";
const VERMILION: &str = "#C44E00";
const GREEN: &str = "#00795A";
const PURPLE: &str = "#A8588A";
const OCHRE: &str = "#A87400";
const GREY: &str = "#5A5A5A";

/// The width of the picture, and what a panel leaves free at its sides.
const WIDTH: f64 = 900.0;
const LEFT: f64 = 170.0;
const RIGHT: f64 = 150.0;
const TITLE: f64 = 64.0;

/// The text of plot.svg.
pub(super) fn render(report: &Report) -> String {
    let panels: Vec<_> = report.scenarios.iter().map(|scenario| (scenario, kind(scenario))).collect();
    let height: f64 = panels.iter().map(|(scenario, kind)| TITLE + kind.height(scenario)).sum();
    let mut canvas = Canvas::new(WIDTH, height.max(TITLE));
    let mut top = 0.0;
    for (scenario, kind) in panels {
        canvas.title(20.0, top + 28.0, scenario.name);
        canvas.text(20.0, top + 48.0, "start", GREY, &scenario.shows.replace('`', ""));
        top += TITLE;
        kind.draw(&mut canvas, scenario, top);
        top += kind.height(scenario);
    }
    canvas.finish()
}

/// How a scenario is drawn.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Lines,
    Bars,
    Dots,
}

fn kind(scenario: &ScenarioResult) -> Kind {
    match scenario.figure {
        Figure::Latency => Kind::Dots,
        Figure::Throughput if scenario.clients().len() > 1 => Kind::Lines,
        Figure::Throughput => Kind::Bars,
    }
}

impl Kind {
    fn height(self, scenario: &ScenarioResult) -> f64 {
        match self {
            Self::Lines => lines::HEIGHT,
            Self::Bars => bars::height(scenario),
            Self::Dots => dots::height(scenario),
        }
    }

    fn draw(self, canvas: &mut Canvas, scenario: &ScenarioResult, top: f64) {
        match self {
            Self::Lines => lines::draw(canvas, scenario, top),
            Self::Bars => bars::draw(canvas, scenario, top),
            Self::Dots => dots::draw(canvas, scenario, top),
        }
    }
}

/// What goes through the same program has the same colour.
fn colour_of(through: Through) -> &'static str {
    match through {
        Through::Direct => BLUE,
        Through::Hotrow | Through::HotrowTls | Through::HotrowHttp => VERMILION,
        Through::PgBouncer => GREEN,
        Through::Application => PURPLE,
        Through::Redis => OCHRE,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::render;

    fn texts(svg: &str) -> Vec<String> {
        let document = roxmltree::Document::parse(svg).expect("the picture is well-formed");
        let is_text = |node: &roxmltree::Node| node.has_tag_name("text");
        document.descendants().filter(is_text).filter_map(|node| node.text().map(str::to_owned)).collect()
    }

    #[test]
    fn every_technique_with_a_figure_is_labelled() {
        let texts = texts(&render(&sample::report()));
        for label in ["hot-row", "open-loop", "direct", "try-lock", "hotrow", "select-1", "1", "64"] {
            assert!(texts.iter().any(|text| text == label), "{label} is missing: {texts:?}");
        }
    }

    #[test]
    fn a_single_number_of_clients_becomes_bars_with_their_values() {
        let mut report = sample::report();
        for technique in &mut report.scenarios[0].techniques {
            technique.cells.remove(0);
        }
        let texts = texts(&render(&report));
        assert!(texts.iter().any(|text| text == "75,335/s"), "{texts:?}");
        assert!(texts.iter().any(|text| text == "no figure"), "{texts:?}");
    }

    #[test]
    fn what_is_special_in_xml_does_no_harm() {
        let mut report = sample::report();
        report.scenarios[0].shows = "a < b & \"c\"";
        assert!(texts(&render(&report)).iter().any(|text| text == "a < b & \"c\""));
    }

    #[test]
    fn a_report_without_figures_is_still_a_picture() {
        let mut report = sample::report();
        report.scenarios.iter_mut().for_each(|scenario| scenario.techniques.clear());
        texts(&render(&report));
        report.scenarios.clear();
        texts(&render(&report));
    }
}

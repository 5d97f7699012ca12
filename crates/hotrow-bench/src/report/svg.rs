//! The report as a chart: one panel per scenario, from top to bottom. It computes no figures.

mod bars;
mod canvas;
mod curves;
mod dots;
mod lines;
mod look;
mod scale;
mod timeline;

use crate::results::{Report, ScenarioResult};
use crate::scenario::Figure;
use canvas::Canvas;
pub use curves::Curves;
use look::{Colour, titles_of};
pub use timeline::Timeline;

/// The width of the picture, and the margins of a panel.
const WIDTH: f64 = 900.0;
const LEFT: f64 = 170.0;
const RIGHT: f64 = 150.0;
const TITLE: f64 = 64.0;

/// The text of plot.svg.
pub(super) fn render(report: &Report) -> String {
    let panels: Vec<_> = report.scenarios.iter().map(|scenario| (scenario, panel(scenario))).collect();
    let height: f64 = panels.iter().map(|(_, panel)| TITLE + panel.height).sum();
    let mut canvas = Canvas::new(WIDTH, height.max(TITLE));
    let mut top = 0.0;
    for (scenario, panel) in panels {
        let (title, subtitle) = titles_of(scenario.shows);
        canvas.title(20.0, top + 28.0, &title);
        canvas.text(20.0, top + 48.0, "start", Colour::GREY, &subtitle);
        top += TITLE;
        (panel.draw)(&mut canvas, scenario, top);
        top += panel.height;
    }
    canvas.finish()
}

/// A scenario's panel: its height, and a function that draws it below a certain y.
struct Panel {
    height: f64,
    draw: fn(&mut Canvas, &ScenarioResult, f64),
}

fn panel(scenario: &ScenarioResult) -> Panel {
    match scenario.figure {
        Figure::Latency => Panel { height: dots::height(scenario), draw: dots::draw },
        Figure::Throughput if scenario.clients().len() > 1 => {
            Panel { height: lines::HEIGHT, draw: lines::draw }
        }
        Figure::Throughput => Panel { height: bars::height(scenario), draw: bars::draw },
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
        for label in [
            "Updates of one row",
            "direct",
            "advisory lock, no wait",
            "Hotrow",
            "select 1",
            "1",
            "64",
            "done per second",
        ] {
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
    fn a_dark_background_has_colours_of_its_own() {
        let svg = render(&sample::report());
        assert!(svg.contains("@media (prefers-color-scheme: dark)") && svg.contains(".fill-paper"), "{svg}");
    }

    #[test]
    fn one_client_is_singular_and_units_are_in_the_axis_titles() {
        let mut report = sample::report();
        for technique in &mut report.scenarios[1].techniques {
            technique.cells[0].clients = 1;
        }
        let texts = texts(&render(&report));
        assert!(texts.iter().any(|text| text == "1,422/s, 1 client"), "{texts:?}");
        assert!(
            texts.iter().any(|text| text == "time from due to answered, in ms (logarithmic)"),
            "{texts:?}"
        );
    }

    #[test]
    fn special_characters_of_xml_are_escaped() {
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

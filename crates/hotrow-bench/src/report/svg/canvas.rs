//! The elements of SVG that the panels are made of; knows no scenario and no figure.

use std::fmt::Write;

/// A picture under way. Sizes are in pixels, y grows downwards.
#[derive(Debug)]
pub(super) struct Canvas {
    text: String,
}

/// The sign that marks a point, so that lines can be told apart without their colours.
#[derive(Debug, Clone, Copy)]
pub(super) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
}

impl Canvas {
    pub(super) fn new(width: f64, height: f64) -> Self {
        let mut canvas = Self { text: String::new() };
        canvas.add(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"Helvetica, Arial, DejaVu Sans, sans-serif\" font-size=\"13\">"
        ));
        canvas.rectangle((0.0, 0.0), (width, height), "#FFFFFF");
        canvas
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    pub(super) fn title(&mut self, x: f64, y: f64, text: &str) {
        let text = escaped(text);
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"18\" font-weight=\"bold\" fill=\"#1A1A1A\">{text}</text>"
        ));
    }

    /// `anchor` is the part of the text that stands at x: start, middle or end.
    pub(super) fn text(&mut self, x: f64, y: f64, anchor: &str, colour: &str, text: &str) {
        let text = escaped(text);
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{text}</text>"
        ));
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.add(format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>"
        ));
    }

    /// A line through several points; `dashes` as SVG writes them, or nothing.
    pub(super) fn path(&mut self, points: &[(f64, f64)], colour: &str, width: f64, dashes: &str) {
        let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = points.join(" ");
        self.add(format_args!(
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" \
             stroke-dasharray=\"{dashes}\" stroke-linejoin=\"round\"/>"
        ));
    }

    pub(super) fn rectangle(&mut self, corner: (f64, f64), size: (f64, f64), colour: &str) {
        let ((x, y), (width, height)) = (corner, size);
        self.add(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
        ));
    }

    pub(super) fn mark(&mut self, (x, y): (f64, f64), marker: Marker, colour: &str) {
        let corners: &[(f64, f64)] = match marker {
            Marker::Circle => {
                self.add(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\" fill=\"{colour}\"/>"));
                return;
            }
            Marker::Square => &[(-4.0, -4.0), (4.0, -4.0), (4.0, 4.0), (-4.0, 4.0)],
            Marker::Triangle => &[(0.0, -5.5), (5.0, 4.0), (-5.0, 4.0)],
            Marker::Diamond => &[(0.0, -5.5), (5.5, 0.0), (0.0, 5.5), (-5.5, 0.0)],
            Marker::Cross => {
                self.line((x - 4.0, y - 4.0), (x + 4.0, y + 4.0), colour, 2.5);
                self.line((x - 4.0, y + 4.0), (x + 4.0, y - 4.0), colour, 2.5);
                return;
            }
        };
        let points: Vec<_> = corners.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy)).collect();
        let points = points.join(" ");
        self.add(format_args!("<polygon points=\"{points}\" fill=\"{colour}\"/>"));
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.text, "{element}").expect("text in memory takes whatever is written to it");
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

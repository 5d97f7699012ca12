//! The elements of SVG for the panels.

use super::look::{Colour, Marker};
use std::fmt::Write;

/// An unfinished picture. Sizes are in pixels, y grows downwards.
#[derive(Debug)]
pub(super) struct Canvas {
    text: String,
}

impl Canvas {
    pub(super) fn new(width: f64, height: f64) -> Self {
        let mut canvas = Self { text: String::new() };
        canvas.add(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"Helvetica, Arial, DejaVu Sans, sans-serif\" font-size=\"13\">"
        ));
        canvas.add(format_args!("<style>{}</style>", dark_colours()));
        canvas.rectangle((0.0, 0.0), (width, height), Colour::PAPER);
        canvas
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    pub(super) fn title(&mut self, x: f64, y: f64, text: &str) {
        let text = escaped(text);
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"18\" font-weight=\"bold\" {}>{text}</text>",
            fill(Colour::INK)
        ));
    }

    /// `anchor` is the part of the text at x: start, middle or end.
    pub(super) fn text(&mut self, x: f64, y: f64, anchor: &str, colour: Colour, text: &str) {
        let text = escaped(text);
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {}>{text}</text>",
            fill(colour)
        ));
    }

    /// Text that runs upwards, with its middle at x and y.
    pub(super) fn text_upwards(&mut self, x: f64, y: f64, colour: Colour, text: &str) {
        let text = escaped(text);
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 {x:.1} {y:.1})\" {}>{text}</text>",
            fill(colour)
        ));
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: Colour, width: f64) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.add(format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {} stroke-width=\"{width}\"/>",
            stroke(colour)
        ));
    }

    /// A line through several points; `dashes` as SVG writes them, or nothing.
    pub(super) fn path(&mut self, points: &[(f64, f64)], colour: Colour, width: f64, dashes: &str) {
        let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = points.join(" ");
        self.add(format_args!(
            "<polyline points=\"{points}\" fill=\"none\" {} stroke-width=\"{width}\" \
             stroke-dasharray=\"{dashes}\" stroke-linejoin=\"round\"/>",
            stroke(colour)
        ));
    }

    pub(super) fn rectangle(&mut self, corner: (f64, f64), size: (f64, f64), colour: Colour) {
        let ((x, y), (width, height)) = (corner, size);
        self.add(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" {}/>",
            fill(colour)
        ));
    }

    pub(super) fn mark(&mut self, (x, y): (f64, f64), marker: Marker, colour: Colour) {
        let corners: &[(f64, f64)] = match marker {
            Marker::Circle => {
                self.add(format_args!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\" {}/>", fill(colour)));
                return;
            }
            Marker::Ring => {
                let stroke = stroke(colour);
                self.add(format_args!(
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\" fill=\"none\" {stroke} stroke-width=\"2\"/>"
                ));
                return;
            }
            Marker::Square => &[(-4.0, -4.0), (4.0, -4.0), (4.0, 4.0), (-4.0, 4.0)],
            Marker::Triangle => &[(0.0, -5.5), (5.0, 4.0), (-5.0, 4.0)],
            Marker::Down => &[(0.0, 5.5), (5.0, -4.0), (-5.0, -4.0)],
            Marker::Diamond => &[(0.0, -5.5), (5.5, 0.0), (0.0, 5.5), (-5.5, 0.0)],
            Marker::Bar => &[(-6.0, -2.0), (6.0, -2.0), (6.0, 2.0), (-6.0, 2.0)],
            Marker::Hourglass => &[(-4.5, -5.0), (4.5, -5.0), (-4.5, 5.0), (4.5, 5.0)],
            Marker::Cross => return self.strokes((x, y), [(4.0, 4.0), (4.0, -4.0)], colour),
            Marker::Plus => return self.strokes((x, y), [(5.0, 0.0), (0.0, 5.0)], colour),
        };
        let points: Vec<_> = corners.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy)).collect();
        let points = points.join(" ");
        self.add(format_args!("<polygon points=\"{points}\" {}/>", fill(colour)));
    }

    /// Two lines through a point, each to this distance on both sides.
    fn strokes(&mut self, (x, y): (f64, f64), ends: [(f64, f64); 2], colour: Colour) {
        for (dx, dy) in ends {
            self.line((x - dx, y - dy), (x + dx, y + dy), colour, 2.5);
        }
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.text, "{element}").expect("writing to a string cannot fail");
    }
}

/// The attributes for a filled shape. The class carries the colour of the dark variant.
fn fill(colour: Colour) -> String {
    let Colour { name, light, .. } = colour;
    format!("fill=\"{light}\" class=\"fill-{name}\"")
}

fn stroke(colour: Colour) -> String {
    let Colour { name, light, .. } = colour;
    format!("stroke=\"{light}\" class=\"stroke-{name}\"")
}

/// Rules for viewers with a dark background. Programs without CSS show the light colours of the attributes.
fn dark_colours() -> String {
    let rules = Colour::ALL.map(|Colour { name, dark, .. }| {
        format!(".fill-{name}{{fill:{dark}}}.stroke-{name}{{stroke:{dark}}}")
    });
    format!("@media (prefers-color-scheme: dark){{{}}}", rules.concat())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

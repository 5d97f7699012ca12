//! A picture of curves over a logarithmic axis, for figures that are not those of a scenario.

use super::canvas::Canvas;
use super::look::{Colour, Marker};
use super::scale::LogScale;
use super::{LEFT, RIGHT, TITLE, WIDTH};
use crate::report::numbers::whole;

const HEIGHT: f64 = 420.0;
const BELOW: f64 = 60.0;
const AXIS: f64 = LEFT - 80.0;
const LOOKS: [(Colour, Marker); 6] = [
    (Colour::VERMILION, Marker::Circle),
    (Colour::BLUE, Marker::Square),
    (Colour::GREEN, Marker::Triangle),
    (Colour::PURPLE, Marker::Diamond),
    (Colour::OCHRE, Marker::Down),
    (Colour::GREY, Marker::Ring),
];

/// A picture.
#[derive(Debug)]
pub struct Curves {
    pub title: String,
    /// The titles of the axes.
    pub axes: [&'static str; 2],
    /// The curves with their names, at most six.
    pub curves: Vec<(String, Vec<(f64, f64)>)>,
}

impl Curves {
    /// The text of the picture.
    pub fn render(&self) -> String {
        let mut canvas = Canvas::new(WIDTH, TITLE + HEIGHT);
        canvas.title(20.0, 28.0, &self.title);
        let (top, bottom, right) = (TITLE, TITLE + HEIGHT - BELOW, WIDTH - RIGHT);
        let points = || self.curves.iter().flat_map(|(_, points)| points);
        let across = LogScale::around(points().map(|point| point.0), AXIS, right);
        let up = LogScale::around(points().map(|point| point.1), bottom, top);
        let (Some(across), Some(up)) = (across, up) else { return canvas.finish() };
        for tick in up.ticks(14) {
            canvas.line((AXIS, up.at(tick)), (right, up.at(tick)), Colour::GRID, 1.0);
            canvas.text(AXIS - 8.0, up.at(tick) + 4.5, "end", Colour::GREY, &whole(tick));
        }
        for tick in across.ticks(10) {
            canvas.text(across.at(tick), bottom + 20.0, "middle", Colour::GREY, &whole(tick));
        }
        canvas.text((AXIS + right) / 2.0, bottom + 44.0, "middle", Colour::GREY, self.axes[0]);
        canvas.text_upwards(16.0, (top + bottom) / 2.0, Colour::GREY, self.axes[1]);
        for (place, (name, points)) in self.curves.iter().enumerate() {
            let (colour, marker) = LOOKS[place % LOOKS.len()];
            let points: Vec<_> = points.iter().map(|(x, y)| (across.at(*x), up.at(*y))).collect();
            canvas.path(&points, colour, 2.0, "");
            points.iter().for_each(|point| canvas.mark(*point, marker, colour));
            let y = top + 16.0 + 24.0 * place as f64;
            canvas.mark((right + 16.0, y - 4.5), marker, colour);
            canvas.text(right + 28.0, y, "start", colour, name);
        }
        canvas.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Curves;

    #[test]
    fn curves_have_their_names_and_axes() {
        let curves = vec![("1 node".to_owned(), vec![(10.0, 10.0), (100.0, 50.0)])];
        let svg = Curves { title: "a < b".into(), axes: ["offered", "answered"], curves }.render();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let texts: Vec<_> = document.descendants().filter_map(|node| node.text()).collect();
        for expected in ["a < b", "1 node", "offered", "answered", "100"] {
            assert!(texts.contains(&expected), "{expected} is missing: {texts:?}");
        }
    }
}

//! A picture of one figure over time, with linear axes that begin at zero.

use super::canvas::Canvas;
use super::look::Colour;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 52.0;
const BELOW: f64 = 48.0;

/// A picture.
#[derive(Debug)]
pub struct Timeline {
    pub title: String,
    /// The titles of the axes.
    pub axes: [String; 2],
    /// The lines, between which nothing was measured.
    pub lines: Vec<Vec<(f64, f64)>>,
    /// Levels: from and to a time, at a value.
    pub levels: Vec<(f64, f64, f64)>,
}

impl Timeline {
    /// The text of the picture.
    pub fn render(&self) -> String {
        let mut canvas = Canvas::new(WIDTH, HEIGHT);
        canvas.title(20.0, 28.0, &self.title);
        let most = |of: fn(&(f64, f64)) -> f64| self.lines.iter().flatten().map(of).fold(0.0, f64::max);
        let (across, up) = (ticks(most(|point| point.0)), ticks(most(|point| point.1)));
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BELOW);
        let x = |value: f64| LEFT + (right - LEFT) * value / across[across.len() - 1];
        let y = |value: f64| bottom - (bottom - TOP) * value / up[up.len() - 1];
        for tick in &up {
            canvas.line((LEFT, y(*tick)), (right, y(*tick)), Colour::GRID, 1.0);
            canvas.text(LEFT - 8.0, y(*tick) + 4.5, "end", Colour::GREY, &label(*tick));
        }
        for tick in &across {
            canvas.text(x(*tick), bottom + 18.0, "middle", Colour::GREY, &label(*tick));
        }
        canvas.text((LEFT + right) / 2.0, bottom + 38.0, "middle", Colour::GREY, &self.axes[0]);
        canvas.text_upwards(16.0, (TOP + bottom) / 2.0, Colour::GREY, &self.axes[1]);
        for line in &self.lines {
            let points: Vec<_> = line.iter().map(|point| (x(point.0), y(point.1))).collect();
            canvas.path(&points, Colour::BLUE, 1.5, "");
        }
        for (from, to, value) in &self.levels {
            canvas.path(&[(x(*from), y(*value)), (x(*to), y(*value))], Colour::VERMILION, 3.0, "6 4");
        }
        canvas.finish()
    }
}

/// Round numbers from zero to at least this value, at most eight.
fn ticks(most: f64) -> Vec<f64> {
    let power = 10_f64.powf((most.max(1e-3) / 6.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
    let step = steps.into_iter().find(|step| step * 6.0 >= most).unwrap_or(steps[3]);
    let count = (most / step).ceil().max(1.0) as u32;
    (0..=count).map(|tick| step * f64::from(tick)).collect()
}

/// A tick without digits that say nothing.
fn label(tick: f64) -> String {
    let text = format!("{tick:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Timeline, label, ticks};

    #[test]
    fn ticks_are_round_and_reach_the_largest_value() {
        assert_eq!(ticks(43.0), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!(ticks(0.25).last().map(|tick| label(*tick)), Some("0.25".to_owned()));
        assert_eq!(ticks(0.0)[0], 0.0);
        assert_eq!([0.0, 1_200.0, 0.05].map(label), ["0", "1200", "0.05"]);
    }

    #[test]
    fn a_picture_has_its_lines_levels_and_texts() {
        let lines = vec![vec![(0.0, 10.0), (1.0, 20.0)], vec![(2.0, 20.0)]];
        let axes = ["hours".to_owned(), "MiB".to_owned()];
        let svg = Timeline { title: "a < b".into(), axes, lines, levels: vec![(1.0, 2.0, 20.0)] }.render();
        let document = roxmltree::Document::parse(&svg).unwrap();
        assert_eq!(document.descendants().filter(|node| node.has_tag_name("polyline")).count(), 3);
        let texts: Vec<_> = document.descendants().filter_map(|node| node.text()).collect();
        for expected in ["a < b", "hours", "MiB", "20"] {
            assert!(texts.contains(&expected), "{expected} is missing: {texts:?}");
        }
    }
}

//! Colours, markers and titles of techniques. A technique has the same colour in every picture.

/// A colour with a variant for dark backgrounds. People with any kind of colour vision can tell these colours apart, after
/// Okabe and Ito, and text in them is readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Colour {
    /// The name of its class in the picture.
    pub(super) name: &'static str,
    /// Its value on a light background.
    pub(super) light: &'static str,
    /// Its value on a dark background.
    pub(super) dark: &'static str,
}

/// The sign at the points of a line: readers can tell lines apart without their colours.
#[derive(Debug, Clone, Copy)]
pub(super) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
    Plus,
    Down,
    Ring,
    Bar,
    Hourglass,
}

const fn colour(name: &'static str, light: &'static str, dark: &'static str) -> Colour {
    Colour { name, light, dark }
}

impl Colour {
    pub(super) const PAPER: Self = colour("paper", "#FFFFFF", "#16181C");
    pub(super) const INK: Self = colour("ink", "#1A1A1A", "#EDEDED");
    pub(super) const GRID: Self = colour("grid", "#E2E2E2", "#34373D");
    pub(super) const LEADER: Self = colour("leader", "#BBBBBB", "#666A72");
    pub(super) const GREY: Self = colour("grey", "#5A5A5A", "#ABABAB");
    pub(super) const BLUE: Self = colour("blue", "#0072B2", "#56B4E9");
    pub(super) const VERMILION: Self = colour("vermilion", "#C44E00", "#FF8A4C");
    pub(super) const RED: Self = colour("red", "#B0003A", "#FF7A9C");
    pub(super) const GREEN: Self = colour("green", "#00795A", "#35C79B");
    pub(super) const PURPLE: Self = colour("purple", "#A8588A", "#E594CB");
    pub(super) const OCHRE: Self = colour("ochre", "#A87400", "#E6B03C");
    pub(super) const NAVY: Self = colour("navy", "#3B4BA3", "#98A5FF");
    pub(super) const BROWN: Self = colour("brown", "#7A4A2B", "#D0A27E");

    pub(super) const ALL: [Self; 13] = [
        Self::PAPER,
        Self::INK,
        Self::GRID,
        Self::LEADER,
        Self::GREY,
        Self::BLUE,
        Self::VERMILION,
        Self::RED,
        Self::GREEN,
        Self::PURPLE,
        Self::OCHRE,
        Self::NAVY,
        Self::BROWN,
    ];
}

/// The colour of a technique by its name.
pub(super) fn colour_of(technique: &str) -> Colour {
    match technique {
        "hotrow" => Colour::VERMILION,
        name if name.starts_with("hotrow") => Colour::RED,
        name if name.starts_with("select-1") => Colour::GREY,
        name if name.starts_with("direct") => Colour::BLUE,
        "conditional-update" | "insert" | "round-trips" => Colour::BLUE,
        name if name.starts_with("skip-locked") || name.starts_with("status-column") => Colour::BLUE,
        "pack-direct" => Colour::NAVY,
        "try-lock" | "advisory" | "insert-lean" => Colour::OCHRE,
        "nowait" | "for-update" | "pgbouncer" => Colour::GREEN,
        "units" | "shards" | "redis" | "pgq" => Colour::BROWN,
        _ => Colour::PURPLE, // applications and other products
    }
}

/// The marker of the technique at this position of its scenario. Hotrow is the circle; the others have one each.
pub(super) fn marker_of(technique: &str, position: usize) -> Marker {
    const OTHERS: [Marker; 9] = [
        Marker::Square,
        Marker::Triangle,
        Marker::Diamond,
        Marker::Cross,
        Marker::Plus,
        Marker::Down,
        Marker::Ring,
        Marker::Bar,
        Marker::Hourglass,
    ];
    if technique == "hotrow" { Marker::Circle } else { OTHERS[position % OTHERS.len()] }
}

/// The title of a technique: its name in words.
pub(super) fn title_of(technique: &str) -> String {
    let plain = match technique {
        "advisory" => "advisory-lock",
        "app-batching" => "application batching",
        "app-batching-log" => "application batching, log",
        "nowait" => "NOWAIT",
        "pack-direct" => "hotrow schema, direct",
        "skip-locked" => "SKIP LOCKED",
        "try-lock" => "advisory lock, no wait",
        "units" => "one row for each unit",
        other => other,
    };
    let words = plain.split('-').map(|word| match word {
        "hotrow" => "Hotrow",
        "pgbouncer" => "PgBouncer",
        "redis" => "Redis",
        "river" => "River",
        "pgq" => "PgQ",
        "tls" => "TLS",
        word => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Title and subtitle of a scenario: the parts of its description before and after the colon.
pub(super) fn titles_of(shows: &str) -> (String, String) {
    let plain = shows.replace('`', "");
    match plain.split_once(": ") {
        Some((title, rest)) => (title.to_owned(), capitalised(rest)),
        None => (plain, String::new()),
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{marker_of, title_of, titles_of};
    use crate::scenarios::ALL;
    use std::collections::HashSet;

    #[test]
    fn no_two_techniques_of_a_scenario_have_one_marker() {
        for scenario in ALL.iter().filter(|scenario| scenario.techniques.len() <= 9) {
            let marker = |(position, technique): (usize, &crate::scenario::Technique)| {
                format!("{:?}", marker_of(technique.name, position))
            };
            let markers: HashSet<_> = scenario.techniques.iter().enumerate().map(marker).collect();
            assert_eq!(markers.len(), scenario.techniques.len(), "{}", scenario.name);
        }
    }

    #[test]
    fn titles_are_words() {
        assert_eq!(title_of("hotrow-tls"), "Hotrow TLS");
        assert_eq!(title_of("try-lock"), "advisory lock, no wait");
        let titles = titles_of("Updates of one row: updates per second");
        assert_eq!(titles, ("Updates of one row".to_owned(), "Updates per second".to_owned()));
    }
}

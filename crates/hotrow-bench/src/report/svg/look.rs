//! Colours, markers and titles of techniques. A technique has the same colour in every picture.

/// A colour with a variant for dark backgrounds. People with any kind of colour vision can tell these colours apart, after
/// Okabe and Ito, and text in them is readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    Paper,
    Ink,
    Grid,
    Leader,
    Grey,
    Blue,
    Vermilion,
    Red,
    Green,
    Purple,
    Ochre,
    Navy,
    Brown,
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

impl Colour {
    pub(super) const ALL: [Self; 13] = [
        Self::Paper,
        Self::Ink,
        Self::Grid,
        Self::Leader,
        Self::Grey,
        Self::Blue,
        Self::Vermilion,
        Self::Red,
        Self::Green,
        Self::Purple,
        Self::Ochre,
        Self::Navy,
        Self::Brown,
    ];

    /// The name of its class in the picture, and its values on light and dark backgrounds.
    pub(super) fn values(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Paper => ("paper", "#FFFFFF", "#16181C"),
            Self::Ink => ("ink", "#1A1A1A", "#EDEDED"),
            Self::Grid => ("grid", "#E2E2E2", "#34373D"),
            Self::Leader => ("leader", "#BBBBBB", "#666A72"),
            Self::Grey => ("grey", "#5A5A5A", "#ABABAB"),
            Self::Blue => ("blue", "#0072B2", "#56B4E9"),
            Self::Vermilion => ("vermilion", "#C44E00", "#FF8A4C"),
            Self::Red => ("red", "#B0003A", "#FF7A9C"),
            Self::Green => ("green", "#00795A", "#35C79B"),
            Self::Purple => ("purple", "#A8588A", "#E594CB"),
            Self::Ochre => ("ochre", "#A87400", "#E6B03C"),
            Self::Navy => ("navy", "#3B4BA3", "#98A5FF"),
            Self::Brown => ("brown", "#7A4A2B", "#D0A27E"),
        }
    }
}

/// The colour of a technique by its name.
pub(super) fn colour_of(technique: &str) -> Colour {
    match technique {
        "hotrow" => Colour::Vermilion,
        name if name.starts_with("hotrow") => Colour::Red,
        name if name.starts_with("select-1") => Colour::Grey,
        name if name.starts_with("direct") => Colour::Blue,
        "conditional-update" | "insert" | "round-trips" => Colour::Blue,
        name if name.starts_with("skip-locked") || name.starts_with("status-column") => Colour::Blue,
        "pack-direct" => Colour::Navy,
        "try-lock" | "advisory" | "insert-lean" => Colour::Ochre,
        "nowait" | "for-update" | "pgbouncer" => Colour::Green,
        "units" | "shards" | "redis" | "pgq" => Colour::Brown,
        _ => Colour::Purple, // applications and other products
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
    let words = technique.split('-').map(|word| match word {
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
        assert_eq!(title_of("try-lock"), "try lock");
        let titles = titles_of("Updates of one row: updates per second");
        assert_eq!(titles, ("Updates of one row".to_owned(), "Updates per second".to_owned()));
    }
}

//! The colours of charts, each for light and for dark backgrounds.

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

//! What the gateway does with units that can be packed: a setting of the gateway, of pools and of sessions. If several of them
//! apply, the least counts.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

/// What happens with units that can be packed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PackMode {
    /// They are passed through.
    Off,
    /// They are passed through, and the gateway counts what it would have packed.
    Shadow,
    /// They are packed.
    On,
    /// They are packed, and transactions hold back writes whose outcome is foretold.
    Deferred,
}

/// The values in settings, for messages.
pub const PACK_VALUES: &str = "true, false, \"shadow\" or \"deferred\"";

/// From the least to the most.
pub const PACK_MODES: [PackMode; 4] = [PackMode::Off, PackMode::Shadow, PackMode::On, PackMode::Deferred];

/// A value that the setting does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongMode;

impl PackMode {
    /// As the session's setting shows it.
    pub fn shown(self) -> &'static str {
        match self {
            PackMode::Off => "off",
            PackMode::Shadow => "shadow",
            PackMode::On => "on",
            PackMode::Deferred => "deferred",
        }
    }
}

/// As the settings file has it.
impl fmt::Display for PackMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PackMode::Off => "false",
            PackMode::Shadow => "shadow",
            PackMode::On => "true",
            PackMode::Deferred => "deferred",
        })
    }
}

/// The same: `SHOW CONFIG` has it.
impl fmt::Debug for PackMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PackMode {
    type Err = WrongMode;

    fn from_str(text: &str) -> Result<Self, WrongMode> {
        PACK_MODES.into_iter().find(|mode| mode.to_string() == text).ok_or(WrongMode)
    }
}

impl<'de> Deserialize<'de> for PackMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfFile;
        impl Visitor<'_> for OfFile {
            type Value = PackMode;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(PACK_VALUES)
            }

            fn visit_bool<E: de::Error>(self, packs: bool) -> Result<PackMode, E> {
                Ok(if packs { PackMode::On } else { PackMode::Off })
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<PackMode, E> {
                let wrong = |WrongMode| E::invalid_value(de::Unexpected::Str(text), &self);
                text.parse().map_err(wrong)
            }
        }
        deserializer.deserialize_any(OfFile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_a_boolean_or_a_word() {
        let read = |text: &str| serde_json::from_str::<PackMode>(text).map_err(|error| error.to_string());
        assert_eq!(read("true"), Ok(PackMode::On));
        assert_eq!(read("false"), Ok(PackMode::Off));
        assert_eq!(read("\"shadow\""), Ok(PackMode::Shadow));
        assert_eq!(read("\"deferred\""), Ok(PackMode::Deferred));
        for wrong in ["\"Shadow\"", "\"on\"", "1", "null"] {
            assert!(read(wrong).unwrap_err().contains(PACK_VALUES), "{wrong}");
        }
    }

    #[test]
    fn the_least_of_several_modes_counts() {
        assert!(PACK_MODES.is_sorted());
    }
}

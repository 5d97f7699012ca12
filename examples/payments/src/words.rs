//! Enumerations that are words in the database and in JSON. Each word is written in one place.

/// The error for an unknown word: the word, and the known ones.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is not one of {1}")]
pub struct NotAWord(pub String, pub String);

/// An enumeration with its words.
macro_rules! worded {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "&'static str")]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// All values.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word of this value.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::words::NotAWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|known| known.word() == word).ok_or_else(|| {
                    let known: Vec<_> = Self::ALL.iter().map(|known| known.word()).collect();
                    $crate::words::NotAWord(word.to_owned(), known.join(", "))
                })
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::words::NotAWord;

            fn try_from(word: String) -> Result<Self, Self::Error> {
                word.parse()
            }
        }

        impl From<$name> for &'static str {
            fn from(known: $name) -> Self {
                known.word()
            }
        }
    };
}
pub(crate) use worded;

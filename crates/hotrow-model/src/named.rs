//! Enumerations whose variants have names in SQL. Each name is written once, before its variant.

/// Declares an enum with a constant, the names of all its variants, and a function, the name of one.
macro_rules! named {
    (
        $(#[$attribute:meta])*
        pub enum $type:ident ($names:ident, $name_of:ident) {
            $($(#[$doc:meta])* $name:literal $variant:ident $(($($tuple:tt)*))? $({$($fields:tt)*})?,)*
        }
    ) => {
        $(#[$attribute])*
        pub enum $type {
            $($(#[$doc])* $variant $(($($tuple)*))? $({$($fields)*})?,)*
        }

        impl $type {
            /// The names of all variants.
            pub const $names: &'static [&'static str] = &[$($name),*];

            pub fn $name_of(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)*
                }
            }
        }
    };
}
pub(crate) use named;

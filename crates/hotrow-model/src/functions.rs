//! The names of the functions that the commands call, each written once. A command without a name does not compile.

/// Gives a command enum `FUNCTIONS`, the names of all functions that it models, and `function`, the name for one command.
macro_rules! functions {
    ($commands:ident: $($command:ident $name:literal,)*) => {
        impl $commands {
            /// The functions of the pack that this enum models.
            pub const FUNCTIONS: &'static [&'static str] = &[$($name),*];

            /// The function that a command calls.
            pub fn function(&self) -> &'static str {
                match self {
                    $(Self::$command { .. } => $name,)*
                }
            }
        }
    };
}
pub(crate) use functions;

//! A client's session: the order of its units and of their answers.

mod answers;
#[cfg(test)]
mod tests;

pub use answers::{Answers, Next};

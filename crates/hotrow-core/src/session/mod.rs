//! A client's session: the order of its units and of their replies.

mod answers;
#[cfg(test)]
mod tests;

pub use answers::{Answers, Next};

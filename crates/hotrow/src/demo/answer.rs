//! The answer that a buyer gets.

/// The answer to a purchase.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// `UPDATE 1`: one item sold.
    Sold,
    /// `UPDATE 0`: nothing left.
    Refused,
    /// An error, with the server's message.
    Failed(String),
}

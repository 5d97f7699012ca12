//! Decisions about statements in front of MariaDB: which can be packed, and by which key. No I/O, no clock.
//!
//! | file | contents |
//! |---|---|
//! | `reader.rs` | the tokens and the grammar of statements that can be packed |
//! | `table.rs` | the facts about a table, and the keys of a statement on it |
//! | `questions.rs` | the questions to a server for these facts (`sql/`) |

pub mod questions;
pub mod reader;
pub mod table;

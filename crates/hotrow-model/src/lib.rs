//! The answers of the hotrow schema's counters, sales, queues and feeds, as plain data: the specification of the SQL. It talks to
//! no server, reads no clock and draws no random numbers.
//!
//! [`World::apply`] takes one command and the time, and returns the answer. [`World::apply_batch`] does the same
//! as a `_batch` function. Answers are written as the columns of the SQL function's row, like the server's rows:
//!
//! ```
//! let mut world = hotrow_model::World::default();
//! let command = "increment a 2".parse()?;
//! assert_eq!(world.apply(&command, 0)?.to_string(), "2 1 ok");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `command.rs` | the commands of counters and sales: name, arguments and answer of each |
//! | `argument.rs`, `parse.rs` | the kinds of arguments, and how scripts write them |
//! | `named.rs` | how an enumeration gets the names that its variants have in SQL |
//! | `id.rs` | IDs of requests and reservations |
//! | `answer.rs` | the answers, and how they are written |
//! | `counter.rs` | counters: value, version, bounds |
//! | `sale.rs` | items and their stock, reservations and their life |
//! | `queue.rs` | an ordered queue, with commands and answers of its own |
//! | `world.rs` | counters and sales together, and the recorded answers, which a repeated request gets |
//! | `feed.rs`, `feed_command.rs` | feeds, their commands and how they are written |
//! | `script.rs` | scripts that the model and the SQL both run |
//! | `linear.rs` | whether one order explains the answers that concurrent clients got |

mod answer;
mod argument;
mod command;
mod counter;
mod feed;
mod feed_command;
mod id;
pub mod linear;
mod named;
mod parse;
mod queue;
mod sale;
pub mod script;
mod world;

pub use answer::{Answer, SaleView, Status};
pub use argument::{Ids, Value};
pub use command::{Command, Fault};
pub use counter::{CounterSettings, Strategy};
pub use feed::{FeedLimits, Feeds};
pub use feed_command::{FeedCommand, Message, Sort};
pub use id::Id;
pub use parse::ParseError;
pub use queue::{NewOrder, Queue, QueueAnswer, QueueCommand, QueueTerms, Receipt};
pub use sale::SaleTerms;
pub use world::World;

/// A moment, counted in steps. The caller of the model decides how long a step is.
pub type Time = i64;

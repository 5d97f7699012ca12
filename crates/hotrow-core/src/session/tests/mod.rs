//! Tests of sessions. `order` tests the order of replies. The others run real sessions and real lanes against a
//! model of PostgreSQL (`postgres`), and compare each client's replies with those on a direct connection: `world`
//! has the sessions, the lanes and their connections, `environment` the gateway around a session, `lane` the I/O
//! of a lane, `listener` the shared listening connection, `program` the messages of clients, `transaction` and
//! `notify` the model's transactions and notifications, and `random` the comparison.

mod environment;
mod lane;
mod listener;
mod notify;
mod order;
mod postgres;
mod program;
mod random;
mod transaction;
mod world;

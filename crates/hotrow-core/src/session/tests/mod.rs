//! Tests of sessions. `order` tests the order of replies. The others run real sessions and real lanes against a
//! model of PostgreSQL (`postgres`), and compare each client's replies with those on a direct connection: `world`
//! has the lanes and the connections, `client` a client with its session, `connection` its connection, `environment` the
//! gateway around a session, `envelope` a unit between session and lane, `waits` what sessions wait for, `cancelling` the
//! cancel requests, `lane` the I/O of a lane, `replicas` the standbys, `listener` the shared listening connection,
//! `program` and `copies` the messages of clients, `statements`, `transaction`, `portals` and `notify` the model's statements,
//! `random` the comparison, `handover` the state that sessions leave (`state_left`), `forgotten` statements that triggers
//! remove, `deferred` the writes that are held back, `marks` what keeps a connection from other sessions, `kept` the commands that the gateway answers, `leaving` the ends of sessions, and `count` the effects of
//! acknowledged units. `same_as_postgres` compares the model of PostgreSQL with a real server.

mod cancelling;
mod client;
mod connection;
mod copies;
mod count;
mod deferred;
mod envelope;
mod environment;
mod forgotten;
mod handover;
mod kept;
mod lane;
mod leaving;
mod listener;
mod marks;
mod notify;
mod order;
mod packing;
mod portals;
mod postgres;
mod program;
mod random;
mod replicas;
mod same_as_postgres;
mod state_left;
mod statements;
mod transaction;
mod waits;
mod world;

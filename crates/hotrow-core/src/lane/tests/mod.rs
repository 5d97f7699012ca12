//! The lane's tests: scripts of events and actions, and a simulated server that can fail at every step.
//! Here only the map: what is tested is in the files below.

mod backend;
mod blocking;
mod checker;
mod crashes;
mod doubt;
mod every_step;
mod failures;
mod faults;
mod gathering;
mod history;
mod limits;
mod merging;
mod model;
mod notation;
mod pausing;
mod planted;
mod random;
mod rest;
mod schedule;
mod server;
mod sessions;
mod several;
mod shell;
mod slow;
mod tally;
mod waiting;
mod wire;
mod workload;
mod world;

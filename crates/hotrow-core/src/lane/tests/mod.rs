//! The lane's tests: scripts of events and actions, and a simulated server that can fail at every step.
//! Here only the map: what is tested is in the files below.

mod backend;
mod checker;
mod faults;
mod history;
mod limits;
mod model;
mod random;
mod rest;
mod schedule;
mod server;
mod sessions;
mod shell;
mod wire;
mod workload;
mod world;

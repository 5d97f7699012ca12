//! Tests of the checker: histories from textbooks, and those of a simulated database with and without faults.

mod database;
mod simulated;
mod textbook;

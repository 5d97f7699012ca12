//! A mutex whose holders never panic and never wait.

use std::sync::{Mutex, MutexGuard};

/// Protects a value for the few instructions that read or change it.
#[derive(Debug, Default)]
pub struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    /// A mutex around this value.
    pub const fn new(value: T) -> Self {
        Lock(Mutex::new(value))
    }

    /// The value, for as long as the guard lives.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("no holder of a lock panics")
    }

    /// The value, or `None` if a holder has panicked: for `drop`, where a second panic would end the process.
    pub fn lock_in_drop(&self) -> Option<MutexGuard<'_, T>> {
        self.0.lock().ok()
    }
}

//! The bytes that all clients together may buffer. Each client has a small amount free and reserves more.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use hotrow_core::limits;

static RESERVED: AtomicUsize = AtomicUsize::new(0);

/// One client's reservation; released when dropped.
#[derive(Debug, Default)]
pub struct Reservation {
    bytes: usize,
}

impl Reservation {
    /// Changes the reservation to this many bytes in all. False if they are not available.
    pub fn resize(&mut self, bytes: usize) -> bool {
        let wanted = if bytes > limits::SESSION_BUFFER_BYTES { bytes } else { 0 };
        if wanted == self.bytes {
            return true;
        }
        let reserved = RESERVED.fetch_sub(self.bytes, Relaxed) - self.bytes;
        self.bytes = 0;
        if reserved + wanted > limits::BUFFERED_BYTES_MAX {
            return false;
        }
        RESERVED.fetch_add(wanted, Relaxed);
        self.bytes = wanted;
        true
    }

    /// Counts this many bytes in all, which exist already, even if they exceed the limit.
    pub fn charge(&mut self, bytes: usize) {
        let wanted = if bytes > limits::SESSION_BUFFER_BYTES { bytes } else { 0 };
        if wanted != self.bytes {
            RESERVED.fetch_add(wanted, Relaxed);
            RESERVED.fetch_sub(self.bytes, Relaxed);
            self.bytes = wanted;
        }
    }
}

/// Whether the reservations exceed the limit.
pub fn is_exhausted() -> bool {
    RESERVED.load(Relaxed) > limits::BUFFERED_BYTES_MAX
}

/// Whether the reservations exceed half of the limit. Waiting notifications leave the other half to messages and replies.
pub fn is_half_used() -> bool {
    RESERVED.load(Relaxed) > limits::BUFFERED_BYTES_MAX / 2
}

impl Drop for Reservation {
    fn drop(&mut self) {
        RESERVED.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_buffers_are_free_and_large_ones_are_shared() {
        let mut one = Reservation::default();
        assert!(one.resize(1000));
        assert_eq!(RESERVED.load(Relaxed), 0);
        assert!(one.resize(limits::BUFFERED_BYTES_MAX - 1000));
        let mut other = Reservation::default();
        assert!(!other.resize(limits::SESSION_BUFFER_BYTES + 1));
        drop(one);
        assert!(other.resize(limits::SESSION_BUFFER_BYTES + 1));
        let mut unread = Reservation::default();
        unread.charge(limits::BUFFERED_BYTES_MAX);
        assert!(is_exhausted() && is_half_used());
        unread.charge(0);
        assert!(!is_exhausted() && !is_half_used());
    }
}

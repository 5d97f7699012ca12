//! Free ports of this machine, and their reservation among programs that use this crate. A port of a private server stays its
//! own while the server is stopped.
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

/// Free ports are searched below the range of outgoing ports, so that no connection of another program occupies
/// the port between a stop and a restart.
const PORTS: Range<u16> = 15_000..32_000;

/// A listener here means that the same port of 127.0.0.1 is reserved. Only Linux has this address without configuration.
const MARKS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A port of 127.0.0.1 that no other search finds while this value lives, also if nothing listens there. Without the address
/// 127.0.0.2, for example on macOS, the port is free and not reserved.
#[derive(Debug)]
pub struct ReservedPort {
    number: u16,
    _mark: Option<TcpListener>,
}

impl ReservedPort {
    /// Finds a port without a listener and reserves it. It is none of the ports that outgoing connections get. The search
    /// starts at a random port, so programs that search at the same time rarely meet.
    pub fn find() -> Self {
        let offset = RandomState::new().hash_one(std::process::id()) % u64::from(PORTS.end - PORTS.start);
        Self::find_from(PORTS.start + u16::try_from(offset).expect("the width is a u16"))
    }

    fn find_from(first: u16) -> Self {
        let reserve = |number| {
            let mark = match TcpListener::bind((MARKS, number)) {
                Ok(mark) => Some(mark),
                Err(error) if error.kind() == ErrorKind::AddrInUse => return None,
                Err(_) => None,
            };
            TcpListener::bind((Ipv4Addr::LOCALHOST, number)).ok().map(|_| Self { number, _mark: mark })
        };
        let mut ports = (first..PORTS.end).chain(PORTS.start..first);
        ports.find_map(reserve).unwrap_or(Self { number: PORTS.start, _mark: None })
    }

    pub fn number(&self) -> u16 {
        self.number
    }
}

/// A port of this machine without a listener that is not reserved. Another program can take it at any time.
pub fn free_port() -> u16 {
    ReservedPort::find().number()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_reserved_port_is_not_found_again() {
        let held = ReservedPort::find();
        assert_ne!(ReservedPort::find_from(held.number()).number(), held.number());
    }
}

//! Clients that keep a connection to the server, by the reason that SHOW CLIENTS shows. Sessions count themselves.

use hotrow_core::classify::Effect;

use super::Gauge;

/// Number of reasons.
const REASONS: usize = Effect::PINS.len() + 1;

/// Why a session keeps its connection: a set of reasons.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pins(u32);

impl Pins {
    /// No reason.
    pub const NONE: Self = Pins(0);

    /// The reasons of a session with this state on its connection, whose switch for packing is on or off.
    pub fn new(left: Effect, pack: bool) -> Self {
        let is_left = Effect::PINS.iter().map(|(is_left, _)| is_left(left));
        let set = is_left.chain([!pack]).enumerate().filter(|(_, is_set)| *is_set);
        Pins(set.fold(0, |bits, (index, _)| bits | 1 << index))
    }

    /// The set of reasons with these bits.
    pub fn from_bits(bits: u32) -> Self {
        Pins(bits)
    }

    /// One bit for each reason.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// The reasons, in words.
    pub fn reasons(self) -> impl Iterator<Item = &'static str> {
        reasons().enumerate().filter(move |(index, _)| self.has(*index)).map(|(_, reason)| reason)
    }

    fn has(self, index: usize) -> bool {
        self.0 & 1 << index != 0
    }
}

/// All reasons, in words.
fn reasons() -> impl Iterator<Item = &'static str> {
    Effect::PINS.iter().map(|(_, reason)| *reason).chain(["hotrow.pack is off"])
}

/// The number of clients that keep a connection, for each reason.
#[derive(Debug)]
pub struct PinnedClients([Gauge; REASONS]);

impl PinnedClients {
    pub(super) const fn new() -> Self {
        const { assert!(REASONS < u32::BITS as usize) };
        PinnedClients([const { Gauge::new() }; REASONS])
    }

    /// A client that had some reasons has others now.
    pub fn replace(&self, before: Pins, now: Pins) {
        for (index, gauge) in self.0.iter().enumerate() {
            gauge.replace(before.has(index).into(), now.has(index).into());
        }
    }

    /// Each reason, in words, with the number of clients.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        reasons().zip(self.0.iter().map(Gauge::get))
    }
}

//! The effects of a passed-through statement on its session. Effects on tables are not recorded here.

/// State that a statement may leave in the server's session. In
/// [`crate::classify::read::analysis::Pass::clears`], state that a statement removes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Effect {
    /// Settings were changed for the session.
    pub settings: bool,
    /// The role or the session user was changed. RESET ALL does not undo this.
    pub role: bool,
    /// Temporary objects exist.
    pub temporary: bool,
    /// Statements were prepared with SQL's PREPARE.
    pub prepared: bool,
    /// The session listens for notifications.
    pub listen: bool,
    /// A cursor outlives its transaction.
    pub holdable_cursor: bool,
    /// The session holds advisory locks.
    pub advisory_lock: bool,
    /// A sequence was advanced, which changes `currval` and `lastval` of this session.
    pub touches_sequence: bool,
    /// The statement reads `currval` or `lastval`. Only the connection that advanced the sequence can answer
    /// it.
    pub needs_sequence_state: bool,
    /// The client's `application_name`. It is only ever removed, by a statement that resets it.
    pub name: bool,
    /// Anything: the statement, or a function in it, is unknown.
    pub unknown: bool,
}

impl Effect {
    /// No effect.
    pub const NONE: Self = Self {
        settings: false,
        role: false,
        temporary: false,
        prepared: false,
        listen: false,
        holdable_cursor: false,
        advisory_lock: false,
        touches_sequence: false,
        needs_sequence_state: false,
        name: false,
        unknown: false,
    };

    /// Any effect is possible.
    pub const UNKNOWN: Self = Self { unknown: true, touches_sequence: true, ..Self::NONE };

    /// All effects, as DISCARD ALL clears them.
    pub const ALL: Self = Self {
        settings: true,
        role: true,
        temporary: true,
        prepared: true,
        listen: true,
        holdable_cursor: true,
        advisory_lock: true,
        touches_sequence: true,
        needs_sequence_state: true,
        name: true,
        unknown: true,
    };

    /// The union of both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self {
            settings: self.settings || other.settings,
            role: self.role || other.role,
            temporary: self.temporary || other.temporary,
            prepared: self.prepared || other.prepared,
            listen: self.listen || other.listen,
            holdable_cursor: self.holdable_cursor || other.holdable_cursor,
            advisory_lock: self.advisory_lock || other.advisory_lock,
            touches_sequence: self.touches_sequence || other.touches_sequence,
            needs_sequence_state: self.needs_sequence_state || other.needs_sequence_state,
            name: self.name || other.name,
            unknown: self.unknown || other.unknown,
        }
    }

    /// The effects that remain after `cleared` was removed.
    #[must_use]
    pub fn without(self, cleared: Self) -> Self {
        Self {
            settings: self.settings && !cleared.settings,
            role: self.role && !cleared.role,
            temporary: self.temporary && !cleared.temporary,
            prepared: self.prepared && !cleared.prepared,
            listen: self.listen && !cleared.listen,
            holdable_cursor: self.holdable_cursor && !cleared.holdable_cursor,
            advisory_lock: self.advisory_lock && !cleared.advisory_lock,
            touches_sequence: self.touches_sequence && !cleared.touches_sequence,
            needs_sequence_state: self.needs_sequence_state && !cleared.needs_sequence_state,
            name: self.name && !cleared.name,
            unknown: self.unknown && !cleared.unknown,
        }
    }

    /// Whether the session must keep its connection because of state on it.
    ///
    /// Sequence state alone does not count. It matters only when a statement reads it.
    pub fn pins(self) -> bool {
        self.without(Self { touches_sequence: true, needs_sequence_state: true, ..Self::NONE }) != Self::NONE
    }

    /// The names of the effects, for people.
    pub fn names(self) -> Vec<&'static str> {
        [
            (self.settings, "settings"),
            (self.role, "role"),
            (self.temporary, "temporary objects"),
            (self.prepared, "prepared statements"),
            (self.listen, "LISTEN"),
            (self.holdable_cursor, "cursors WITH HOLD"),
            (self.advisory_lock, "advisory locks"),
            (self.touches_sequence, "sequence values"),
            (self.needs_sequence_state, "reads currval or lastval"),
            (self.name, "application_name"),
            (self.unknown, "unknown"),
        ]
        .into_iter()
        .filter_map(|(set, name)| set.then_some(name))
        .collect()
    }
}

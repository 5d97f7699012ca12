//! What a statement that is passed through may leave behind in its session; never what it does to tables.

/// What may stay behind in the server's session, or what is taken away when used as [`crate::classify::read::analysis::Pass::clears`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Effect {
    /// Settings were changed for the session.
    pub settings: bool,
    /// The role or the session's user was changed, which RESET ALL does not undo.
    pub role: bool,
    /// Temporary objects.
    pub temporary: bool,
    /// Statements prepared by SQL.
    pub prepared: bool,
    /// Notifications are listened for.
    pub listen: bool,
    /// A cursor that outlives its transaction.
    pub holdable_cursor: bool,
    /// Advisory locks of the session.
    pub advisory_lock: bool,
    /// A sequence was moved, which `currval` and `lastval` of this session would see.
    pub touches_sequence: bool,
    /// `currval` or `lastval` are read: only the connection that moved the sequence can answer.
    pub needs_sequence_state: bool,
    /// The client's own name: only ever taken away, by a statement that resets it.
    pub name: bool,
    /// Anything: the statement or a function in it is not known.
    pub unknown: bool,
}

impl Effect {
    /// Nothing is left behind.
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

    /// Anything may be left behind.
    pub const UNKNOWN: Self = Self { unknown: true, touches_sequence: true, ..Self::NONE };

    /// All there is, as DISCARD ALL clears it.
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

    /// Both together.
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

    /// What is left of this after `cleared` was taken away.
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

    /// True when the session must keep its connection because something stays behind on it.
    ///
    /// Sequence state alone does not count: it matters only once it is read.
    pub fn pins(self) -> bool {
        self.without(Self { touches_sequence: true, needs_sequence_state: true, ..Self::NONE }) != Self::NONE
    }

    /// The names of what is set, for people.
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

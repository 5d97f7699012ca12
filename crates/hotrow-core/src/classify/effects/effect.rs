//! The effects of a passed-through statement on its session. Effects on tables are not recorded here.

use crate::settings;

/// Declares the effects, each with its name for people, and what is done with all of them. `pins` has the reason that the
/// console and the metrics show for a session that keeps its connection. An effect without one does not keep it.
macro_rules! effects {
    ($($(#[$doc:meta])* $effect:ident $name:literal $(pins $pin:literal)?,)*) => {
        /// State that a statement may leave in the server's session. In
        /// [`crate::classify::read::analysis::Pass::clears`], state that a statement removes.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct Effect {
            $($(#[$doc])* pub $effect: bool,)*
        }

        impl Effect {
            /// No effect.
            pub const NONE: Self = Self { $($effect: false,)* };

            /// All effects.
            const ALL: Self = Self { $($effect: true,)* };

            /// The effects that keep a session on its connection, each with the reason for people.
            pub const PINS: &'static [(fn(Self) -> bool, &'static str)] =
                &[$($((|left: Self| left.$effect, $pin),)?)*];

            /// The union of both.
            #[must_use]
            pub fn union(self, other: Self) -> Self {
                Self { $($effect: self.$effect || other.$effect,)* }
            }

            /// The effects that remain after `cleared` was removed.
            #[must_use]
            pub fn without(self, cleared: Self) -> Self {
                Self { $($effect: self.$effect && !cleared.$effect,)* }
            }

            /// The names of the effects, for people.
            pub fn names(self) -> Vec<&'static str> {
                let all = [$((self.$effect, $name),)*];
                all.into_iter().filter_map(|(set, name)| set.then_some(name)).collect()
            }
        }
    };
}

effects! {
    /// Settings were changed for the session that the server lists. The session moves to the pool with them. It keeps
    /// its connection only if there cannot be one more pool.
    settings "settings" pins "SET",
    /// Settings that decide what names mean, or the role, were changed until the end of the transaction. Nothing is left
    /// afterwards.
    local_settings "meaning of names until the end of the transaction",
    /// Settings were changed that no view lists: those that users have made up (`app.tenant`).
    unlisted_settings "settings that no view lists" pins "custom setting",
    /// The server draws the random numbers that follow from a client's seed. No command changes this, and another client
    /// could predict its numbers.
    seed "the seed of random()" pins "seed",
    /// The role or the session user was changed. RESET ALL does not undo this.
    role "role" pins "SET ROLE",
    /// Temporary objects exist.
    temporary "temporary objects" pins "temporary table",
    /// Statements were prepared under other settings than those of the pool, and keep the meaning that their texts had.
    /// Another connection would read them again.
    read_here "statements prepared under other settings" pins "statement read after SET",
    /// Statements were prepared with SQL's PREPARE.
    prepared "prepared statements" pins "PREPARE",
    /// The session listens for notifications.
    listen "LISTEN" pins "LISTEN",
    /// A cursor outlives its transaction.
    holdable_cursor "cursors WITH HOLD" pins "cursor WITH HOLD",
    /// The session holds advisory locks.
    advisory_lock "advisory locks" pins "advisory lock",
    /// A sequence was advanced, which changes `currval` and `lastval` of this session. This matters only when a statement
    /// reads them.
    touches_sequence "sequence values",
    /// The statement reads `currval` or `lastval`. Only the connection that advanced the sequence can answer
    /// it.
    needs_sequence_state "reads currval or lastval",
    /// The client's `application_name`. It is only ever removed, by a statement that resets it.
    name "application_name",
    /// A function ran a text that it had composed (EXECUTE in PL/pgSQL). It may have changed what the server does not show:
    /// settings that no view lists, the seed.
    dynamic_sql "dynamic SQL in a function" pins "dynamic SQL in a function",
    /// A function in a language that is neither SQL nor PL/pgSQL ran, such as PL/Python or C. It may have variables that
    /// live as long as the connection.
    other_language "a function in another language" pins "function in another language",
    /// Anything: the statement, or a function in it, is unknown.
    unknown "unknown" pins "something unknown",
}

impl Effect {
    /// All effects that DISCARD ALL clears.
    pub const DISCARDED: Self = Self { seed: false, ..Self::ALL };

    /// Any effect is possible.
    pub const UNKNOWN: Self = Self { unknown: true, touches_sequence: true, ..Self::NONE };

    /// State that may be left although the server does not show it.
    #[must_use]
    pub fn hidden(self) -> Self {
        let Self { unlisted_settings, seed, dynamic_sql, other_language, unknown, .. } = self;
        Self { unlisted_settings, seed, dynamic_sql, other_language, unknown, ..Self::NONE }
    }

    /// The effect of changing the setting with this name, if the name is known.
    pub(crate) fn of_setting(name: Option<&str>) -> Self {
        match name.map(str::to_ascii_lowercase).as_deref() {
            Some("role" | "session_authorization") => Self { role: true, ..Self::NONE },
            None => Self { unlisted_settings: true, seed: true, ..Self::NONE },
            Some("seed") => Self { seed: true, ..Self::NONE },
            // An extension's setting is listed too, but only while its library is loaded.
            Some(name) if name.contains('.') => Self { unlisted_settings: true, ..Self::NONE },
            Some(_) => Self { settings: true, ..Self::NONE },
        }
    }

    /// The effect of changing the setting with this name until the end of the transaction. Nothing is left, except that the
    /// server draws other random numbers after a change of `seed`.
    pub(crate) fn of_local_setting(name: Option<&str>) -> Self {
        match name.map(str::to_ascii_lowercase).as_deref() {
            Some("seed") => Self::of_setting(name),
            Some(name) if settings::keeps_meaning(name) => Self::NONE,
            _ => Self { local_settings: true, ..Self::NONE },
        }
    }

    /// Whether names in later statements may have another meaning, at least until the end of the transaction.
    pub fn changes_meaning(self) -> bool {
        self.settings || self.local_settings || self.unlisted_settings || self.role || self.unknown
    }

    /// Whether the session must keep its connection because of state on it.
    pub fn pins(self) -> bool {
        Self::PINS.iter().any(|(is_left, _)| is_left(self))
    }
}

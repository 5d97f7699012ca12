//! What a session has seen on the connection that it holds, and whether another session may get the connection then. Each fact
//! that decides this is a [`Mark`]. No other file keeps one.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

use super::executed::Executed;
use super::sets::HeldSettings;
use super::unjudged::Unjudged;
use super::{Proof, StatementInfo};
use crate::classify::Effect;
use crate::expect::PreparedStatements;
use crate::limits;
use crate::settings::Parsing;

/// Something that was seen on a connection.
pub(super) enum Mark<S> {
    /// This state is left, as far as the texts of statements show.
    Left(Effect),
    /// The server may show other state than the session knows of.
    Unproven,
    /// The same, and the settings may have changed.
    Doubt,
    /// The channels to which the session listens may have changed, which only the server knows.
    Channels,
    /// A statement ran whose functions the catalog has not been queried about.
    Unjudged(Arc<S>),
    /// The transaction under way may have changed what the names of functions mean.
    Redefinition,
    /// The server reads texts like this, compared with the session's other connections.
    Parses(Parsing),
    /// Names mean this, compared with the pool's other connections: `search_path` and the role decide it.
    Names(Parsing),
    /// This statement of the pool was used. If the server reads texts otherwise, it may have analysed the statement again.
    Used(u64),
    /// One more statement is sent, with this number of SETs and RESETs if there is nothing else in it. `is_clean` is whether it
    /// is known to leave nothing.
    Executed { statement: Arc<S>, sets: usize, is_clean: bool },
    /// The server has sent an error or a warning. An error also undoes what has succeeded before in the unit.
    Failure,
    /// A function was called by its OID, so its effects are not known.
    FunctionCall,
    /// A statement is missing that the client has prepared there, and others may be missing too.
    Missing,
    /// The server closes the connection: it has said so, or the client has sent Terminate.
    Closing,
}

/// What becomes of a connection on which nothing is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The server is asked which state is left.
    Asked,
    /// The session keeps it, because state is left.
    Kept,
    /// Another session may get it.
    Reused,
    Closed,
}

/// The marks of one connection.
pub(super) struct Marks<S> {
    left: Effect,
    is_unproven: bool,
    channels_in_doubt: bool,
    must_close: bool,
    is_closing: bool,
    unjudged: Unjudged<Arc<S>>,
    parsing: Parsing,
    naming: Parsing,
    /// The pool's statements that were used while the server read texts otherwise. The server may have read them again.
    parsed_again: BTreeSet<u64>,
    /// The settings, after all units that are answered.
    settings: HeldSettings,
    executed: Executed<Arc<S>>,
}

impl<S> Default for Marks<S> {
    /// The marks of a connection on which nothing has run.
    fn default() -> Self {
        Marks {
            left: Effect::NONE,
            is_unproven: false,
            channels_in_doubt: false,
            must_close: false,
            is_closing: false,
            unjudged: Unjudged::default(),
            parsing: Parsing::AsPool,
            naming: Parsing::AsPool,
            parsed_again: BTreeSet::new(),
            settings: HeldSettings::AsPool,
            executed: Executed::Nothing,
        }
    }
}

impl<S> Marks<S> {
    /// Records what was seen.
    pub(super) fn note(&mut self, mark: Mark<S>) {
        match mark {
            Mark::Left(effect) => self.left = self.left.union(effect),
            Mark::Unproven => self.is_unproven = true,
            Mark::Doubt => self.doubt(),
            Mark::Channels => (self.is_unproven, self.channels_in_doubt) = (true, true),
            Mark::Unjudged(statement) => {
                self.left.unknown |= !self.unjudged.add(&statement);
                self.doubt();
            }
            Mark::Redefinition => self.unjudged.redefines = true,
            Mark::Parses(parsing) => self.parsing = self.parsing.max(parsing),
            Mark::Names(naming) => self.naming = self.naming.max(naming),
            Mark::Used(statement) => {
                if self.parsing != Parsing::AsPool {
                    self.parsed_again.insert(statement);
                }
            }
            Mark::Executed { statement, sets, is_clean } => self.executed.add(statement, sets, is_clean),
            Mark::Failure => self.executed = Executed::Other,
            Mark::FunctionCall => {
                self.doubt();
                (self.naming, self.executed) = (Parsing::Otherwise, Executed::Other);
            }
            Mark::Missing => self.must_close = true,
            Mark::Closing => self.is_closing = true,
        }
    }

    fn doubt(&mut self) {
        (self.is_unproven, self.settings) = (true, HeldSettings::Unclear);
    }

    /// Judges a statement with this effect according to its text. Returns what is known of the state that it leaves, and the
    /// state that it may leave according to both.
    pub(super) fn judge(
        &mut self,
        statement: &Arc<S>,
        mut effect: Effect,
        known: Option<Proof>,
    ) -> (Proof, Effect)
    where
        S: Deref<Target = StatementInfo<S>>,
    {
        if effect.unknown && statement.is_judged && !self.unjudged.redefines {
            effect.unknown = false;
            match known {
                Some(proof) => effect = effect.union(proof.hidden),
                None => self.note(Mark::Unjudged(statement.clone())),
            }
        }
        (known.unwrap_or(Proof::NONE), effect)
    }

    /// What becomes of the connection when nothing is under way there. `is_shared` is whether the shared connection reports
    /// channels of the session.
    pub(super) fn fate(&self, is_shared: bool) -> Fate {
        // Only the server knows which of the state that it shows is still there. PREPARE counts until DEALLOCATE ALL: without
        // the connection, the session would get back statements that a function has deallocated there.
        let stays = Effect { prepared: self.left.prepared, ..self.left.hidden() };
        let listens = self.left.listen || is_shared || self.channels_in_doubt;
        // State that a function may have left ends with the connection. The session must not go on without it.
        let is_lost = self.is_closing && !self.channels_in_doubt;
        if self.is_unproven && !is_lost && (listens || !stays.pins()) {
            Fate::Asked
        } else if self.left.pins() || self.is_unproven && is_lost {
            Fate::Kept
        } else if self.must_close || self.is_closing {
            Fate::Closed
        } else {
            Fate::Reused
        }
    }

    /// The connection is given back: other sessions prepare these statements again before they use them.
    pub(super) fn outdate(&mut self, prepared: &mut PreparedStatements) {
        for statement in std::mem::take(&mut self.parsed_again) {
            prepared.outdate(statement);
            prepared.forget_unnamed();
        }
    }

    /// Forgets statements that the connection does not have any more, if too many are recorded.
    pub(super) fn forget_closed(&mut self, prepared: &PreparedStatements) {
        if self.parsed_again.len() > limits::CLIENT_STATEMENTS_MAX {
            self.parsed_again.retain(|statement| prepared.has(*statement));
        }
    }

    /// A unit has succeeded outside of a transaction, and has cleared this state. `is_of_login` is whether the pool's clients
    /// have the settings of their login.
    pub(super) fn cleared(&mut self, clears: Effect, is_of_login: bool) {
        let before = self.left;
        self.left = before.without(clears);
        if clears.other_language {
            // The variables of functions in other languages are still there, so no other session gets the connection.
            self.must_close |= before.other_language | self.unjudged.forget();
        }
        // Without the other state, the session may be able to move to the pool with its settings.
        self.is_unproven |= self.left.settings && self.left != before;
        if clears.settings && is_of_login {
            self.parsing = Parsing::AsPool;
        }
    }

    /// The transaction is over. If it has changed functions, it is not known which ones its statements have called.
    pub(super) fn transaction_over(&mut self) {
        if std::mem::take(&mut self.unjudged.redefines) && self.unjudged.forget() {
            self.left.unknown = true;
        }
    }

    /// The settings of the transaction have ended.
    pub(super) fn end_of_local_settings(&mut self) {
        for meaning in [&mut self.parsing, &mut self.naming] {
            if *meaning == Parsing::Locally {
                *meaning = Parsing::AsPool;
            }
        }
    }

    /// The session has no statement any more that was prepared under other settings than those of the pool.
    pub(super) fn none_read_here(&mut self) {
        self.left.read_here = false;
    }

    /// The statements whose functions were not judged are judged: they may have left this state although the server does not
    /// show it.
    pub(super) fn judged(&mut self, hidden: Effect) {
        self.unjudged.forget();
        self.left = self.left.union(hidden.hidden());
    }

    /// The server has said that this state is left, besides the state that it does not show. `parses_otherwise` is whether it
    /// reads texts otherwise than on the pool's other connections, `is_complete` whether all statements are there that the
    /// gateway has prepared.
    pub(super) fn found(&mut self, effect: Effect, parses_otherwise: bool, is_complete: bool) {
        let meaning = |is_other| if is_other { Parsing::Otherwise } else { Parsing::AsPool };
        self.left = effect.union(self.hidden());
        self.left.unknown |= !self.unjudged.is_empty();
        (self.is_unproven, self.channels_in_doubt) = (false, false);
        self.parsing = meaning(parses_otherwise);
        self.naming = meaning(effect.settings || effect.role);
        // A function may have deallocated statements of other sessions.
        self.must_close |= !is_complete;
        (self.unjudged, self.executed) = (Unjudged::default(), Executed::Nothing);
    }

    /// The settings are known to be these.
    pub(super) fn set_settings(&mut self, settings: HeldSettings) {
        self.settings = settings;
    }

    /// The server has reported the success of a command with this tag.
    pub(super) fn completed(&mut self, tag: &[u8]) {
        self.executed.completed(tag);
    }

    /// The state that is left.
    pub(super) fn left(&self) -> Effect {
        self.left
    }

    /// The state that is left and that the server does not show.
    pub(super) fn hidden(&self) -> Effect {
        Effect { read_here: self.left.read_here, ..self.left.hidden() }
    }

    /// Whether the server may show other state than the session knows of.
    pub(super) fn is_unproven(&self) -> bool {
        self.is_unproven
    }

    pub(super) fn channels_in_doubt(&self) -> bool {
        self.channels_in_doubt
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing
    }

    pub(super) fn parsing(&self) -> Parsing {
        self.parsing
    }

    pub(super) fn names_as_pool(&self) -> bool {
        self.naming == Parsing::AsPool
    }

    pub(super) fn settings(&self) -> &HeldSettings {
        &self.settings
    }

    pub(super) fn executed(&self) -> &Executed<Arc<S>> {
        &self.executed
    }

    /// The statements whose functions are not judged.
    pub(super) fn unjudged(&self) -> &[Arc<S>] {
        self.unjudged.statements()
    }
}

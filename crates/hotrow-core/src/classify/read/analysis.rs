//! The results of reading a statement's text.

use crate::classify::effects::effect::Effect;
use crate::classify::read::candidate::Candidate;
use crate::classify::reason::Reason;
use crate::pack_mode::PackMode;
use crate::settings::PlainSet;

/// The result of reading a statement's text, before the catalog is queried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Analysis {
    /// Packable if the catalog agrees; see [`crate::classify::judge::whole::decide`].
    Candidate(Box<Candidate>),
    /// Passed through.
    Pass(Pass),
    /// SET of a setting of the gateway.
    Set(SwitchChange),
    /// SET of a setting of the gateway to a value that it cannot have.
    SetWrong(Switch),
    /// RESET of a setting of the gateway.
    Reset(Switch),
    /// SHOW of a setting of the gateway.
    Show(Switch),
    /// `DEALLOCATE name`. The name can belong to a statement that was prepared through the protocol.
    Deallocate(String),
}

/// A setting of the gateway that a client can change for its session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Switch {
    /// `hotrow.pack`: whether statements are packed.
    Pack,
    /// `hotrow.reads`: point reads run on replicas.
    Reads,
}

impl Switch {
    /// The setting with this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "hotrow.pack" => Some(Switch::Pack),
            "hotrow.reads" => Some(Switch::Reads),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Switch::Pack => "hotrow.pack",
            Switch::Reads => "hotrow.reads",
        }
    }

    /// The values as SHOW writes them.
    pub fn values(self) -> &'static str {
        match self {
            Switch::Pack => "on, off, shadow, deferred",
            Switch::Reads => "replica, primary",
        }
    }

    /// Reads a value.
    pub fn value(self, text: &str) -> Option<SwitchValue> {
        let text = text.to_ascii_lowercase();
        Some(match (self, text.as_str()) {
            (Switch::Pack, "on" | "true" | "1" | "yes") => SwitchValue::Pack(PackMode::On),
            (Switch::Pack, "off" | "false" | "0" | "no") => SwitchValue::Pack(PackMode::Off),
            (Switch::Pack, "shadow") => SwitchValue::Pack(PackMode::Shadow),
            (Switch::Pack, "deferred") => SwitchValue::Pack(PackMode::Deferred),
            (Switch::Reads, "replica") => SwitchValue::ReadsFromReplica(true),
            (Switch::Reads, "primary") => SwitchValue::ReadsFromReplica(false),
            _ => return None,
        })
    }
}

/// A value of such a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwitchValue {
    Pack(PackMode),
    ReadsFromReplica(bool),
}

impl SwitchValue {
    /// As SHOW writes it.
    pub fn shown(self) -> &'static str {
        match self {
            SwitchValue::Pack(mode) => mode.shown(),
            SwitchValue::ReadsFromReplica(true) => "replica",
            SwitchValue::ReadsFromReplica(false) => "primary",
        }
    }
}

/// SET of a setting of the gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SwitchChange {
    /// The setting.
    pub switch: Switch,
    /// The value, or none for the value at the start of the session.
    pub value: Option<SwitchValue>,
    /// SET LOCAL: until the end of the transaction.
    pub is_local: bool,
}

/// What a statement does to the gateway's settings in its transaction, if it succeeds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// It changes one.
    Set(SwitchChange),
    /// RESET ALL, or DISCARD ALL.
    ResetAll,
    Savepoint(String),
    Release(String),
    /// ROLLBACK TO.
    RollBackTo(String),
    /// The end of a transaction among several statements, where ROLLBACK TO has the same tag.
    End,
}

impl Step {
    /// Whether the server reports the statement's success with this tag.
    pub fn has_tag(&self, tag: &[u8]) -> bool {
        match self {
            Step::Set(_) => matches!(tag, b"SET" | b"RESET"),
            Step::ResetAll => matches!(tag, b"RESET" | b"DISCARD ALL"),
            Step::Savepoint(_) => tag == b"SAVEPOINT",
            Step::Release(_) => tag == b"RELEASE",
            Step::RollBackTo(_) => tag == b"ROLLBACK",
            Step::End => matches!(tag, b"COMMIT" | b"ROLLBACK" | b"PREPARE TRANSACTION"),
        }
    }
}

/// What a command can change in the catalog, as far as it concerns the statements of other sessions. The code that a query calls
/// does not count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Alters {
    /// Nothing on which verdicts depend: objects of its own session, privileges that the server checks each time, rows.
    #[default]
    Nothing,
    /// Tables, and what belongs to them: indexes, triggers, policies, views. Each batch checks its tables.
    Tables,
    Anything,
}

impl Alters {
    /// The step of the catalog's epoch. The upper half of an epoch counts changes of anything.
    pub fn step(self) -> u64 {
        match self {
            Alters::Nothing => 0,
            Alters::Tables => 1,
            Alters::Anything => ANYTHING,
        }
    }
}

const ANYTHING: u64 = 1 << 32;

/// Whether nothing but tables can have changed between these epochs of the catalog.
pub fn differ_in_tables_only(one: u64, other: u64) -> bool {
    one / ANYTHING == other / ANYTHING
}

/// A statement that is passed through.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pass {
    /// Why.
    pub reason: Reason,
    /// Its possible effects on the session.
    pub effect: Effect,
    /// The effects that it removes if it succeeds outside a transaction block. They are removed before
    /// `effect` is applied.
    pub clears: Effect,
    /// The state that it clears, if it does nothing else: in a session without state it has no effect. The end of a transaction
    /// clears none, and has no effect without a transaction.
    pub clears_only: Option<Box<Effect>>,
    /// One of its statements removes the names of all prepared statements. In a text of several, `clears` does not say so.
    pub removes_names: bool,
    /// What it can change in the catalog.
    pub alters: Alters,
    /// CREATE, ALTER or DROP DATABASE. The server may refuse it while other sessions use the database.
    pub of_database: bool,
    /// It begins or commits a transaction of the kind that lanes run.
    pub block_command: Option<BlockCommand>,
    /// How it begins or ends a transaction, if the server is not needed for that before the first statement.
    pub transaction: Option<Transaction>,
    /// `true` if it leaves a transaction open, `false` if it ends one with COMMIT, `None` if it does neither.
    pub leaves_open: Option<bool>,
    /// The BEGIN at the beginning of a text of several statements, and its text.
    pub begins: Option<Box<(Transaction, String)>>,
    /// Savepoints that it defines, releases or rolls back to, in order.
    pub steps: Vec<Step>,
    /// The SETs and RESETs of the text, if it has nothing else and their effect depends on the text alone.
    pub sets: Box<[PlainSet]>,
    /// `PREPARE name`. The name can belong to a statement that was prepared through the protocol.
    pub prepares: Option<Box<str>>,
}

/// What begins or commits a transaction block that lanes run, with the server's command tag for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockCommand {
    /// BEGIN, without options that change the snapshot of its statements.
    Begin(&'static str),
    Commit,
}

/// The beginning or end of a transaction. The server cannot refuse it outside a transaction, or in one without
/// statements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transaction {
    /// BEGIN or START TRANSACTION.
    Begin {
        /// The server's command tag for it.
        tag: &'static str,
        /// A standby does not refuse it.
        on_standbys: bool,
        /// Its statements all see the state of the first one.
        keeps_snapshot: bool,
        /// It names a mode, such as an isolation level.
        has_modes: bool,
    },
    /// COMMIT or ROLLBACK.
    End {
        commits: bool,
        /// AND CHAIN: another transaction like this one begins at once.
        chains: bool,
    },
}

impl BlockCommand {
    /// The command's tag.
    pub fn tag(self) -> &'static str {
        match self {
            BlockCommand::Begin(tag) => tag,
            BlockCommand::Commit => "COMMIT",
        }
    }
}

impl Pass {
    pub(crate) fn harmless(reason: Reason) -> Self {
        Self {
            reason,
            effect: Effect::NONE,
            clears: Effect::NONE,
            clears_only: None,
            removes_names: false,
            alters: Alters::Nothing,
            of_database: false,
            block_command: None,
            transaction: None,
            leaves_open: None,
            begins: None,
            steps: Vec::new(),
            sets: Box::default(),
            prepares: None,
        }
    }

    /// A command that clears this state and does nothing else.
    fn clearing(name: String, clears: Effect) -> Self {
        let removes_names = clears.prepared;
        let clears_only = Some(Box::new(clears));
        Self { clears, clears_only, removes_names, ..Self::harmless(Reason::Session(name)) }
    }

    pub(crate) fn unknown(reason: Reason) -> Self {
        Self { effect: Effect::UNKNOWN, alters: Alters::Anything, ..Self::harmless(reason) }
    }
}

/// A session command with this effect.
pub(crate) fn leaves(name: String, effect: Effect) -> Analysis {
    Analysis::Pass(Pass { effect, ..Pass::harmless(Reason::Session(name)) })
}

/// A session command that removes this effect.
pub(crate) fn clears(name: String, clears: Effect) -> Analysis {
    Analysis::Pass(Pass { clears, ..Pass::harmless(Reason::Session(name)) })
}

/// A session command that removes this effect, and does nothing in a session without it.
pub(crate) fn clears_only(name: String, clears: Effect) -> Analysis {
    Analysis::Pass(Pass::clearing(name, clears))
}

/// A command that clears this state and gives all settings their default, also those of the gateway.
pub(crate) fn resets_all(name: String, clears: Effect) -> Analysis {
    Analysis::Pass(Pass { steps: vec![Step::ResetAll], ..Pass::clearing(name, clears) })
}

//! A statement as sessions use it: the facts that follow from its text, and what is known about it at present.

use std::borrow::Cow;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use hotrow_wire::frontend::Parse;

use super::foretold::Foretold;
use crate::classify::{
    self, Analysis, Effect, Packing, Pass, Reach, Reason, Step, SwitchChange, Transaction,
};
use crate::expect::StatementName;
use crate::settings::{self, PlainSet, Settings};
use crate::unit::Prepared;

/// The prefix of the gateway's names of statements, before their number.
pub const OWN_NAMES: &str = "hotrow_";

/// The name of each statement that the gateway runs for itself on a session's connection, and of its portal. The unnamed
/// ones belong to the session: a statement that it has prepared under other settings could not be prepared again with the
/// same meaning, and a portal in its transaction could not be opened again.
pub const OWN_STATEMENT: &[u8] = b"hotrow_own";

/// The gateway's statement with this name.
pub(super) fn own_statement(name: &[u8]) -> Option<StatementName> {
    let number = str::from_utf8(name.strip_prefix(OWN_NAMES.as_bytes())?).ok()?.parse().ok()?;
    (statement_name(number).as_bytes() == name).then_some(StatementName::Named(number))
}

/// The number of a statement that is prepared for one name of one client only: for the client's Parse with this number.
pub(super) fn alias_number(parsed: u64) -> u64 {
    const ALIAS: u64 = 1 << 63;
    ALIAS | parsed
}

/// The name under which a statement is prepared on every upstream connection.
pub fn statement_name(statement: u64) -> String {
    format!("{OWN_NAMES}{statement}")
}

/// The facts about a statement that never change. `S` is the gateway's type for a statement.
#[derive(Debug)]
pub struct StatementInfo<S> {
    /// Its number.
    pub id: u64,
    /// Its name on upstream connections.
    pub name: Bytes,
    pub text: Bytes,
    /// Its declared parameter types, four bytes each.
    pub types: Bytes,
    /// Whether the client has declared the types of all its parameters.
    pub is_typed: bool,
    /// Whether it is a command that runs nothing but itself.
    pub is_plain: bool,
    /// Whether the catalog shows all code that it can reach.
    pub is_judged: bool,
    /// Whether it may remove state from the connection that the server shows.
    pub may_remove: bool,
    pub may_unlisten: bool,
    /// Whether it may be COPY FROM STDIN.
    pub may_copy: bool,
    /// Whether it may remove prepared statements that it does not name: by one of several statements, or in a DO block.
    pub may_deallocate: bool,
    /// Whether its text means the same under all settings.
    pub parses_alike: bool,
    /// Whether it may change the settings that decide what later texts mean, as far as its own text shows.
    pub changes_parsing: bool,
    /// The analysis of its text.
    pub analysis: Analysis,
    /// The state that a candidate may leave behind if it is passed through.
    pub effect: Effect,
    /// The statements of a simple query with several, each with the range of its literals in the whole.
    pub pieces: Pieces<S>,
    /// The same write, which fails if it changes another number of rows than one, once it is needed.
    pub counted: OnceLock<Arc<S>>,
    /// The rows for which its outcome is foretold.
    pub foretold: Foretold,
}

/// What a text of SETs and RESETs does to the settings of each session of a pool.
#[derive(Debug)]
pub enum OutcomeOfSets {
    /// They have these values already.
    Keeps,
    /// The session has these settings from then on.
    LeadsTo(Settings),
}

/// Statements, each with the range of its literals in the whole text.
pub type Pieces<S> = Box<[(Arc<S>, Range<usize>)]>;

/// A statement, with what is known about it at present.
pub trait Statement: Prepared + Deref<Target = StatementInfo<Self>> + Sized {
    /// Its last verdict, which may have expired.
    fn last_verdict(&self) -> Option<Verdict>;
    /// Whether it succeeds often enough to be packed.
    fn has_credit(&self) -> bool;
    /// Records a success.
    fn succeeded(&self);
    /// Whether the catalog has changed since it was first prepared. Then it is not prepared again.
    fn is_superseded(&self) -> bool;
    /// Whether the server describes both in the same way, apart from the tables of their columns.
    fn is_described_as(&self, other: &Self) -> bool;
    /// The types that the server gives its parameters, four bytes each, if the server has described it.
    fn parameter_types(&self) -> Option<Bytes>;
    fn count(&self, outcome: RunOutcome);
    /// What it does to the settings of its pool's sessions, if it has nothing but SETs and that is known.
    fn outcome_of_sets(&self) -> Option<&OutcomeOfSets>;
    /// Records it.
    fn learn_sets(&self, outcome: OutcomeOfSets);

    /// Whether neither it nor one of its pieces is superseded.
    fn is_current(&self) -> bool {
        !self.is_superseded() && self.pieces.iter().all(|(piece, _)| !piece.is_superseded())
    }

    /// The packing of its last verdict, if that was to pack it.
    fn packing(&self) -> Option<Arc<Packing>> {
        match self.last_verdict() {
            Some(Verdict::Packed(packing)) => Some(packing),
            _ => None,
        }
    }

    /// Whether its last verdict is to pass it through.
    fn is_passed(&self) -> bool {
        match &self.analysis {
            Analysis::Candidate(_) => matches!(self.last_verdict(), Some(Verdict::Pass | Verdict::Locks(_))),
            _ => true,
        }
    }
}

/// A statement with a client's name.
#[derive(Debug)]
pub struct Named<S> {
    pub statement: Arc<S>,
    /// The client's text, which the server gets: the statement's, and comments.
    pub text: Bytes,
    /// The number of the client's Parse in the pool. A connection that parsed the statement earlier may have
    /// an older meaning of it.
    pub parsed: u64,
    /// The types that the server gave its parameters at that Parse. The statement keeps them when the catalog
    /// changes.
    pub resolved: Option<Arc<Resolved<S>>>,
    /// The session had other settings than its pool at that Parse, and they may decide what the text means: only the
    /// connection of that time has the statement, under a name that no other session uses.
    pub is_pinned: bool,
}

/// The types of a statement's parameters, four bytes each.
#[derive(Debug)]
pub struct Resolved<S> {
    pub types: Bytes,
    /// The same statement with these types declared, once it is needed.
    pub statement: OnceLock<Arc<S>>,
}

impl<S> Resolved<S> {
    pub fn new(types: Bytes) -> Arc<Self> {
        Arc::new(Resolved { types, statement: OnceLock::new() })
    }
}

impl<S> Clone for Named<S> {
    fn clone(&self) -> Self {
        Named {
            statement: self.statement.clone(),
            text: self.text.clone(),
            resolved: self.resolved.clone(),
            ..*self
        }
    }
}

/// How a statement is handled.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It may be packed.
    Packed(Arc<Packing>),
    /// It is passed through.
    Pass,
    /// It is passed through, and locks a row until its transaction ends. It would be packed like this otherwise.
    Locks(Arc<Packing>),
}

/// The state that a statement is known to leave behind if it is passed through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// It leaves nothing but perhaps sequence values. Otherwise the server has to be queried.
    pub is_clean: bool,
    /// It may move a sequence.
    pub moves_sequence: bool,
    /// It may change what names mean, at least until the end of its transaction.
    pub changes_meaning: bool,
    /// State that its functions may leave although the server does not show it.
    pub hidden: Effect,
}

impl Proof {
    /// Nothing is known: it may leave any state.
    pub const NONE: Self =
        Proof { is_clean: false, moves_sequence: true, changes_meaning: true, hidden: Effect::UNKNOWN };
    /// A pack rule says that it leaves nothing. What the server shows is asked after each run.
    pub const DECLARED: Self = Proof { hidden: Effect::NONE, ..Proof::NONE };
    /// It runs no code but its own.
    pub const CLEAN: Self =
        Proof { is_clean: true, moves_sequence: false, changes_meaning: false, hidden: Effect::NONE };
}

/// The outcome of one run of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// Run in a batch.
    Packed,
    /// Run as part of a merged call.
    Merged,
    /// Passed through: it is not packable.
    NotPackable,
    /// Passed through: its client was in a transaction.
    OwnTransaction,
    /// Passed through: state is left on the session's connection, or the session has settings for which there is no pool.
    Pinned,
    /// Passed through: packing is switched off, by the client or for its pool.
    SwitchedOff,
    /// Passed through: packing is in shadow mode, and it would be packed.
    Shadowed,
    /// Passed through: it fails too often in lanes, or takes too long there.
    NoCredit,
    /// Passed through: another part of its unit is not packable.
    LargerUnit,
    /// Passed through: the catalog was being asked about it.
    Undecided,
    /// Run alone: a lane gave it back, or no lane could take it.
    GivenBack,
    /// Failed in a lane.
    Failed,
    /// Blocked by an outsider's lock in a lane.
    Blocked,
    /// Too slow for a lane.
    TooSlow,
    /// Passed through: too few others are under way for a batch.
    Few,
}

/// A write that fails if it changes another number of rows than one.
const COUNTED: &str = include_str!("../../sql/counted_write.sql");

/// Words of the commands that remove what others have left.
const REMOVING: [&[u8]; 4] = [b"close", b"reset", b"role", b"authorization"];

impl<S> StatementInfo<S> {
    /// The facts about the statement with this number, text and declared types.
    pub fn new(id: u64, text: Bytes, types: Bytes, analysis: Analysis) -> Self {
        let effect = match &analysis {
            Analysis::Candidate(candidate) => candidate.effect(),
            _ => Effect::NONE,
        };
        let is_candidate = matches!(analysis, Analysis::Candidate(_));
        let reach =
            str::from_utf8(&text).ok().filter(|_| !is_candidate || effect.unknown).and_then(classify::reach);
        let is_plain = reach.as_ref().is_some_and(Reach::runs_nothing);
        StatementInfo {
            id,
            name: statement_name(id).into(),
            is_typed: is_typed(&text, &types),
            is_plain,
            is_judged: reach.is_some(),
            may_remove: is_plain && REMOVING.iter().any(|word| mentions(&text, word)),
            may_unlisten: mentions(&text, b"unlisten"),
            may_copy: mentions(&text, b"copy"),
            may_deallocate: !matches!(analysis, Analysis::Deallocate(_)) && mentions(&text, b"deallocate"),
            parses_alike: parses_alike(&text, &analysis),
            changes_parsing: changes_parsing(&text, &analysis),
            text,
            types,
            effect,
            analysis,
            pieces: Box::default(),
            counted: OnceLock::new(),
            foretold: Foretold::default(),
        }
    }

    /// Whether it calls functions that are on no list, so that the catalog decides which state it may leave.
    pub fn calls_others(&self) -> bool {
        let effect = match &self.analysis {
            Analysis::Pass(pass) => pass.effect,
            _ => self.effect,
        };
        effect.unknown && self.is_judged
    }

    /// The same statement with its own declared types, or with those of all its parameters, and this number.
    pub fn with_types(&self, id: u64, types: Bytes) -> Self {
        StatementInfo {
            id,
            name: statement_name(id).into(),
            text: self.text.clone(),
            is_typed: self.is_typed || types != self.types,
            types,
            analysis: self.analysis.clone(),
            pieces: Box::default(),
            counted: OnceLock::new(),
            foretold: Foretold::default(),
            ..*self
        }
    }

    /// A client's text of this statement, which can have comments. It is copied only if it has.
    pub(super) fn text_of(&self, text: &[u8]) -> Bytes {
        if self.text == text { self.text.clone() } else { Bytes::copy_from_slice(text) }
    }

    /// Appends the Parse that prepares it with this name.
    pub fn put_parse(&self, name: &[u8], out: &mut BytesMut) {
        Parse { name, text: &self.text, types: &self.types }.put(out);
    }

    /// True if it leaves a transaction open, false if it ends one by COMMIT, none otherwise.
    pub fn leaves_open(&self) -> Option<bool> {
        match &self.analysis {
            Analysis::Pass(pass) => pass.leaves_open,
            _ => None,
        }
    }

    /// What it does to a transaction, if it does nothing else.
    pub(super) fn transaction(&self) -> Option<Transaction> {
        match &self.analysis {
            Analysis::Pass(pass) => pass.transaction,
            _ => None,
        }
    }

    /// Whether it ends a transaction: whether it commits, and whether another transaction begins.
    pub(super) fn ends_transaction(&self) -> Option<(bool, bool)> {
        match self.transaction() {
            Some(Transaction::End { commits, chains }) => Some((commits, chains)),
            _ => None,
        }
    }

    /// Whether it is ROLLBACK TO.
    pub(super) fn goes_back(&self) -> bool {
        self.pieces.is_empty() && matches!(&*self.steps(), [Step::RollBackTo(_)])
    }

    /// The text of the same write, which fails if it changes another number of rows than one.
    pub fn counted_text(&self) -> Bytes {
        let end = self.text.iter().rposition(|byte| !byte.is_ascii_whitespace() && *byte != b';');
        let write = &self.text[..end.map_or(0, |end| end + 1)];
        let (before, behind) = COUNTED.split_once("{write}").unwrap_or((COUNTED, ""));
        [before.as_bytes(), write, behind.as_bytes()].concat().into()
    }

    /// Whether it is one call of a function, which may have a merge rule.
    pub fn is_call(&self) -> bool {
        matches!(&self.analysis, Analysis::Candidate(candidate) if candidate.call.is_some())
    }

    /// Its SETs and RESETs, if it does nothing else and their effect depends on its text alone.
    pub(super) fn sets(&self) -> &[PlainSet] {
        match &self.analysis {
            Analysis::Pass(pass) => &pass.sets,
            _ => &[],
        }
    }

    /// Whether it begins a transaction that the gateway can begin.
    pub(super) fn begins_empty(&self) -> bool {
        matches!(self.transaction(), Some(Transaction::Begin { .. }))
    }

    /// Whether it removes the names of all prepared statements.
    pub fn removes_names(&self) -> bool {
        matches!(&self.analysis, Analysis::Pass(pass) if pass.removes_names)
    }

    /// Its change of a setting of the gateway.
    pub(super) fn switch_change(&self) -> Option<SwitchChange> {
        match &self.analysis {
            Analysis::Set(change) => Some(*change),
            Analysis::Reset(switch) => Some(SwitchChange { switch: *switch, value: None, is_local: false }),
            _ => None,
        }
    }

    /// What it does to the gateway's settings in its transaction.
    pub(super) fn steps(&self) -> Cow<'_, [Step]> {
        match (&self.analysis, self.switch_change()) {
            (Analysis::Pass(pass), _) => Cow::Borrowed(&pass.steps),
            (_, Some(change)) => Cow::Owned(vec![Step::Set(change)]),
            _ => Cow::Borrowed(&[]),
        }
    }

    /// The state that it clears if it succeeds outside a transaction block.
    pub fn clears(&self) -> Effect {
        match &self.analysis {
            Analysis::Pass(pass) => pass.clears,
            _ => Effect::NONE,
        }
    }

    /// The state that it clears, if it does nothing else.
    pub(super) fn clears_only(&self) -> Option<Effect> {
        match &self.analysis {
            Analysis::Pass(pass) => pass.clears_only.as_deref().copied(),
            _ => None,
        }
    }

    /// The name of a prepared statement that it creates or removes.
    pub fn mentions_name(&self) -> Option<&[u8]> {
        match &self.analysis {
            Analysis::Deallocate(name) => Some(name.as_bytes()),
            Analysis::Pass(pass) => pass.prepares.as_deref().map(str::as_bytes),
            _ => None,
        }
    }

    /// Whether it is a text without a statement.
    pub(super) fn is_empty(&self) -> bool {
        matches!(&self.analysis, Analysis::Pass(Pass { reason: Reason::Empty, .. }))
    }

    /// Whether it does work: it is no command about the session or its transaction.
    pub fn is_work(&self) -> bool {
        match &self.analysis {
            Analysis::Candidate(_) => true,
            Analysis::Pass(pass) => !is_command(pass) && !self.is_empty(),
            _ => false,
        }
    }

    /// Whether it may be a command that the gateway answers.
    pub(super) fn is_answered_here(&self) -> bool {
        !matches!(&self.analysis, Analysis::Candidate(_) | Analysis::Pass(_))
    }

    /// Whether it runs only after all earlier statements are answered.
    pub(super) fn waits_for_all(&self) -> bool {
        match &self.analysis {
            Analysis::Pass(pass) => pass.clears != Effect::NONE || self.changes_parsing,
            _ => self.changes_parsing || self.is_answered_here(),
        }
    }
}

/// Whether a text means the same under all settings. Commands like SET are read when they run.
fn parses_alike(text: &[u8], analysis: &Analysis) -> bool {
    let is_command = match analysis {
        Analysis::Pass(pass) => is_command(pass),
        _ => false,
    };
    is_command || settings::parses_alike(text)
}

/// Whether it is a command about the session or its transaction.
fn is_command(pass: &Pass) -> bool {
    matches!(pass.reason, Reason::Session(_) | Reason::Transaction(_))
}

/// Whether a statement may change the settings that decide what later texts mean, as far as its text shows.
fn changes_parsing(text: &[u8], analysis: &Analysis) -> bool {
    let effect = match analysis {
        Analysis::Pass(pass) if is_command(pass) => return settings::mentions_parsing(text),
        // One of several statements may be such a command, or reset all settings.
        Analysis::Pass(Pass { reason: Reason::SeveralStatements | Reason::ManyStatements, .. }) => {
            let resets_all =
                mentions(text, b"all") && (mentions(text, b"reset") || mentions(text, b"discard"));
            return resets_all || mentions(text, b"set") && settings::mentions_parsing(text);
        }
        Analysis::Pass(pass) => pass.effect,
        Analysis::Candidate(candidate) => candidate.effect(),
        _ => return false,
    };
    // The name of the setting can be a parameter. Then the role is in doubt too.
    let sets = mentions(text, b"set_config") || effect.unknown && mentions(text, b"set");
    sets && (effect.role || settings::mentions_parsing(text))
}

/// Whether a text contains this word.
fn mentions(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word))
}

/// Whether each parameter of a text has a declared type. A `$1` within a string counts as a parameter too.
fn is_typed(text: &[u8], types: &[u8]) -> bool {
    let parameters = text.split(|byte| *byte == b'$').skip(1).map(|rest| {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).take(6);
        digits.fold(0_usize, |number, digit| 10 * number + usize::from(digit - b'0'))
    });
    let declared =
        types.chunks_exact(4).take_while(|oid| !matches!(oid, [0, 0, 0, 0] | [0, 0, 2, 193])).count();
    parameters.max().unwrap_or(0) <= declared
}

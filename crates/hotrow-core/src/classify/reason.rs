//! The reasons why a statement is passed through, in plain English. What to do about them is in `remedy`.

use thiserror::Error;

/// A kind of statement in which something else has to be done about the same reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatementKind {
    /// It only reads, as many rows as it needs.
    Reads,
    Inserts,
    /// It takes a row that no other worker has, by SKIP LOCKED.
    SkipsLocked,
}

/// Why a statement is not packed. The text is for people.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Reason {
    /// The parser does not understand the text.
    #[error("the parser does not understand the statement: {0}")]
    NotUnderstood(String),
    /// Nothing but white space and comments.
    #[error("an empty statement")]
    Empty,
    /// Longer or deeper than the analysis supports.
    #[error("too {0} to be analysed")]
    TooLarge(&'static str),
    /// Several statements in one text are one transaction.
    #[error("several statements in one text")]
    SeveralStatements,
    /// More statements than one unit can have.
    #[error("more than {} statements in one text", crate::limits::UNIT_STATEMENTS_MAX)]
    ManyStatements,
    /// BEGIN and similar commands.
    #[error("{0}: an explicit transaction runs on a connection of its own")]
    Transaction(String),
    /// SET and similar commands.
    #[error("{0} changes or reads the session")]
    Session(String),
    #[error("COPY uses its own subprotocol")]
    Copy,
    /// DDL and other commands.
    #[error("{0} is not a SELECT, INSERT, UPDATE or DELETE")]
    Utility(String),
    /// A clause or a kind of expression that is never packed.
    #[error("{0}")]
    Unsupported(&'static str),
    /// No WHERE that identifies a row.
    #[error("no WHERE with conditions of the form column = value joined by AND")]
    NoEquality,
    /// A function outside the allow list.
    #[error("function {name} {why}")]
    Function {
        /// The function's name.
        name: String,
        /// Its problem.
        why: &'static str,
    },
    /// An operator that is not one of PostgreSQL's own.
    #[error("operator {0} is not known to be harmless")]
    Operator(String),
    /// A cast to a type outside the allow list.
    #[error("cast to {0}, which is not a plain built-in type")]
    Cast(String),
    /// `xmin` and similar columns.
    #[error("system column {0} shows which transaction wrote the row")]
    SystemColumn(String),
    /// The catalog has no facts about the table.
    #[error("table {0} was not found")]
    NoTable(String),
    /// A view, foreign table, partition, temporary table.
    #[error("{table} is {what}")]
    NotOrdinary {
        table: String,
        /// The kind of relation.
        what: &'static str,
    },
    /// A view whose statements are not those of one table.
    #[error("{view} is a view {why}")]
    View {
        view: String,
        /// Its problem.
        why: String,
    },
    /// A column that a view computes.
    #[error("column {0} is computed by a view")]
    Computed(String),
    /// A partitioned table with unusual partitions.
    #[error("{table} {why}")]
    Partition {
        table: String,
        /// Its problem.
        why: String,
    },
    /// A distributed table for whose rows the node cannot be found.
    #[error("{table} {why}")]
    Distributed {
        table: String,
        /// Its problem.
        why: &'static str,
    },
    /// An update of a column of the partition key.
    #[error("column {0} decides in which partition the row is")]
    MovesRow(String),
    /// A name that is not a column of the table.
    #[error("{0} is not a column of the table")]
    NoColumn(String),
    /// Two statements of one WITH change the same table.
    #[error(
        "two parts of the statement change {0}, and PostgreSQL does not tell which change of a row is made"
    )]
    ChangedTwice(String),
    /// A name that is not a column of a statement in WITH.
    #[error("{0} is not a column that the statement in WITH returns")]
    NotReturned(String),
    /// A column whose type runs unknown code.
    #[error("column {0} has a type that may run user-defined code")]
    ColumnType(String),
    /// A write to an interval column with a field restriction.
    #[error(
        "column {0} is an interval with a field restriction, which the server applies to a constant but not to a parameter"
    )]
    IntervalFields(String),
    /// A user-defined cast between two built-in types.
    #[error("a user-defined cast from {0} is not known to be harmless, and any statement can use it")]
    UserCast(String),
    /// No unique index is bound.
    #[error("no unique index of {0} has all its columns bound by equality")]
    NoUniqueIndex(String),
    /// More rows than a unit can have.
    #[error("more than {} rows", crate::limits::UNIT_ROWS_MAX)]
    ManyRows,
    /// ON CONFLICT DO UPDATE without a key.
    #[error("the statement does not show which row ON CONFLICT would update")]
    ConflictTarget,
    /// A trigger that is not proven harmless.
    #[error("trigger {name} {why}")]
    Trigger {
        /// The trigger's name.
        name: String,
        /// Its problem.
        why: String,
    },
    /// A default, check, generated column or index calls an unknown function.
    #[error("{place} of the table calls {name}, which is not known to be harmless")]
    TableExpression {
        /// The expression.
        place: String,
        /// The function that it calls.
        name: String,
    },
    /// A sequence with a cache. On several connections, its values would not ascend within a session.
    #[error(
        "the default of column {0} uses a sequence with a cache, and each connection caches its own values"
    )]
    CachedSequence(String),
    /// A constraint that is checked at commit.
    #[error("a constraint of {0} is deferrable and may be checked only at commit")]
    Deferrable(String),
    #[error("{1}")]
    Of(StatementKind, Box<Reason>),
    /// Foreign keys that change rows of other tables.
    #[error("foreign keys of {0} also change rows of that table")]
    Cascade(String),
}

impl Reason {
    /// A message of the parser, up to the part of the statement that it repeats: that can be a value.
    pub(crate) fn of_parser(message: &str) -> Self {
        let end = [", found", " at Line"].iter().filter_map(|part| message.find(part)).min();
        let shown = &message[..end.unwrap_or(message.len())];
        let is_value = |c: char| c.is_ascii_digit() || matches!(c, '\'' | '"' | '$');
        Self::NotUnderstood(shown[..shown.find(is_value).unwrap_or(shown.len())].trim_end().to_owned())
    }

    pub(crate) fn in_kind(self, kind: StatementKind) -> Self {
        match self {
            Self::Unsupported(what) if kind == StatementKind::Reads && !is_about_rows(what) => self,
            Self::Unsupported(_)
            | Self::NoEquality
            | Self::NoUniqueIndex(_)
            | Self::ManyRows
            | Self::View { .. } => Self::Of(kind, Box::new(self)),
            // Others are the same in each kind of statement, and are looked at by their variant.
            other => other,
        }
    }

    /// Whether the statement begins a transaction.
    pub fn is_begin(&self) -> bool {
        matches!(self, Self::Transaction(word) if matches!(word.as_str(), "BEGIN" | "START"))
    }
}

/// Whether a form is for statements that read many rows, or compute something of them. A row lock and the time of an analysis
/// are as unusual in a read of one row.
fn is_about_rows(what: &str) -> bool {
    !matches!(
        what,
        "a row lock such as FOR UPDATE, which outlives the statement"
            | "a date or time by name, such as 'now'"
            | "a call whose arguments do not show its key"
            | "a call that can wait but cannot be merged"
            | "a column that does not belong to the table"
    )
}

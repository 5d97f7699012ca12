//! Why a statement is passed through, in words for the person who asked; never what to do about it.

use thiserror::Error;

/// Why a statement is not packed. [`Reason::label`] is stable, for counting; the text is for people.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Reason {
    /// The parser gave up.
    #[error("not understood: {0}")]
    NotUnderstood(String),
    /// Nothing but white space and comments.
    #[error("an empty statement")]
    Empty,
    /// Longer or deeper than the analysis goes.
    #[error("too {0} to be analysed")]
    TooLarge(&'static str),
    /// Several statements in one text are one transaction of their own.
    #[error("several statements in one text")]
    SeveralStatements,
    /// More of them than one unit may have.
    #[error("more than {} statements in one text", crate::limits::UNIT_STATEMENTS_MAX)]
    ManyStatements,
    /// BEGIN and its like.
    #[error("{0}: transactions of the client's own run on its own connection")]
    Transaction(String),
    /// SET and its like.
    #[error("{0} changes or reads the session")]
    Session(String),
    /// COPY.
    #[error("COPY has a protocol of its own")]
    Copy,
    /// DDL and other commands.
    #[error("{0} is not a SELECT, INSERT, UPDATE or DELETE")]
    Utility(String),
    /// A clause or kind of expression that is never packed.
    #[error("{0}")]
    Unsupported(&'static str),
    /// No WHERE that could name a row.
    #[error("no WHERE with column = value joined by AND")]
    NoEquality,
    /// A function outside the allow list.
    #[error("function {name} {why}")]
    Function {
        /// The function's name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An operator that is not PostgreSQL's own.
    #[error("operator {0} is not known to be harmless")]
    Operator(String),
    /// A cast to a type outside the allow list.
    #[error("cast to {0}, which is not a plain built-in type")]
    Cast(String),
    /// `xmin` and its like.
    #[error("system column {0} tells transactions apart")]
    SystemColumn(String),
    /// No facts came for the table.
    #[error("table {0} was not found")]
    NoTable(String),
    /// A view, foreign table, partitioned table, temporary table.
    #[error("{table} is {what}")]
    NotOrdinary {
        /// The table.
        table: String,
        /// What it is instead.
        what: &'static str,
    },
    /// A name that is not a column of the table.
    #[error("{0} is not a column of the table")]
    NoColumn(String),
    /// A column whose type runs code that is not known.
    #[error("column {0} has a type that may run code of its own")]
    ColumnType(String),
    /// A column of an interval with fields is written.
    #[error(
        "column {0} is an interval with fields, by which the server reads a constant but not a parameter"
    )]
    IntervalFields(String),
    /// A cast that users made between two types of the server's own.
    #[error("a cast from {0}, which users made, is not known to be harmless, and any statement can use it")]
    UserCast(String),
    /// No unique index is bound.
    #[error("no unique index of {0} has all its columns bound by equality")]
    NoUniqueIndex(String),
    /// ON CONFLICT DO UPDATE without a key.
    #[error("the row that ON CONFLICT would update can't be told from the statement")]
    ConflictTarget,
    /// A trigger that is not proven harmless.
    #[error("trigger {name} {why}")]
    Trigger {
        /// The trigger's name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A default, check, generated column or index calls something not known.
    #[error("{place} of the table calls {name}, which is not known to be harmless")]
    TableExpression {
        /// Which expression.
        place: String,
        /// What it calls.
        name: String,
    },
    /// A sequence with a cache: on several connections, its values would not ascend within a session.
    #[error(
        "the default of column {0} takes values of a sequence with a cache, which each connection keeps for itself"
    )]
    CachedSequence(String),
    /// A constraint that is checked at commit.
    #[error("a constraint of {0} is deferrable, so it may be checked only at commit")]
    Deferrable(String),
    /// Foreign keys that change other tables' rows.
    #[error("foreign keys of {0} change rows of that table too")]
    Cascade(String),
}

impl Reason {
    /// Whether it is that a transaction begins.
    pub fn is_begin(&self) -> bool {
        matches!(self, Self::Transaction(word) if matches!(word.as_str(), "BEGIN" | "START"))
    }

    /// A stable name for counting.
    pub fn label(&self) -> &'static str {
        match self {
            Self::NotUnderstood(_) => "not_understood",
            Self::Empty => "empty",
            Self::TooLarge(_) => "too_large",
            Self::SeveralStatements => "several_statements",
            Self::ManyStatements => "many_statements",
            Self::Transaction(_) => "transaction",
            Self::Session(_) => "session",
            Self::Copy => "copy",
            Self::Utility(_) => "utility",
            Self::Unsupported(_) => "form",
            Self::NoEquality => "no_equality",
            Self::Function { .. } => "function",
            Self::Operator(_) => "operator",
            Self::Cast(_) => "cast",
            Self::SystemColumn(_) => "system_column",
            Self::NoTable(_) => "no_table",
            Self::NotOrdinary { .. } => "not_ordinary",
            Self::NoColumn(_) => "no_column",
            Self::ColumnType(_) => "column_type",
            Self::IntervalFields(_) => "interval_fields",
            Self::UserCast(_) => "user_cast",
            Self::NoUniqueIndex(_) => "no_unique_index",
            Self::ConflictTarget => "conflict_target",
            Self::Trigger { .. } => "trigger",
            Self::TableExpression { .. } => "table_expression",
            Self::CachedSequence(_) => "cached_sequence",
            Self::Deferrable(_) => "deferrable",
            Self::Cascade(_) => "cascade",
        }
    }
}

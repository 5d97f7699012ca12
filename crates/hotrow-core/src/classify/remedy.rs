//! What to do about a statement that is passed through: a form that can be packed, or nothing. There is no remedy where none
//! is known. A test tries each of them on a server.

use crate::classify::reason::{Reason, StatementKind};
use crate::page;

macro_rules! remedies {
    ($($name:ident = $text:expr;)*) => {
        /// What to do about a statement that is passed through.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Remedy {
            $(#[doc = $text] $name,)*
        }

        impl Remedy {
            /// All of them.
            pub const ALL: &[Remedy] = &[$(Remedy::$name),*];

            /// As a sentence without its end.
            pub fn text(self) -> &'static str {
                match self {
                    $(Remedy::$name => $text,)*
                }
            }
        }
    };
}

remedies! {
    Nothing = "nothing: a statement of this kind is passed through at full speed";
    NothingOrKey = "nothing, if the statement is for several rows: it is passed through at full speed. For one row, compare all columns of a unique key in WHERE: column = value, column IN (...), column = ANY (...), joined by AND";
    NothingOrIndex = "nothing, if several rows can have the compared values: the statement is passed through at full speed. If they identify one row, compare all columns of a unique key, or create a unique index on the compared columns";
    NothingOrBuiltInCast = "nothing, if the driver writes the cast: the statement is passed through at full speed. Otherwise leave the cast out, or cast to a built-in type";
    NothingOrValues = "nothing, if the rows that it reads can change meanwhile: the statement is passed through at full speed. Otherwise read them first, and send them in VALUES";
    Queue = concat!("take the rows in one statement: UPDATE ... WHERE key = (SELECT key FROM the same table WHERE state = 'new' ORDER BY key LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING ..., or use the hotrow schema's queues (", page!("queues.md"), ")");
    SkipLocked = "write FOR UPDATE SKIP LOCKED into the query that finds the rows, if the statement may take other rows than those that another transaction has locked";
    CheckedChange = "read the values first, and repeat the subquery's conditions: UPDATE ... WHERE key = value AND condition: if no row is changed, another client was first";
    OneStatement = "if the transaction checks and changes this row only, do both in one statement: UPDATE ... WHERE key = value AND condition RETURNING ...";
    EachRow = "if the program knows the rows, send a statement for each of them, all in one message: they commit together if each of them can be packed";
    FewerRows = "divide the list into several statements, if they need not commit together";
    FewerStatements = "divide it into several messages, if its statements need not commit together";
    Explain = "run hotrow explain with the text: it names each statement that cannot be packed, and why. If it names none, the text fails too often in lanes, or takes too long there";
    Transaction = concat!("send BEGIN to COMMIT in one message, with READ COMMITTED, without savepoints, and with statements that can all be packed; or use autocommit: a single statement needs no transaction; or hold writes back (", page!("deferred.md"), ")");
    Statements = concat!("send its statements instead, all in one message: they commit together if each of them can be packed. Or write a function with a merge rule (", page!("merge-rules.md"), ") or a pack rule (", page!("pack-rules.md"), ")");
    OwnFunction = concat!("use PostgreSQL's own functions, an IMMUTABLE function that uses its arguments only, or a function with a merge rule (", page!("merge-rules.md"), ") or a pack rule (", page!("pack-rules.md"), ")");
    MergedCall = concat!("add a pack rule if the function leaves nothing in the session and is short (", page!("pack-rules.md"), "). ", page!("merge-rules.md"), " says which calls are merged: those of a function with a merge rule, with all required arguments, a key that is a parameter or a constant, and a role that can execute the function and its batch function");
    PgmqRules = concat!("declare its functions: SELECT hotrow.add_pack_rule(oid::text, 'queue_name') FROM pg_proc WHERE pronamespace = 'pgmq'::regnamespace AND proname IN ('send', 'send_batch', 'read', 'pop', 'delete', 'archive', 'set_vt') (", page!("pack-rules.md"), ")");
    GraphileWorkerRules = concat!("declare its functions: SELECT hotrow.add_pack_rule(oid::text, 'identifier') FROM pg_proc WHERE oid::regproc::text = 'graphile_worker.add_job' (", page!("pack-rules.md"), ")");
    PgqueRules = concat!("declare its functions: SELECT hotrow.add_pack_rule(oid::text, '1') FROM pg_proc WHERE oid::regproc::text IN ('pgque.send', 'pgque.insert_event', 'pgq.insert_event') (", page!("pack-rules.md"), ")");
    SettingAsParameter = "send the setting's value as a parameter";
    Returning = "use RETURNING in the statement that draws the value";
    AdvisoryCondition = "if the lock protects one row, write pg_try_advisory_xact_lock into the WHERE of its UPDATE or DELETE by key: if no row is changed, another transaction has the lock";
    OwnOperator = "use PostgreSQL's own operators";
    VersionColumn = "compare a column of the table, such as a version number that each UPDATE advances";
    TableOfView = "name the table instead of the view";
    PartitionedTable = "name the partitioned table instead of the partition";
    UnchangedKey = "leave the column out of SET if its value stays the same";
    BuiltInColumn = "use a built-in type, an enumeration or a domain for the column";
    PlainInterval = "use the type interval without a field restriction for the column";
    OwnFunctionInTable = "use PostgreSQL's own functions there, or an IMMUTABLE function that uses its arguments only";
    ConflictColumns = "name the columns of the unique index, and insert values for them: ON CONFLICT (column, ...) DO UPDATE";
    OwnRowTrigger = "let the trigger change its own row only, in PL/pgSQL with PostgreSQL's own functions";
    SequenceWithoutCache = "use ALTER SEQUENCE ... CACHE 1";
    ImmediateConstraint = "make the constraint NOT DEFERRABLE";
    CurrentTime = "use now() or current_date";
    QualifiedByTable = "qualify columns with the table's name or its alias only";
    SameSettings = "nothing: the statements after it are packed with those of clients that have the same settings. Only if the role has too many combinations of settings in use, the session keeps a server connection";
    LocalSetting = "use SET LOCAL in the transaction that needs the setting: after SET, the session keeps a server connection until RESET ALL or DISCARD ALL";
    LocalSetConfig = "pass true as the third argument, in the transaction that needs the setting: otherwise the session keeps a server connection until RESET ALL or DISCARD ALL";
    ConstantSetting = "write the setting's name as a constant: otherwise the session keeps a server connection until it ends";
    RandomInClient = "draw the random numbers in the client: no command takes the seed back, so the session keeps a server connection until it ends";
    LocalRole = "log in as that role, or use SET LOCAL in the transaction that needs it: otherwise the session keeps a server connection until RESET ROLE or DISCARD ALL";
    ResetAll = "use RESET ALL or DISCARD ALL: until then, a session that has set a custom setting keeps a server connection";
    PreparedByProtocol = "prepare the statement through the protocol (Parse), as drivers do";
}

impl Reason {
    /// What to do about the statement, if something is known.
    pub fn remedy(&self) -> Option<&'static str> {
        self.known_remedy().map(Remedy::text)
    }

    fn known_remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::Of(kind, reason) => return of_kind(*kind, reason),
            Self::NotUnderstood(_)
            | Self::Empty
            | Self::TooLarge(_)
            | Self::NoTable(_)
            | Self::NoColumn(_)
            | Self::NotReturned(_)
            | Self::Partition { .. }
            | Self::Distributed { .. }
            | Self::Cascade(_) => return None,
            Self::Utility(command) => return utility(command),
            Self::SeveralStatements => Remedy::Explain,
            Self::ManyStatements => Remedy::FewerStatements,
            Self::Transaction(_) => Remedy::Transaction,
            Self::Session(name) => return session(name),
            Self::Copy => Remedy::Nothing,
            Self::Unsupported(what) => return unsupported(what),
            Self::NoEquality => Remedy::NothingOrKey,
            Self::NoUniqueIndex(_) => Remedy::NothingOrIndex,
            Self::ManyRows => Remedy::FewerRows,
            Self::Function { name, why } => return function(name, why),
            Self::Operator(_) => Remedy::OwnOperator,
            Self::Cast(_) => Remedy::NothingOrBuiltInCast,
            Self::SystemColumn(_) => Remedy::VersionColumn,
            Self::NotOrdinary { what: "a partition", .. } => Remedy::PartitionedTable,
            Self::NotOrdinary { what: "a view", .. } | Self::View { .. } | Self::Computed(_) => {
                Remedy::TableOfView
            }
            Self::NotOrdinary { .. } => return None,
            Self::ChangedTwice(_) => Remedy::EachRow,
            Self::MovesRow(_) => Remedy::UnchangedKey,
            Self::ColumnType(_) => Remedy::BuiltInColumn,
            Self::IntervalFields(_) => Remedy::PlainInterval,
            Self::UserCast(_) | Self::TableExpression { .. } => Remedy::OwnFunctionInTable,
            Self::ConflictTarget => Remedy::ConflictColumns,
            Self::Trigger { .. } => Remedy::OwnRowTrigger,
            Self::CachedSequence(_) => Remedy::SequenceWithoutCache,
            Self::Deferrable(_) => Remedy::ImmediateConstraint,
        })
    }
}

/// The remedy of a reason that stands for something else in statements of another kind.
fn of_kind(kind: StatementKind, reason: &Reason) -> Option<Remedy> {
    Some(match (kind, reason) {
        (StatementKind::SkipsLocked, _) => Remedy::Queue,
        (StatementKind::Reads, _) => Remedy::Nothing,
        (StatementKind::Inserts, Reason::Unsupported("a subquery")) => Remedy::NothingOrValues,
        (StatementKind::Inserts, reason) => return reason.known_remedy(),
    })
}

/// Other commands read or change many rows, or the schema.
fn utility(command: &str) -> Option<Remedy> {
    matches!(command, "DO" | "CALL").then_some(Remedy::Statements)
}

fn session(command: &str) -> Option<Remedy> {
    Some(match command {
        "SET" | "RESET" | "set_config" => Remedy::SameSettings,
        "SET of a custom setting" => Remedy::LocalSetting,
        "set_config of a custom setting" => Remedy::LocalSetConfig,
        "set_config of a setting that its text does not name" => Remedy::ConstantSetting,
        "SET seed" | "set_config of seed" | "setseed" => Remedy::RandomInClient,
        "SET ROLE" | "SET SESSION AUTHORIZATION" | "set_config of the role" => Remedy::LocalRole,
        "RESET of a custom setting" => Remedy::ResetAll,
        "PREPARE" | "EXECUTE" => Remedy::PreparedByProtocol,
        _ => return None,
    })
}

/// The functions of libraries whose calls leave nothing and are short.
fn rules_of_library(name: &str) -> Option<Remedy> {
    Some(match name {
        "pgmq.send" | "pgmq.send_batch" | "pgmq.read" | "pgmq.pop" | "pgmq.delete" | "pgmq.archive"
        | "pgmq.set_vt" => Remedy::PgmqRules,
        "graphile_worker.add_job" => Remedy::GraphileWorkerRules,
        "pgque.send" | "pgque.insert_event" | "pgq.insert_event" => Remedy::PgqueRules,
        _ => return None,
    })
}

fn function(name: &str, why: &str) -> Option<Remedy> {
    Some(match why {
        "is user-defined and not proven to use its arguments only"
        | "is not known to be harmless"
        | "has no rule that matches this call" => match (rules_of_library(name), why) {
            (Some(remedy), _) => remedy,
            (None, "has no rule that matches this call") => Remedy::MergedCall,
            (None, _) => Remedy::OwnFunction,
        },
        "reads the session's settings" => Remedy::SettingAsParameter,
        "reads the session's sequence values" => Remedy::Returning,
        "takes or releases an advisory lock" => Remedy::AdvisoryCondition,
        _ => return None,
    })
}

fn unsupported(what: &str) -> Option<Remedy> {
    Some(match what {
        "UPDATE with FROM" | "DELETE with USING" | "MERGE" | "ON CONFLICT with several rows" => {
            Remedy::EachRow
        }
        "a subquery" => Remedy::CheckedChange,
        "a query for its rows that waits for locked ones" => Remedy::SkipLocked,
        "INSERT from a query" => Remedy::NothingOrValues,
        "a row lock such as FOR UPDATE, which outlives the statement" => Remedy::OneStatement,
        "a date or time by name, such as 'now'" => Remedy::CurrentTime,
        "a call whose arguments do not show its key" | "a call that can wait but cannot be merged" => {
            Remedy::MergedCall
        }
        "a column that does not belong to the table" => Remedy::QualifiedByTable,
        _ => return None,
    })
}

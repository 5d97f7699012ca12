//! A form of a statement that can be packed, for each reason why it is passed through. It says nothing where
//! packing would not help.

use crate::classify::reason::Reason;

const KEY: &str = "add the unique key's columns to WHERE: compare each with a value or a list (column = value, \
    column IN (...), column = ANY (...), joined by AND); create a unique index if the table has none";
const TRANSACTION: &str = "send BEGIN to COMMIT in one message, with READ COMMITTED, without savepoints, and with \
    statements that can all be packed; or use autocommit: a single statement needs no transaction";
const ONE_MESSAGE: &str = "send a statement for each row or table, all in one message: they commit together if each of them can be packed";
const CODE: &str = "use PostgreSQL's own functions, an IMMUTABLE function that uses its arguments only, or a function \
    with a merge rule (docs/merge-rules.md)";
const VIEW: &str = "name the table instead of the view";

impl Reason {
    /// What to write instead, if the statement then can be packed.
    pub fn remedy(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotUnderstood(_)
            | Self::Empty
            | Self::NoTable(_)
            | Self::NoColumn(_)
            | Self::NotReturned(_)
            | Self::Partition { .. }
            | Self::Distributed { .. } => {
                return None;
            }
            Self::Utility(command) => return utility(command),
            Self::TooLarge(_) => "send a shorter statement, with parameters instead of long constants",
            Self::SeveralStatements => "send each statement as a message of its own",
            Self::ManyStatements => "send fewer statements in one message",
            Self::Transaction(_) => TRANSACTION,
            Self::Session(name) => return session(name),
            Self::Copy => "for few rows, use INSERT with VALUES",
            Self::Unsupported(what) => return unsupported(what),
            Self::NoEquality | Self::NoUniqueIndex(_) => KEY,
            Self::ManyRows => "name fewer rows in one statement",
            Self::Function { why, .. } => return function(why),
            Self::Operator(_) => "use PostgreSQL's own operators",
            Self::Cast(_) => "leave the cast out, or cast to a built-in type",
            Self::SystemColumn(_) => "use a column of the table, such as a version number",
            Self::NotOrdinary { what, .. } => return relation(what),
            Self::View { .. } | Self::Computed(_) => VIEW,
            Self::ChangedTwice(_) => ONE_MESSAGE,
            Self::MovesRow(_) => "leave the column out of SET if its value stays the same",
            Self::ColumnType(_) => "use a built-in type, an enumeration or a domain for the column",
            Self::IntervalFields(_) => "use the type interval without a field restriction for the column",
            Self::UserCast(_) | Self::TableExpression { .. } => {
                "use PostgreSQL's own functions there, or an IMMUTABLE function that uses its arguments only"
            }
            Self::ConflictTarget => {
                "name the columns of the unique index: ON CONFLICT (column, ...) DO UPDATE"
            }
            Self::Trigger { .. } => {
                "let the trigger change its own row only, in PL/pgSQL with PostgreSQL's own functions"
            }
            Self::CachedSequence(_) => "use ALTER SEQUENCE ... CACHE 1",
            Self::Deferrable(_) => "make the constraint NOT DEFERRABLE",
            Self::Cascade(_) => "change the rows of that table first, with statements of their own",
        })
    }
}

/// Other commands read or change many rows, or the schema.
fn utility(command: &str) -> Option<&'static str> {
    Some(match command {
        "DO" | "CALL" => {
            "send its statements instead, all in one message: they commit together if each of them can be packed. Or write a \
             function with a merge rule (docs/merge-rules.md)"
        }
        "LOCK" => {
            "leave it out, and change each row with one statement: UPDATE ... WHERE key = value AND condition RETURNING ..."
        }
        _ => return None,
    })
}

fn session(command: &str) -> Option<&'static str> {
    Some(match command {
        "SET" | "RESET" | "set_config" => {
            "nothing: the statements after it are packed with those of clients that have the same settings. Only if the \
             role has too many combinations of settings in use, the session keeps a server connection"
        }
        "SET of a custom setting" => {
            "use SET LOCAL in the transaction that needs the setting: after SET, the session keeps a server connection \
             until RESET ALL or DISCARD ALL"
        }
        "set_config of a custom setting" => {
            "pass true as the third argument, in the transaction that needs the setting: otherwise the session keeps a \
             server connection until RESET ALL or DISCARD ALL"
        }
        "set_config of a setting that its text does not name" => {
            "write the setting's name as a constant: otherwise the session keeps a server connection until it \
             ends"
        }
        "SET seed" | "set_config of seed" | "setseed" => {
            "draw the random numbers in the client: no command takes the seed back, so the session keeps a server \
             connection until it ends"
        }
        "SET ROLE" | "SET SESSION AUTHORIZATION" | "set_config of the role" => {
            "log in as that role, or use SET LOCAL in the transaction that needs it: otherwise the session keeps a server \
             connection until DISCARD ALL"
        }
        "RESET of a custom setting" => {
            "use RESET ALL or DISCARD ALL: until then, a session that has set a custom setting keeps a server connection"
        }
        "RESET ROLE" | "RESET SESSION AUTHORIZATION" => {
            "use DISCARD ALL: until then, a session that has changed its role keeps a server connection"
        }
        "PREPARE" | "EXECUTE" => "prepare the statement through the protocol (Parse), as drivers do",
        _ => return None,
    })
}

fn function(why: &str) -> Option<&'static str> {
    Some(match why {
        "is user-defined and not proven to use its arguments only" | "is not known to be harmless" => CODE,
        "has no merge rule that matches this call" => {
            "add a merge rule for the function (docs/merge-rules.md), call it with all required arguments, and let the role \
             execute it and its batch twin (functions of the schema pack: grant hotrow_caller to the role)"
        }
        "depends on the transaction" | "depends on the connection" | "reads the session's settings" => {
            "send the value as a parameter"
        }
        "reads the session's sequence values" => "use RETURNING in the statement that draws the value",
        "takes or releases an advisory lock" => {
            "use pg_try_advisory_xact_lock in the WHERE of an UPDATE or DELETE by key"
        }
        "advances a sequence in an argument" => {
            "draw the value within the function, or use gen_random_uuid()"
        }
        _ => return None,
    })
}

fn relation(what: &str) -> Option<&'static str> {
    Some(match what {
        "a view" => VIEW,
        "a partition" => "name the partitioned table instead of the partition",
        "rewritten by rules" => "use a trigger that changes its own row only instead of the rule",
        _ => return None,
    })
}

fn unsupported(what: &str) -> Option<&'static str> {
    Some(match what {
        "a join"
        | "UPDATE with FROM"
        | "DELETE with USING"
        | "WITH"
        | "WITH within WITH"
        | "MERGE"
        | "UNION, INTERSECT or EXCEPT"
        | "ON CONFLICT with several rows" => ONE_MESSAGE,
        "WITH of which no statement changes rows" => {
            "leave WITH out, and read the row with SELECT ... WHERE key = value"
        }
        "a query other than a plain SELECT" => "use SELECT columns FROM table WHERE key = value",
        "an aggregate" => "read the columns of the row: its key finds one row at most",
        "a subquery" | "INSERT from a query" => "read the values first, and send them as parameters",
        "a row lock such as FOR UPDATE, which outlives the statement" => {
            "change the row with one statement: UPDATE ... WHERE key = value AND condition RETURNING ..."
        }
        "LIMIT or OFFSET with an expression" => "use a parameter or a constant",
        "LIMIT, OFFSET or FETCH of several rows" => "leave it out, and name only the rows that are needed",
        "FETCH with TIES or PERCENT" | "DISTINCT, or a clause that PostgreSQL does not have" => {
            "leave it out: the key finds each row once"
        }
        "ORDER BY with USING, or a clause that PostgreSQL does not have" => "use ASC or DESC",
        "SET of a part of a column" | "INSERT into a part of a column" => {
            "assign the whole column, for example with jsonb_set or array_replace"
        }
        "a date or time by name, such as 'now'" => "use now() or current_date",
        "a call whose arguments do not show its key" => "pass the key as a parameter or a constant",
        "a call that can wait but cannot be merged" => {
            "use SELECT columns FROM function(...), with the waiting time as a parameter or a constant"
        }
        "a column that does not belong to the table" => {
            "qualify columns with the table's name or its alias only"
        }
        _ => return None,
    })
}

//! The parts of a statement that may be packed. They are read in `point` and `insert` and judged in
//! `decision`.

use crate::classify::effects::effect::Effect;
use crate::classify::facts::{Column, Facts, TableFacts};
use crate::classify::known::functions;
use crate::classify::text::names::{FunctionName, TableName, TypeName};

/// The kind of statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Verb {
    #[default]
    Select,
    Insert,
    Update,
    Delete,
}

impl Verb {
    /// Whether the statement itself changes rows.
    pub fn writes(self) -> bool {
        self != Verb::Select
    }
}

/// A value in a statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operand {
    /// A parameter, counted from zero: `$1` is 0.
    Param(u16),
    /// A literal, as the text format has it.
    Const(String),
    /// One of these parameters and constants.
    OneOf(Vec<Operand>),
    /// An element of a parameter that is an array.
    Element(u16),
    /// The value is converted to the type with this OID. None stands for types with modifiers and for types that are not in
    /// `known::builtin_types`. A number is a constant of type `numeric`.
    Cast(Box<Operand>, Option<u32>),
    /// The element of a parameter that is an array, for row after row.
    Unnested(u16),
    /// The values of row after row.
    Rows(Vec<Operand>),
    Null,
    /// The column's default.
    Default,
    /// All columns of the statement in WITH from which an INSERT reads its rows.
    All,
    /// Anything else.
    Expression,
}

/// `column = value`, `column IN (...)` or `column = ANY (...)` in a WHERE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Equality {
    pub column: String,
    /// A parameter, a constant, or several of them.
    pub operand: Operand,
}

/// A query that finds the first rows of the statement's own table that no other transaction has locked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// The columns that are compared with what it returns. `ctid` can be among them.
    pub ties: Vec<String>,
    /// Equalities that hold for every row that it finds.
    pub equalities: Vec<Equality>,
    /// The largest number of rows that it returns.
    pub limit: Operand,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct InsertParts {
    /// The column list; empty when not written.
    pub columns: Vec<String>,
    /// The rows of VALUES; one empty row for DEFAULT VALUES. If the rows come from a statement in WITH, one row of what is
    /// selected there. If they come from arrays, one row with the values of all rows.
    pub rows: Vec<Vec<Operand>>,
    /// The parameters among these arrays. None if the rows do not come from arrays.
    pub arrays: Option<Vec<ArrayParam>>,
    pub conflict: Option<Conflict>,
}

impl InsertParts {
    /// Whether it has several rows, apart from those of a statement in WITH.
    pub(crate) fn is_bulk(&self) -> bool {
        self.rows.len() > 1 || self.arrays.is_some()
    }
}

/// A parameter whose elements are in rows of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayParam {
    /// Counted from zero.
    pub index: u16,
    /// The statement casts it to an array.
    pub is_cast: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// The columns of the target. Empty if there is none or a constraint is named.
    pub columns: Vec<String>,
    pub constraint: Option<String>,
    /// DO UPDATE, not DO NOTHING.
    pub updates: bool,
}

/// A statement that can be packed if the catalog agrees.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Candidate {
    /// The kind of statement.
    pub verb: Verb,
    /// The table. `None` for a SELECT without FROM.
    pub table: Option<TableName>,
    /// Equalities that hold for every row that it finds.
    pub equalities: Vec<Equality>,
    /// It has LIMIT, OFFSET or FETCH.
    pub limited: bool,
    /// The query that finds the rows of an UPDATE or DELETE.
    pub head: Option<Head>,
    /// INSERT's parts.
    pub insert: Option<InsertParts>,
    /// Columns that get new values by UPDATE or ON CONFLICT DO UPDATE.
    pub assigned: Vec<String>,
    /// Columns that are set to their DEFAULT by UPDATE or ON CONFLICT DO UPDATE.
    pub defaulted: Vec<String>,
    /// All functions it calls.
    pub functions: Vec<FunctionName>,
    /// All operators it uses.
    pub operators: Vec<String>,
    /// All types it casts to.
    pub casts: Vec<String>,
    /// All types it casts to that are not built in.
    pub own_casts: Vec<TypeName>,
    /// Names of collations, and words of string constants that a function can read as a catalog name.
    pub objects: Vec<String>,
    /// All columns it mentions.
    pub columns: Vec<String>,
    /// PostgreSQL's own functions of several rows, where they are harmless: `unnest` of a list of keys, `count` of the rows of a
    /// statement in WITH.
    pub of_rows: Vec<&'static str>,
    /// It consists of a function call, which may have a merge rule.
    pub call: Option<Call>,
    /// It returns rows: SELECT, or RETURNING.
    pub returns_rows: bool,
    /// It locks its row until the transaction ends, by FOR UPDATE. It is never packed.
    pub locks_row: bool,
    /// The columns of its rows: the list of SELECT or RETURNING.
    pub results: Vec<ResultColumn>,
    /// The statement in WITH from which it reads its rows.
    pub reads: Option<Reading>,
    /// The statements in its WITH, in order. Each is a part of the whole, which this statement ends.
    pub with: Vec<Common>,
}

/// A statement in WITH.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Common {
    pub name: String,
    /// Other names for its first columns.
    pub columns: Vec<String>,
    pub statement: Candidate,
}

/// The use of the rows of an earlier statement in WITH.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The index of that statement in WITH.
    pub place: usize,
    /// The columns that are mentioned.
    pub columns: Vec<String>,
}

/// An item of the list of SELECT or RETURNING.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ResultColumn {
    /// A column with this name.
    Named(String),
    /// An expression to which PostgreSQL gives a name.
    Unnamed,
    All,
}

impl Candidate {
    /// All parts of the statement: those in WITH, and itself.
    pub fn parts(&self) -> impl Iterator<Item = &Candidate> {
        self.with.iter().map(|common| &common.statement).chain([self])
    }

    /// The statement's effects on the session if it is passed through.
    pub fn effect(&self) -> Effect {
        self.parts().map(Self::effect_of_part).fold(Effect::NONE, Effect::union)
    }

    fn effect_of_part(&self) -> Effect {
        let mut effect = Effect { touches_sequence: self.verb == Verb::Insert, ..Effect::NONE };
        for function in &self.functions {
            let of_function = match function.schema.as_deref() {
                None | Some("pg_catalog") => functions::behaviour(&function.name).effect(),
                Some("hotrow") => Effect::NONE,
                Some(_) => Effect::UNKNOWN,
            };
            effect = effect.union(of_function);
        }
        let temporary = self.table.as_ref().and_then(|table| table.schema.as_deref());
        effect.temporary |= temporary.is_some_and(|schema| schema.starts_with("pg_temp"));
        effect
    }

    /// A called function that changes settings. The function's arguments decide which ones.
    pub(crate) fn changes_settings(&self) -> Option<&str> {
        let mut names = self.parts().flat_map(|part| &part.functions).map(|function| &*function.name);
        names.find(|name| functions::behaviour(name) == functions::Behaviour::ChangesSettings)
    }

    /// The types of its parameters follow only from the server's description of the statement: an argument of its call is an
    /// expression, or a parameter can be used in several statements of its WITH.
    pub fn needs_description(&self) -> bool {
        let arguments = self.call.iter().flat_map(|call| &call.arguments);
        let is_computed = |argument: &Argument| matches!(argument.value, ArgumentValue::Computed(_));
        !self.with.is_empty() || arguments.into_iter().any(is_computed)
    }

    /// Whether the verdict follows from the table that each part names, and from objects of other kinds that no change of a table can
    /// bring in: no name in it can mean a new table's type or a sequence.
    pub fn relies_on_tables_only(&self, facts: &Facts) -> bool {
        let parts = self.parts().zip(facts.with.iter().chain([facts]));
        parts.into_iter().all(|(part, facts)| {
            let is_plain = |table: &TableFacts| {
                table.views.is_empty() && table.triggers.is_empty() && table.expressions.is_empty()
            };
            let names_no_type = part.casts.is_empty() && part.own_casts.is_empty() && part.objects.is_empty();
            names_no_type && part.call.is_none() && facts.table.as_ref().is_some_and(is_plain)
        })
    }

    /// It uses a value of a sequence that it names.
    pub fn names_sequence(&self) -> bool {
        self.functions
            .iter()
            .any(|name| functions::behaviour(&name.name) == functions::Behaviour::MovesSequence)
    }

    /// It updates an existing row.
    pub(crate) fn updates(&self) -> bool {
        let conflict = self.insert.as_ref().and_then(|insert| insert.conflict.as_ref());
        self.verb == Verb::Update || conflict.is_some_and(|conflict| conflict.updates)
    }

    /// The value an INSERT gives a column: of several rows, all their values.
    pub(crate) fn inserted(&self, name: &str, table: &TableFacts) -> Option<Operand> {
        let position = self.position(name, table)?;
        let mut values = self.insert.as_ref()?.rows.iter().map(|row| row.get(position).cloned());
        match values.len() {
            1 => values.next().flatten(),
            _ => values.collect::<Option<_>>().map(Operand::Rows),
        }
    }

    /// Whether an INSERT gives the column a value in some row.
    pub(crate) fn gives(&self, name: &str, table: &TableFacts) -> bool {
        let Some(position) = self.position(name, table) else { return false };
        let rows = self.insert.iter().flat_map(|insert| &insert.rows);
        rows.filter_map(|row| row.get(position)).any(|value| *value != Operand::Default)
    }

    /// The index of a column's value in the rows of VALUES.
    fn position(&self, name: &str, table: &TableFacts) -> Option<usize> {
        let columns = &self.insert.as_ref()?.columns;
        if columns.is_empty() {
            table.columns.iter().position(|column| column.name == name)
        } else {
            columns.iter().position(|column| column == name)
        }
    }

    /// Whether an INSERT uses the column's default in some row.
    pub(crate) fn uses_default_of(&self, column: &Column, table: &TableFacts) -> bool {
        let inserted = self.insert.as_ref().is_some_and(|insert| {
            let position = self.position(&column.name, table);
            insert.rows.iter().any(|row| {
                matches!(position.and_then(|position| row.get(position)), None | Some(Operand::Default))
            })
        });
        inserted || self.defaulted.contains(&column.name)
    }
}

/// A call with arguments that are parameters, constants or expressions over them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    pub function: FunctionName,
    /// The functions that its arguments call.
    pub inner_functions: Vec<FunctionName>,
    /// Its arguments as written.
    pub arguments: Vec<Argument>,
    /// The use of its result.
    pub output: Output,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Argument {
    /// `name => value`.
    pub name: Option<String>,
    pub value: ArgumentValue,
    /// It has a minus sign.
    pub negated: bool,
    /// The OID of the type to which it is cast.
    pub cast: Option<u32>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ArgumentValue {
    /// A parameter, counted from zero.
    Param(u16),
    /// A string. It takes the type of the parameter.
    String(String),
    /// A number, as written.
    Number(String),
    /// TRUE or FALSE.
    Boolean(bool),
    Null,
    /// An expression over parameters and constants.
    Computed(Vec<Part>),
}

/// A part of an expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// SQL text.
    Text(String),
    /// A parameter, counted from zero.
    Param(u16),
}

/// The use of a call's result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// `SELECT f()`: one value, under this name.
    Value(Option<String>),
    /// `SELECT items FROM f() AS alias`.
    Rows {
        alias: Option<String>,
        /// The items. An empty list means `*`.
        items: Vec<Item>,
    },
}

/// A column that is selected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    /// Its name.
    pub column: String,
    pub alias: Option<String>,
}

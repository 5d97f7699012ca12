//! What the catalogue says about a table and about names, as `table_facts.sql` and `function_facts.sql` tell it.
//! Never judges it.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Deserialize;

/// Everything the decision needs from the catalogue.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct Facts {
    /// The table; `None` when there is none of that name, or the statement names none.
    pub table: Option<TableFacts>,
    /// What exists outside `pg_catalog` under the names that were looked up.
    pub functions: Vec<FunctionFact>,
    /// The merge rules for functions of these names.
    #[serde(default)]
    pub rules: Vec<MergeRule>,
    /// There are sequences with a cache in the database; asked only for a statement that names a sequence.
    #[serde(default)]
    pub cached_sequences: bool,
}

impl Facts {
    /// The state of the catalogue that a statement is understood by: two facts of one state are the same, and a
    /// statement that is prepared under one means the same under the other.
    pub fn state(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let table = self.table.as_ref().map(|table| (table.oid, &table.fingerprint));
        (table, &self.functions, &self.rules, self.cached_sequences).hash(&mut hasher);
        hasher.finish()
    }
}

/// A merge rule: concurrent calls of a function may become one call of its twin.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash)]
pub struct MergeRule {
    /// The function's schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its name alone, without the schema, can mean it.
    pub visible: bool,
    /// Its parameters in order.
    pub parameters: Vec<Parameter>,
    /// How many of them have no default.
    pub required: usize,
    /// The columns it returns.
    pub columns: Vec<String>,
    /// They have names of their own: else the only one is called like the function, or its alias.
    pub named: bool,
    /// What a call is as a value.
    pub result: ResultKind,
    /// It returns any number of rows: then the twin says which call each of its rows is for.
    pub returns_set: bool,
    /// The twin's schema.
    pub batch_schema: String,
    /// The twin's name.
    pub batch_name: String,
    /// Which parameter names the row a call contends for, counted from zero.
    pub key_argument: usize,
    /// Functions with the same key space contend for the same rows.
    pub key_space: String,
    /// How many calls one call of the twin may stand for.
    pub most_calls: u16,
    /// Which parameter says how long a call waits for something to answer, counted from zero.
    pub wait_argument: Option<usize>,
    /// The client may call both.
    pub callable: bool,
}

/// What a function's call is as a value.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
#[serde(rename_all = "snake_case")]
pub enum ResultKind {
    /// A value of one column's type.
    Plain,
    /// A record.
    Record,
    /// A row of a type that has a name.
    Row,
}

/// A parameter of a function with a merge rule.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash)]
pub struct Parameter {
    /// Its name, which the twin's has too.
    pub name: String,
    /// Its type.
    pub type_oid: u32,
    /// The type of arrays of that.
    pub array_oid: u32,
}

/// One table.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct TableFacts {
    /// Its oid.
    pub oid: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// `pg_class.relkind`.
    pub relkind: char,
    /// `pg_class.relpersistence`.
    pub persistence: char,
    /// It has rewrite rules.
    pub has_rules: bool,
    /// Row security is enabled on it.
    pub row_security: bool,
    /// Other tables inherit from it.
    pub has_children: bool,
    /// It is a partition.
    pub is_partition: bool,
    /// A constraint or constraint trigger other than a foreign key is deferrable.
    pub deferrable: bool,
    /// Columns of foreign keys that are initially deferred.
    pub deferred_columns: Vec<String>,
    /// Its columns in order, dropped ones left out.
    pub columns: Vec<Column>,
    /// Its usable unique indexes: valid, immediate, no predicate, no expressions.
    pub unique_indexes: Vec<Index>,
    /// Triggers that are enabled and not part of a constraint.
    pub triggers: Vec<Trigger>,
    /// The text of check constraints (its own and its columns' domains'), index expressions and predicates.
    pub expressions: Vec<String>,
    /// Foreign keys that refer to this table.
    pub referrers: Vec<Referrer>,
    /// The state of the catalogue as far as the table is concerned (`table_fingerprint.sql`).
    #[serde(default)]
    pub fingerprint: String,
    /// The functions of its triggers, quoted, as far as the client's role can name them.
    #[serde(default)]
    pub trigger_functions: Vec<String>,
}

/// One column.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its number.
    pub attnum: i16,
    /// Its type's oid; for a domain, the type below it.
    pub type_oid: u32,
    /// Its type's name, for people.
    pub type_name: String,
    /// What kind of type it is.
    pub type_kind: TypeKind,
    /// Bytes it takes on average.
    pub avg_width: u32,
    /// The default's text; for a generated column the expression's.
    pub default: Option<String>,
    /// An interval restricted to fields, such as `interval minute`: the server reads a constant by them, a parameter not.
    #[serde(default)]
    pub interval_fields: bool,
    /// Generated from other columns.
    pub generated: bool,
    /// An identity column: its default moves a sequence.
    pub identity: bool,
    /// Its default takes values of a sequence from a stock that each connection keeps.
    #[serde(default)]
    pub cached_sequence: bool,
}

/// What may run when a value of a type is read, written or stored.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum TypeKind {
    /// PostgreSQL's own, or an array of it.
    Builtin,
    /// An enumeration, a domain (its checks are among the table's expressions) or an extension's base type.
    Harmless,
    /// Composite and range types, and types with casts written by users.
    Other,
}

/// One unique index.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// It is the primary key.
    pub primary: bool,
    /// Its key columns in order.
    pub columns: Vec<String>,
}

/// One trigger.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Trigger {
    /// Its name.
    pub name: String,
    /// Its function's language.
    pub language: String,
    /// Its function's source.
    pub source: String,
    /// Its function changes settings while it runs, or runs as its owner.
    pub special: bool,
    /// Its condition as part of the definition's text, when it has one.
    pub condition: Option<String>,
    /// Fires on INSERT.
    pub on_insert: bool,
    /// Fires on UPDATE.
    pub on_update: bool,
    /// Fires on DELETE.
    pub on_delete: bool,
}

/// A foreign key of another table (or this one) that refers to a table.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Referrer {
    /// The table that refers to this one.
    pub table: String,
    /// The columns here that it refers to.
    pub columns: Vec<String>,
    /// It is initially deferred.
    pub deferred: bool,
    /// It does something on DELETE.
    pub acts_on_delete: bool,
    /// It does something on UPDATE.
    pub acts_on_update: bool,
}

/// Something outside `pg_catalog` that bears a name the statement or the table uses.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash)]
pub struct FunctionFact {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// `function`, `operator` or `type`; `relation`, `text search configuration`, `text search dictionary` or `collation`;
    /// `setting`, with its value in the name, for those by which the server reads constants; or `cast`, for one that users
    /// made between two types of the server's own.
    pub kind: String,
    /// Its name alone, without the schema, can mean it.
    pub visible: bool,
    /// `pg_proc.provolatile` of the function, or of the operator's or cast's function.
    pub volatility: Option<char>,
    /// A function: it is an aggregate, window function or procedure, runs with rights or settings of its own, or has a
    /// parameter of a type that runs code. A type: it is not an enumeration, an array or a row all of whose parts are the
    /// server's own or such types, or one of its parts has a cast that runs code.
    pub special: bool,
    /// The language of the function, or of the operator's or cast's function.
    #[serde(default)]
    pub language: Option<String>,
    /// Its source.
    #[serde(default)]
    pub source: Option<String>,
    /// The extension it belongs to.
    pub extension: Option<String>,
    /// Its number and the transaction that wrote its row of the catalogue.
    #[serde(default)]
    pub version: String,
}

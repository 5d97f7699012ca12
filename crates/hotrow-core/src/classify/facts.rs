//! Facts from the catalog about a table and about names, as `table_facts.sql` and `function_facts.sql`
//! return them. They are not judged here.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde::Deserialize;

use crate::classify::text::names::FunctionName;
use crate::distribution::Distribution;

/// All facts that the decision needs from the catalog.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct Facts {
    /// The table. `None` if no table has that name, or if the statement names no table.
    pub table: Option<TableFacts>,
    /// Objects outside `pg_catalog` with the names that were looked up.
    pub functions: Vec<FunctionFact>,
    /// The rules for functions of these names.
    #[serde(default)]
    pub rules: Rules,
    /// The database has sequences with a cache. This is queried only for a statement that names a sequence.
    #[serde(default)]
    pub cached_sequences: bool,
    /// The facts about each statement in WITH.
    #[serde(default)]
    pub with: Vec<Facts>,
}

impl Facts {
    /// The users' functions that a call of this name can mean.
    pub(crate) fn namesakes<'a>(
        &'a self,
        function: &'a FunctionName,
    ) -> impl Iterator<Item = &'a FunctionFact> + Clone {
        self.functions.iter().filter(move |fact| {
            let means = function.schema.as_ref().map_or(fact.visible, |schema| *schema == fact.schema);
            fact.kind == "function" && fact.name == function.name && means
        })
    }

    /// A hash of the catalog state that these facts describe. Facts with the same hash are equal, and a
    /// statement that was prepared under one of them means the same under the other.
    pub fn state(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let table = self.table.as_ref().map(|table| (table.oid, &table.fingerprint));
        (table, &self.functions, &self.rules, self.cached_sequences).hash(&mut hasher);
        self.with.iter().for_each(|facts| facts.state().hash(&mut hasher));
        hasher.finish()
    }
}

/// The server's refusal of a question about the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its SQLSTATE.
    pub code: String,
    pub message: String,
}

/// What the owner of the hotrow schema says about functions.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash)]
pub struct Rules {
    pub merge: Vec<MergeRule>,
    pub pack: Vec<PackRule>,
}

/// A pack rule: calls of a function leave nothing in the session, change rows in their transaction only, and are short.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash)]
pub struct PackRule {
    /// The function's OID.
    pub oid: u32,
    /// The function's schema.
    pub schema: String,
    pub name: String,
    /// Its parameters in order.
    pub parameters: Vec<DeclaredParameter>,
    /// Index, from zero, of the parameter that identifies the row for which a call contends. Without it, all calls of the key
    /// space contend with each other.
    pub key_argument: Option<usize>,
    /// Functions with the same key space contend for the same rows.
    pub key_space: String,
    /// It is not a function of the hotrow schema, and the database has Citus: the function may change rows of other nodes.
    #[serde(skip)]
    pub may_change_other_nodes: bool,
}

/// A parameter of a function with a pack rule.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash)]
pub struct DeclaredParameter {
    /// Empty if it has no name.
    pub name: String,
    pub type_oid: u32,
}

/// A merge rule: concurrent calls of a function can become one call of its batch function.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash)]
pub struct MergeRule {
    /// The function's schema.
    pub schema: String,
    pub name: String,
    /// The unqualified name can mean this function.
    pub visible: bool,
    /// Its parameters in order.
    pub parameters: Vec<Parameter>,
    /// Number of parameters without a default.
    pub required: usize,
    /// The columns it returns.
    pub columns: Vec<String>,
    /// The columns have names of their own. Otherwise the only column is named after the function or its
    /// alias.
    pub named: bool,
    /// The type of a call's value.
    pub result: ResultKind,
    /// The function returns any number of rows. The batch function then returns the number of the call with each row.
    pub returns_set: bool,
    /// The batch function's schema.
    pub batch_schema: String,
    /// The batch function's name.
    pub batch_name: String,
    /// Index, from zero, of the parameter that identifies the row for which a call contends.
    pub key_argument: usize,
    /// Functions with the same key space contend for the same rows.
    pub key_space: String,
    /// Maximum number of calls that one call of the batch function can replace.
    pub most_calls: u16,
    /// Index, from zero, of the parameter that limits the time a call waits for a result.
    pub wait_argument: Option<usize>,
    /// The client has permission to call both functions.
    pub callable: bool,
    /// It is not a function of the hotrow schema, and the database has Citus: the function may change rows of other nodes.
    #[serde(skip)]
    pub may_change_other_nodes: bool,
    /// How a distributed hotrow schema divides its calls over several servers, if it does.
    #[serde(skip)]
    pub distribution: Option<Arc<Distribution>>,
}

/// The type of a function call's value.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash)]
#[serde(rename_all = "snake_case")]
pub enum ResultKind {
    /// A value of one column's type.
    Plain,
    Record,
    /// A row of a type that has a name.
    Row,
}

/// A parameter of a function with a merge rule.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash)]
pub struct Parameter {
    /// Its name, which the batch function's parameter has too.
    pub name: String,
    pub type_oid: u32,
    /// The type of an array of that type.
    pub array_oid: u32,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct TableFacts {
    pub oid: u32,
    pub schema: String,
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
    pub is_partition: bool,
    /// The OIDs of its partitions at any depth. The facts about constraints, triggers, expressions and foreign
    /// keys are those of the table and of all partitions.
    #[serde(default)]
    pub partitions: Vec<u32>,
    /// The columns that decide in which partition a row is.
    #[serde(default)]
    pub partition_key: Vec<String>,
    /// Why its partitions make it impossible to tell what a statement does, as the end of a sentence.
    #[serde(default)]
    pub odd_partition: Option<String>,
    /// A constraint or constraint trigger other than a foreign key is deferrable.
    pub deferrable: bool,
    /// Columns of foreign keys that are initially deferred.
    pub deferred_columns: Vec<String>,
    /// Its columns in order, without dropped ones.
    pub columns: Vec<Column>,
    /// Its usable unique indexes: valid, immediate, no predicate, no expressions.
    pub unique_indexes: Vec<Index>,
    /// Triggers that are enabled and not part of a constraint.
    pub triggers: Vec<Trigger>,
    /// The text of check constraints (its own and its columns' domains'), index expressions and predicates.
    pub expressions: Vec<String>,
    /// Foreign keys that refer to this table.
    pub referrers: Vec<Referrer>,
    /// The views through which the statement's name reaches this table, the outermost first (`view_facts.sql`).
    #[serde(skip)]
    pub views: Vec<View>,
    /// The state of the catalog for this table, and for the views (`table_fingerprint.sql`).
    #[serde(default)]
    pub fingerprint: String,
    /// The functions of its triggers, quoted, if the client's role can name them.
    #[serde(default)]
    pub trigger_functions: Vec<String>,
    /// The database has the extension Citus.
    #[serde(default)]
    pub has_citus: bool,
    /// How Citus distributes it over several servers, if it does (`distribution.sql`).
    #[serde(skip)]
    pub distribution: Option<Arc<Distribution>>,
}

/// A view that reads one other relation.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct View {
    pub oid: u32,
    pub schema: String,
    pub name: String,
    /// `pg_class.relpersistence`.
    pub persistence: char,
    /// The names of its columns in order.
    pub columns: Vec<String>,
    /// Its query, as the server prints it.
    pub definition: String,
    /// It has rewrite rules besides its query.
    pub has_rules: bool,
    /// It has triggers, also disabled ones.
    pub has_triggers: bool,
    /// Some of its columns have defaults of their own.
    pub has_defaults: bool,
    pub security_barrier: bool,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// Its number.
    pub attnum: i16,
    /// Its type's OID. For a domain, the underlying type.
    pub type_oid: u32,
    pub type_kind: TypeKind,
    /// Its type, if that is an enumeration or a domain.
    #[serde(default)]
    pub own_type: Option<OwnType>,
    /// Its average width in bytes.
    pub avg_width: u32,
    /// The text of the default. For a generated column, the text of the expression.
    pub default: Option<String>,
    /// An interval with a field restriction, such as `interval minute`. The server applies the restriction to
    /// a constant but not to a parameter.
    #[serde(default)]
    pub interval_fields: bool,
    /// Generated from other columns.
    pub generated: bool,
    /// An identity column: its default advances a sequence.
    pub identity: bool,
    /// Its default uses a sequence with a cache. Each connection caches its own range of values.
    #[serde(default)]
    pub cached_sequence: bool,
}

/// An enumeration or a domain.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct OwnType {
    pub schema: String,
    pub name: String,
    pub is_domain: bool,
}

/// The code that can run when a value of a type is read, written or stored.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum TypeKind {
    /// PostgreSQL's own, or an array of it.
    Builtin,
    /// An enumeration, a domain (its checks are among the table's expressions) or an extension's base type.
    Harmless,
    /// Composite and range types, and types with user-defined casts.
    Other,
}

/// One unique index.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Index {
    pub name: String,
    /// It is the primary key.
    pub primary: bool,
    /// Its key columns in order.
    pub columns: Vec<String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Trigger {
    pub name: String,
    /// Its function's language.
    pub language: String,
    /// Its function's source.
    pub source: String,
    /// Its function changes settings while it runs, or runs as its owner.
    pub special: bool,
    /// The part of its definition that contains its condition, if it has one.
    pub condition: Option<String>,
    /// Fires on INSERT.
    pub on_insert: bool,
    /// Fires on UPDATE.
    pub on_update: bool,
    /// Fires on DELETE.
    pub on_delete: bool,
}

/// A foreign key of another table, or of this one, that refers to a table.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Referrer {
    /// The table that refers to this one.
    pub table: String,
    /// The columns here that it refers to.
    pub columns: Vec<String>,
    /// It is initially deferred.
    pub deferred: bool,
    /// Its ON DELETE action changes rows.
    pub acts_on_delete: bool,
    /// Its ON UPDATE action changes rows.
    pub acts_on_update: bool,
}

/// An object outside `pg_catalog` with a name that the statement or the table uses.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash)]
pub struct FunctionFact {
    pub schema: String,
    pub name: String,
    /// `function`, `operator` or `type`; `relation`, `text search configuration`, `text search dictionary` or
    /// `collation`; `setting`, with its value in the name, for settings that change how the server reads
    /// constants; or `cast`, for a user-defined cast between two built-in types.
    pub kind: String,
    /// The unqualified name can mean this object.
    pub visible: bool,
    /// `pg_proc.provolatile` of the function, or of the operator's or cast's function.
    pub volatility: Option<char>,
    /// For a function: it is an aggregate, a window function or a procedure, it runs with other rights or
    /// settings, or one of its parameters has a type that runs code. For a type: it is not an enumeration, an
    /// array or a composite type whose parts are built-in or such types, or one of its parts has a cast that
    /// runs code.
    pub special: bool,
    /// The language of the function, or of the operator's or cast's function.
    #[serde(default)]
    pub language: Option<String>,
    #[serde(default)]
    pub source: Option<String>,
    /// The extension it belongs to.
    pub extension: Option<String>,
    /// Its OID and the transaction that wrote its catalog row.
    #[serde(default)]
    pub version: String,
}

impl FunctionFact {
    /// Its OID.
    pub(crate) fn oid(&self) -> Option<u32> {
        self.version.split(' ').next()?.parse().ok()
    }

    /// Whether it concerns every statement, whatever names that contains: a setting, or a cast between built-in types.
    pub(crate) fn is_unnamed(&self) -> bool {
        matches!(self.kind.as_str(), "cast" | "setting")
    }
}

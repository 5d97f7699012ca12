//! Walks an expression of a statement that may be packed, records the names that it uses, and rejects unknown
//! syntax.

use std::collections::BTreeSet;

use sqlparser::ast::{
    AccessExpr, BinaryOperator, DataType, Expr, Ident, Subscript, UnaryOperator, Value, ValueWithSpan,
};

use crate::classify::known::casts::{self, Target};
use crate::classify::known::functions::is_keyword_function;
use crate::classify::reason::Reason;
use crate::classify::text::names::{FunctionName, TableName, TypeName, folded, parts, words_of_constant};

/// The names that the expressions of one statement use.
#[derive(Debug, Default)]
pub(crate) struct References {
    /// Names that may qualify a column: the table, its alias, `excluded`, `old`, `new`.
    pub qualifiers: Vec<String>,
    /// The table with its schema, if the statement writes both and has no alias.
    pub table: Option<TableName>,
    /// All functions called.
    pub functions: BTreeSet<FunctionName>,
    /// All operators.
    pub operators: BTreeSet<String>,
    /// All types cast to.
    pub casts: BTreeSet<String>,
    /// All types cast to that are not built in.
    pub own_casts: BTreeSet<TypeName>,
    /// Names of collations, and words of string constants that a function can read as a catalog name.
    pub objects: BTreeSet<String>,
    /// All columns mentioned.
    pub columns: BTreeSet<String>,
    /// The query in FROM or USING that finds the statement's rows.
    pub found: Option<Found>,
    /// Functions of several rows, where they are harmless.
    pub of_rows: BTreeSet<&'static str>,
}

/// A query in FROM or USING.
#[derive(Debug)]
pub(crate) struct Found {
    pub name: String,
    /// The columns that it returns. None if all of the table's are among them.
    pub columns: Option<Vec<String>>,
}

impl Found {
    /// Checks that it returns this column: `a.f` can be a call of a function with the whole row. Returns the name that the
    /// table must then have.
    pub(crate) fn column(&self, name: &str) -> Result<Option<String>, Reason> {
        match &self.columns {
            None => Ok(Some(name.to_owned())),
            Some(columns) if columns.iter().any(|column| column == name) => Ok(None),
            Some(_) => Err(Reason::NotReturned(name.to_owned())),
        }
    }
}

const SYSTEM_COLUMNS: &[&str] = &["xmin", "xmax", "cmin", "cmax", "ctid", "tableoid"];

/// PostgreSQL's own operators between two values.
const OPERATORS: &str = "
    + - * / % ^ || = <> < > <= >= | & # << >> && ~ ~* !~ !~* ~~ ~~* !~~ !~~* ^@
    -> ->> #> #>> @@ @> <@ #- @? ? ?& ?|
";

/// A column's name. System columns that identify row versions or transactions are rejected.
pub(crate) fn column_name(ident: &Ident) -> Result<String, Reason> {
    let name = folded(ident);
    if SYSTEM_COLUMNS.contains(&name.as_str()) { Err(Reason::SystemColumn(name)) } else { Ok(name) }
}

impl References {
    /// Adds the names of another part of the statement, apart from those of its columns.
    pub(crate) fn add(&mut self, other: References) {
        self.functions.extend(other.functions);
        self.operators.extend(other.operators);
        self.casts.extend(other.casts);
        self.own_casts.extend(other.own_casts);
        self.objects.extend(other.objects);
        self.of_rows.extend(other.of_rows);
    }

    /// Walks one expression.
    pub(crate) fn expression(&mut self, expr: &Expr) -> Result<(), Reason> {
        match expr {
            Expr::Identifier(ident) => self.word(ident),
            Expr::CompoundIdentifier(idents) => self.column(idents),
            Expr::Value(value) => plain_value(value),
            Expr::TypedString(typed) => {
                self.cast(&typed.data_type)?;
                plain_value(&typed.value)
            }
            Expr::Interval(interval) => self.expression(&interval.value),
            Expr::Nested(inner)
            | Expr::IsTrue(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsFalse(inner)
            | Expr::IsNotFalse(inner)
            | Expr::IsNull(inner)
            | Expr::IsNotNull(inner)
            | Expr::IsUnknown(inner)
            | Expr::IsNotUnknown(inner) => self.expression(inner),
            Expr::Collate { expr, collation } => {
                self.objects.extend(parts(collation)?.pop());
                self.expression(expr)
            }
            Expr::UnaryOp { op, expr } => {
                self.unary(*op)?;
                self.expression(expr)
            }
            Expr::BinaryOp { left, op, right } => {
                self.binary(op)?;
                self.expressions([&**left, &**right])
            }
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                self.operator("=");
                self.expressions([&**left, &**right])
            }
            Expr::Between { expr, low, high, negated: _ } => {
                self.operator(">=");
                self.operator("<=");
                self.operator("<");
                self.operator(">");
                self.expressions([&**expr, &**low, &**high])
            }
            Expr::InList { expr, list, negated: _ } => {
                self.operator("=");
                self.operator("<>");
                self.expression(expr)?;
                self.expressions(list)
            }
            Expr::AnyOp { left, compare_op, right, is_some: _ } | Expr::AllOp { left, compare_op, right } => {
                self.binary(compare_op)?;
                self.expressions([&**left, &**right])
            }
            Expr::Tuple(items) => self.expressions(items),
            Expr::Array(array) => self.expressions(&array.elem),
            _ => self.keyword_operator(expr),
        }
    }

    /// A cast to this type.
    pub(crate) fn cast(&mut self, data_type: &DataType) -> Result<(), Reason> {
        match casts::target(data_type)? {
            Target::Builtin(name) => self.casts.insert(name),
            Target::Own(name) => self.own_casts.insert(name),
        };
        Ok(())
    }

    /// Walks several expressions.
    pub(crate) fn expressions<'e>(&mut self, all: impl IntoIterator<Item = &'e Expr>) -> Result<(), Reason> {
        all.into_iter().try_for_each(|expr| self.expression(expr))
    }

    /// Adds the names that a query within the statement uses.
    pub(crate) fn extend(&mut self, other: References) {
        self.columns.extend(other.columns.iter().cloned());
        self.add(other);
    }

    /// An unquoted word can be a function without parentheses, such as `current_user`.
    fn word(&mut self, ident: &Ident) -> Result<(), Reason> {
        let name = column_name(ident)?;
        if ident.quote_style.is_none() && is_keyword_function(&name) {
            self.syntax(&name);
        } else {
            self.columns.insert(name);
        }
        Ok(())
    }

    /// `table.column`. Syntax for a column can be a function applied to the row. The name is therefore looked
    /// up later.
    fn column(&mut self, idents: &[Ident]) -> Result<(), Reason> {
        let Some((ident, qualifier)) = idents.split_last() else {
            return Err(Reason::Unsupported("a column without a name"));
        };
        let qualifier: Vec<String> = qualifier.iter().map(folded).collect();
        let is_of_found = |found: &&Found| qualifier == [found.name.as_str()];
        if let Some(found) = self.found.as_ref().filter(is_of_found) {
            self.columns.extend(found.column(&column_name(ident)?)?);
            return Ok(());
        }
        self.qualifier(&qualifier)?;
        self.columns.insert(column_name(ident)?);
        Ok(())
    }

    /// Checks that the qualifier of a column or `*` is the table.
    pub(crate) fn qualifier(&self, parts: &[String]) -> Result<(), Reason> {
        let known = match parts {
            [name] => self.qualifiers.contains(name),
            [schema, name] => self
                .table
                .as_ref()
                .is_some_and(|table| table.schema.as_ref() == Some(schema) && table.name == *name),
            _ => false,
        };
        if known { Ok(()) } else { Err(Reason::Unsupported("a column that does not belong to the table")) }
    }

    /// The column of the table that an expression consists of. Fails if its qualifier means something else.
    pub(crate) fn own_column(&self, expr: &Expr) -> Result<Option<String>, Reason> {
        match expr {
            Expr::Nested(inner) => self.own_column(inner),
            Expr::CompoundIdentifier(names) => {
                let (_, qualifier) =
                    names.split_last().ok_or(Reason::Unsupported("a column without a name"))?;
                self.qualifier(&qualifier.iter().map(folded).collect::<Vec<_>>())?;
                Ok(column_of(expr))
            }
            _ => Ok(column_of(expr)),
        }
    }

    /// Array subscripts. A field after a dot can be a function.
    pub(crate) fn access(&mut self, access: &AccessExpr) -> Result<(), Reason> {
        match access {
            AccessExpr::Subscript(Subscript::Index { index }) => self.expression(index),
            AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None }) => {
                self.expressions(lower_bound)?;
                self.expressions(upper_bound)
            }
            _ => Err(Reason::Unsupported("a field of a composite value")),
        }
    }

    fn unary(&mut self, op: UnaryOperator) -> Result<(), Reason> {
        match op {
            UnaryOperator::Not => {}
            UnaryOperator::Plus
            | UnaryOperator::Minus
            | UnaryOperator::BitwiseNot
            | UnaryOperator::PGAbs
            | UnaryOperator::PGSquareRoot
            | UnaryOperator::PGCubeRoot => self.operator(&op.to_string()),
            _ => return Err(Reason::Operator(op.to_string())),
        }
        Ok(())
    }

    fn binary(&mut self, op: &BinaryOperator) -> Result<(), Reason> {
        let name = op.to_string();
        match op {
            BinaryOperator::And | BinaryOperator::Or => {}
            _ if OPERATORS.split_ascii_whitespace().any(|known| known == name) => self.operator(&name),
            _ => return Err(Reason::Operator(name)),
        }
        Ok(())
    }

    /// Records the names in a constant argument. A function with a parameter of a type like `regclass` reads
    /// it when the server analyses the statement: `nextval('s')`, `to_tsvector('english', body)`.
    pub(crate) fn constant(&mut self, expr: &Expr) {
        match expr {
            Expr::Nested(inner) => self.constant(inner),
            Expr::Value(value) => {
                if let Some(text) = string_of(&value.value) {
                    self.objects.extend(words_of_constant(text));
                }
            }
            _ => {}
        }
    }

    pub(crate) fn operator(&mut self, name: &str) {
        self.operators.insert(name.to_owned());
    }

    pub(crate) fn syntax(&mut self, name: &str) {
        self.functions.insert(FunctionName::of_syntax(name));
    }
}

/// The column that an expression consists of. The walk has checked its qualifier.
pub(crate) fn column_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(ident) => Some(folded(ident)),
        Expr::CompoundIdentifier(idents) => idents.last().map(folded),
        Expr::Nested(inner) => column_of(inner),
        _ => None,
    }
}

/// The text of a string constant.
fn string_of(value: &Value) -> Option<&str> {
    match value {
        Value::SingleQuotedString(text)
        | Value::EscapedStringLiteral(text)
        | Value::UnicodeStringLiteral(text)
        | Value::NationalStringLiteral(text) => Some(text),
        Value::DollarQuotedString(quoted) => Some(&quoted.value),
        _ => None,
    }
}

/// A literal of a kind that PostgreSQL has.
fn plain_value(value: &ValueWithSpan) -> Result<(), Reason> {
    match &value.value {
        Value::Number(..)
        | Value::SingleQuotedString(_)
        | Value::DollarQuotedString(_)
        | Value::EscapedStringLiteral(_)
        | Value::UnicodeStringLiteral(_)
        | Value::NationalStringLiteral(_)
        | Value::HexStringLiteral(_)
        | Value::SingleQuotedByteStringLiteral(_)
        | Value::Boolean(_)
        | Value::Null
        | Value::Placeholder(_) => Ok(()),
        _ => Err(Reason::Unsupported("a literal that PostgreSQL does not have")),
    }
}

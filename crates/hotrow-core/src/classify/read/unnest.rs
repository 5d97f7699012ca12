//! Reads the SELECT of an INSERT whose rows come from arrays: `SELECT * FROM unnest($1, $2)` or
//! `SELECT unnest($1), unnest($2)`. PostgreSQL fills shorter arrays up with NULL.

use sqlparser::ast::{
    CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, OrderByKind, Query,
    Select, SelectItem, SelectItemQualifiedWildcardKind, TableAlias, TableFactor, Value,
};

use crate::classify::known::functions::UNNEST;
use crate::classify::read::builder::{is_null, plain_wildcard, type_of, value_of};
use crate::classify::read::candidate::{ArrayParam, Operand};
use crate::classify::read::expression::{References, column_of};
use crate::classify::read::query;
use crate::classify::reason::Reason;
use crate::classify::text::names::{FunctionName, folded, parts};
use crate::key::{Format, ParamValue, elements_and_nulls};
use crate::limits;

/// Why another form is passed through.
const REFUSED: Reason = Reason::Unsupported("INSERT from a query");

/// Rows that come from arrays.
pub(crate) struct RowsOfArrays {
    /// The values of all rows.
    pub row: Vec<Operand>,
    /// The parameters among the arrays.
    pub params: Vec<ArrayParam>,
    /// The names that the SELECT uses.
    pub references: References,
}

/// Whether the SELECT makes rows of arrays.
pub(crate) fn makes_rows(select: &Select) -> bool {
    match select.from.as_slice() {
        [] => select.projection.iter().any(|item| {
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, alias: _ }) = item else {
                return false;
            };
            called(expr).is_some()
        }),
        [table] => matches!(table.relation, TableFactor::UNNEST { .. }),
        _ => false,
    }
}

/// The rows of such a SELECT.
pub(crate) fn rows(source: &Query, select: &Select) -> Result<RowsOfArrays, Reason> {
    query::plain_query(source)?;
    let is_bare = source.limit_clause.is_none() && source.fetch.is_none() && source.locks.is_empty();
    if !is_bare || select.selection.is_some() {
        return Err(REFUSED);
    }
    let mut reader = Reader::default();
    if let [table] = select.from.as_slice() {
        if !table.joins.is_empty() {
            return Err(Reason::Unsupported("a join"));
        }
        reader.from(&table.relation)?;
    }
    let mut row = Vec::with_capacity(select.projection.len());
    for item in &select.projection {
        match item {
            SelectItem::UnnamedExpr(expr) => row.push(reader.value(expr)?),
            SelectItem::ExprWithAlias { expr, alias } if alias.quote_style != Some('\'') => {
                row.push(reader.value(expr)?);
            }
            SelectItem::Wildcard(options) => {
                plain_wildcard(options)?;
                row.extend(reader.from.iter().cloned());
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                plain_wildcard(options)?;
                reader.references.qualifier(&parts(name)?)?;
                row.extend(reader.from.iter().cloned());
            }
            _ => return Err(REFUSED),
        }
    }
    if let Some(OrderByKind::Expressions(all)) = source.order_by.as_ref().map(|by| &by.kind) {
        all.iter().try_for_each(|by| reader.references.expression(&by.expr))?;
    }
    reader.finish(row)
}

#[derive(Default)]
struct Reader {
    /// The arrays in FROM, and the names of their columns, if each has its own.
    from: Vec<Operand>,
    columns: Vec<String>,
    params: Vec<ArrayParam>,
    references: References,
    /// The name of the function, as it is called.
    function: Option<FunctionName>,
}

impl Reader {
    /// `unnest(...) AS alias (columns)`.
    fn from(&mut self, table: &TableFactor) -> Result<(), Reason> {
        let TableFactor::UNNEST {
            alias,
            array_exprs,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: false,
        } = table
        else {
            return Err(REFUSED);
        };
        self.function = Some(FunctionName { schema: None, name: UNNEST.to_owned() });
        for array in array_exprs {
            let array = self.array(array)?;
            self.from.push(array);
        }
        let (name, columns) = match alias {
            None => (UNNEST.to_owned(), Vec::new()),
            Some(TableAlias { explicit: _, name, columns, at: None }) => {
                if columns.iter().any(|column| column.data_type.is_some()) {
                    return Err(REFUSED);
                }
                (folded(name), columns.iter().map(|column| folded(&column.name)).collect::<Vec<_>>())
            }
            Some(_) => return Err(REFUSED),
        };
        self.columns = match (columns.len(), self.from.len()) {
            // The only column has the name of the function's alias.
            (0, 1) => vec![name.clone()],
            (0, _) => Vec::new(),
            (named, arrays) if named == arrays => columns,
            _ => return Err(REFUSED),
        };
        self.references.qualifiers.push(name);
        Ok(())
    }

    /// An item of the list: a column of FROM, a call of the function, or an expression that no key depends on.
    fn value(&mut self, expr: &Expr) -> Result<Operand, Reason> {
        Ok(match self.element(expr)? {
            Some(operand) => operand,
            None => {
                self.references.expression(expr)?;
                if is_null(expr) { Operand::Null } else { value_of(expr).unwrap_or(Operand::Expression) }
            }
        })
    }

    /// The array that an expression takes its elements from, with its casts.
    fn element(&mut self, expr: &Expr) -> Result<Option<Operand>, Reason> {
        Ok(match expr {
            Expr::Nested(inner) => self.element(inner)?,
            Expr::Cast { expr, data_type, format: None, kind: CastKind::Cast | CastKind::DoubleColon } => {
                let Some(inner) = self.element(expr)? else { return Ok(None) };
                self.references.cast(data_type)?;
                Some(Operand::Cast(Box::new(inner), type_of(data_type)))
            }
            Expr::Function(_) => {
                let Some((function, array)) = called(expr) else { return Ok(None) };
                if self.function.replace(function.clone()).is_some_and(|other| other != function) {
                    return Err(REFUSED);
                }
                Some(self.array(array)?)
            }
            _ => {
                let place = column_of(expr).and_then(|name| self.columns.iter().position(|it| *it == name));
                let Some(place) = place else { return Ok(None) };
                self.references.expression(expr)?;
                self.from.get(place).cloned()
            }
        })
    }

    /// An array that is a parameter, a constant or a list.
    fn array(&mut self, array: &Expr) -> Result<Operand, Reason> {
        self.references.expression(array)?;
        let (operand, param) = array_of(array).ok_or(REFUSED)?;
        self.params.extend(param);
        match &operand {
            Operand::Rows(elements) if elements.len() > limits::UNIT_ROWS_MAX => Err(Reason::ManyRows),
            _ => Ok(operand),
        }
    }

    fn finish(mut self, row: Vec<Operand>) -> Result<RowsOfArrays, Reason> {
        let is_own = |name: &String| self.columns.contains(name);
        let is_nested = self.references.functions.iter().any(|function| function.name == UNNEST);
        if is_nested || !self.references.columns.iter().all(is_own) {
            return Err(REFUSED);
        }
        if self.function.is_some_and(|function| !function.is_builtin_for_sure()) {
            self.references.of_rows.insert(UNNEST);
        }
        Ok(RowsOfArrays { row, params: self.params, references: self.references })
    }
}

/// The call of the function with one array.
pub(crate) fn called(expr: &Expr) -> Option<(FunctionName, &Expr)> {
    match expr {
        Expr::Nested(expr) | Expr::Cast { expr, .. } => called(expr),
        Expr::Function(Function {
            name,
            uses_odbc_syntax: false,
            parameters: FunctionArguments::None,
            args: FunctionArguments::List(list),
            within_group,
            filter: None,
            null_treatment: None,
            over: None,
        }) if within_group.is_empty() && list.duplicate_treatment.is_none() && list.clauses.is_empty() => {
            let [FunctionArg::Unnamed(FunctionArgExpr::Expr(array))] = list.args.as_slice() else {
                return None;
            };
            let function = FunctionName::new(name).ok()?;
            let is_unnest =
                function.name == UNNEST && (function.schema.is_none() || function.is_builtin_for_sure());
            is_unnest.then_some((function, array))
        }
        _ => None,
    }
}

/// The elements of an array, and its parameter.
fn array_of(array: &Expr) -> Option<(Operand, Option<ArrayParam>)> {
    match array {
        Expr::Nested(inner) => array_of(inner),
        Expr::Cast {
            expr,
            data_type: DataType::Array(_),
            format: None,
            kind: CastKind::Cast | CastKind::DoubleColon,
        } => {
            let (operand, param) = array_of(expr)?;
            Some((operand, param.map(|param| ArrayParam { is_cast: true, ..param })))
        }
        Expr::Array(array) => {
            let value = |expr: &Expr| if is_null(expr) { Some(Operand::Null) } else { value_of(expr) };
            Some((Operand::Rows(array.elem.iter().map(value).collect::<Option<_>>()?), None))
        }
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => {
                let elements =
                    elements_and_nulls(ParamValue { format: Format::Text, bytes: text.as_bytes() })?;
                let constant = |element: Option<ParamValue<'_>>| match element {
                    None => Some(Operand::Null),
                    Some(element) => Some(Operand::Const(str::from_utf8(element.bytes).ok()?.to_owned())),
                };
                Some((Operand::Rows(elements.into_iter().map(constant).collect::<Option<_>>()?), None))
            }
            _ => match value_of(array)? {
                Operand::Param(index) => {
                    Some((Operand::Unnested(index), Some(ArrayParam { index, is_cast: false })))
                }
                _ => None,
            },
        },
        _ => None,
    }
}

//! The clauses that SELECT, INSERT, UPDATE and DELETE share, read into a candidate. Whole statements are read
//! elsewhere.

use sqlparser::ast::{
    ArrayElemTypeDef, Assignment, AssignmentTarget, BinaryOperator, DataType, Expr, SelectItem,
    SelectItemQualifiedWildcardKind, TableFactor, TableWithJoins, Value, WildcardAdditionalOptions,
};

use crate::classify::known::builtin_types;
use crate::classify::known::functions::UNNEST;
use crate::classify::read::candidate::{
    Call, Candidate, Common, Equality, Operand, Reading, ResultColumn, Verb,
};
use crate::classify::read::expression::{References, column_name};
use crate::classify::reason::Reason;
use crate::classify::text::names::{TableName, folded, parts};
use crate::key::{Format, ParamValue, elements};

/// A candidate under construction.
pub(crate) struct CandidateBuilder {
    pub candidate: Candidate,
    pub references: References,
}

impl CandidateBuilder {
    pub(crate) fn new(verb: Verb) -> Self {
        let candidate = Candidate { verb, returns_rows: verb == Verb::Select, ..Candidate::default() };
        Self { candidate, references: References::default() }
    }

    pub(crate) fn finish(mut self) -> Candidate {
        self.candidate.functions = self.references.functions.into_iter().collect();
        self.candidate.operators = self.references.operators.into_iter().collect();
        self.candidate.casts = self.references.casts.into_iter().collect();
        self.candidate.own_casts = self.references.own_casts.into_iter().collect();
        self.candidate.objects = self.references.objects.into_iter().collect();
        self.candidate.of_rows = self.references.of_rows.into_iter().collect();
        let columns = self.references.columns.into_iter().collect();
        match &mut self.candidate.reads {
            Some(reading) if self.candidate.verb == Verb::Select => reading.columns = columns,
            _ => self.candidate.columns = columns,
        }
        self.candidate
    }

    /// The only table, or an earlier statement in WITH. A name without a schema means the statement.
    pub(crate) fn table_or_common(
        &mut self,
        table: &TableWithJoins,
        earlier: &[Common],
    ) -> Result<(), Reason> {
        self.table(table)?;
        let name = self.candidate.table.as_ref().filter(|table| table.schema.is_none());
        let place = name.and_then(|table| earlier.iter().position(|common| common.name == table.name));
        if let Some(place) = place {
            self.candidate.reads = Some(Reading { place, columns: Vec::new() });
            (self.candidate.table, self.references.table) = (None, None);
        }
        Ok(())
    }

    /// Adds the names that a SELECT uses whose rows are inserted.
    pub(crate) fn select_from_common(&mut self, select: Candidate) {
        self.references.functions.extend(select.functions);
        self.references.operators.extend(select.operators);
        self.references.casts.extend(select.casts);
        self.references.own_casts.extend(select.own_casts);
        self.references.objects.extend(select.objects);
        self.candidate.reads = select.reads;
    }

    /// The only table. A join or an unusual form is rejected.
    pub(crate) fn table(&mut self, table: &TableWithJoins) -> Result<(), Reason> {
        if !table.joins.is_empty() {
            return Err(Reason::Unsupported("a join"));
        }
        let TableFactor::Table {
            name,
            alias,
            args: None,
            with_hints,
            version: None,
            with_ordinality: false,
            partitions,
            json_path: None,
            sample,
            index_hints,
        } = &table.relation
        else {
            return Err(Reason::Unsupported("FROM with something other than a table"));
        };
        if sample.is_some() {
            return Err(Reason::Unsupported("TABLESAMPLE"));
        }
        if !with_hints.is_empty() || !partitions.is_empty() || !index_hints.is_empty() {
            return Err(Reason::Unsupported("a table with hints"));
        }
        self.name_table(TableName::new(name)?);
        if let Some(alias) = alias {
            if !alias.columns.is_empty() || alias.at.is_some() {
                return Err(Reason::Unsupported("an alias with columns"));
            }
            self.rename_table(folded(&alias.name));
        }
        Ok(())
    }

    /// A FROM that consists of a function call.
    pub(crate) fn call(&mut self, call: Call, of_arguments: References) {
        self.references = of_arguments;
        self.references.functions.insert(call.function.clone());
        let casts = call.arguments.iter().filter_map(|argument| argument.cast);
        self.references.casts.extend(casts.filter_map(builtin_types::name_of).map(str::to_owned));
        self.candidate.call = Some(call);
    }

    pub(crate) fn name_table(&mut self, table: TableName) {
        self.references.qualifiers.push(table.name.clone());
        self.references.table = Some(table.clone());
        self.candidate.table = Some(table);
    }

    /// An alias hides the table's own name.
    pub(crate) fn rename_table(&mut self, alias: String) {
        self.references.qualifiers = vec![alias];
        self.references.table = None;
    }

    /// WHERE. Records the equalities among its conjuncts.
    pub(crate) fn selection(&mut self, selection: Option<&Expr>) -> Result<(), Reason> {
        let selection = selection.ok_or(Reason::NoEquality)?;
        self.condition(selection)?;
        if self.candidate.equalities.is_empty() { Err(Reason::NoEquality) } else { Ok(()) }
    }

    /// A condition that holds for all rows.
    pub(crate) fn condition(&mut self, condition: &Expr) -> Result<(), Reason> {
        self.references.expression(condition)?;
        self.conjuncts(condition);
        Ok(())
    }

    /// A column that equals an element of what `unnest` returns.
    pub(crate) fn unnested(&mut self, column: String, array: &Expr) -> Result<(), Reason> {
        self.references.expression(array)?;
        self.references.of_rows.insert(UNNEST);
        self.equality(Some(column).zip(element_of(array)));
        Ok(())
    }

    fn conjuncts(&mut self, expr: &Expr) {
        match expr {
            Expr::Nested(inner) => self.conjuncts(inner),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                self.conjuncts(left);
                self.conjuncts(right);
            }
            Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
                let found = self.own_column(left).zip(value_of(right));
                self.equality(found.or_else(|| self.own_column(right).zip(value_of(left))));
            }
            Expr::InList { expr, list, negated: false } => {
                self.equality(self.own_column(expr).zip(one_of(list)));
            }
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, is_some: _ } => {
                self.equality(self.own_column(left).zip(element_of(right)));
            }
            _ => {}
        }
    }

    /// The column of the table that an expression consists of, and not one of the query in FROM.
    fn own_column(&self, expr: &Expr) -> Option<String> {
        self.references.own_column(expr).ok().flatten()
    }

    fn equality(&mut self, found: Option<(String, Operand)>) {
        self.candidate.equalities.extend(found.map(|(column, operand)| Equality { column, operand }));
    }

    /// The list of a SELECT or RETURNING.
    pub(crate) fn projection(&mut self, items: &[SelectItem]) -> Result<(), Reason> {
        for item in items {
            self.candidate.results.push(result(item));
            match item {
                SelectItem::UnnamedExpr(expr) => self.references.expression(expr)?,
                // The parser takes the string of a typed literal, `my_type 'x'`, for an alias.
                SelectItem::ExprWithAlias { expr: _, alias } if alias.quote_style == Some('\'') => {
                    return Err(Reason::Unsupported("an unusual item in the select list"));
                }
                SelectItem::ExprWithAlias { expr, alias: _ } => self.references.expression(expr)?,
                SelectItem::Wildcard(_) if self.references.found.is_some() => {
                    return Err(Reason::Unsupported("an unusual item in the select list"));
                }
                SelectItem::Wildcard(options) => plain_wildcard(options)?,
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    plain_wildcard(options)?;
                    self.references.qualifier(&parts(name)?)?;
                }
                _ => return Err(Reason::Unsupported("an unusual item in the select list")),
            }
        }
        Ok(())
    }

    /// RETURNING. PostgreSQL 18 allows aliases for the old and the new row.
    pub(crate) fn returning(&mut self, items: Option<&[SelectItem]>) -> Result<(), Reason> {
        let Some(items) = items else { return Ok(()) };
        self.candidate.returns_rows = true;
        for qualifier in ["old", "new"] {
            self.references.qualifiers.push(qualifier.to_owned());
        }
        self.projection(items)
    }

    /// SET.
    pub(crate) fn assignments(&mut self, assignments: &[Assignment]) -> Result<(), Reason> {
        for Assignment { target, value } in assignments {
            let targets = match target {
                AssignmentTarget::ColumnName(name) => std::slice::from_ref(name),
                AssignmentTarget::Tuple(names) => names,
            };
            let mut columns = Vec::with_capacity(targets.len());
            for target in targets {
                let [part] = target.0.as_slice() else {
                    return Err(Reason::Unsupported("SET of a part of a column"));
                };
                let ident = part.as_ident().ok_or(Reason::Unsupported("SET of a part of a column"))?;
                columns.push(column_name(ident)?);
            }
            let values = match value {
                Expr::Tuple(values) if columns.len() > 1 => values.as_slice(),
                value => std::slice::from_ref(value),
            };
            for (index, value) in values.iter().enumerate() {
                if is_default(value) {
                    self.candidate.defaulted.extend(columns.get(index).cloned());
                } else {
                    self.references.expression(value)?;
                }
            }
            self.candidate.assigned.extend(columns);
        }
        self.references.columns.extend(self.candidate.assigned.iter().cloned());
        Ok(())
    }
}

pub(crate) fn plain_wildcard(options: &WildcardAdditionalOptions) -> Result<(), Reason> {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike: None,
        opt_exclude: None,
        opt_except: None,
        opt_replace: None,
        opt_rename: None,
        opt_alias: None,
    } = options
    else {
        return Err(Reason::Unsupported("an unusual item in the select list"));
    };
    Ok(())
}

/// The name that an item of the list gives its column.
fn result(item: &SelectItem) -> ResultColumn {
    match item {
        SelectItem::ExprWithAlias { expr: _, alias } => ResultColumn::Named(folded(alias)),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => ResultColumn::Named(folded(name)),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => {
            names.last().map_or(ResultColumn::Unnamed, |name| ResultColumn::Named(folded(name)))
        }
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => ResultColumn::All,
        _ => ResultColumn::Unnamed,
    }
}

/// The parameter or constant that an expression consists of, with its casts.
pub(crate) fn value_of(expr: &Expr) -> Option<Operand> {
    match expr {
        Expr::Nested(inner) => value_of(inner),
        Expr::Cast { expr, data_type, .. } => Some(cast(value_of(expr)?, type_of(data_type))),
        Expr::TypedString(typed) => Some(cast(constant(&typed.value.value)?, type_of(&typed.data_type))),
        Expr::Value(value) => constant(&value.value),
        _ => None,
    }
}

/// A list of parameters and constants. No column equals NULL.
fn one_of(list: &[Expr]) -> Option<Operand> {
    let values = list.iter().filter(|expr| !is_null(expr));
    values.map(value_of).collect::<Option<_>>().map(Operand::OneOf)
}

pub(crate) fn is_null(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_null(inner),
        Expr::Cast { expr, .. } => is_null(expr),
        Expr::Value(value) => value.value == Value::Null,
        _ => false,
    }
}

/// The elements of an array that is a parameter, a constant or a list.
fn element_of(array: &Expr) -> Option<Operand> {
    match array {
        Expr::Nested(inner) => element_of(inner),
        Expr::Cast { expr, data_type, .. } => Some(cast(element_of(expr)?, type_of_elements(data_type))),
        Expr::Array(array) => one_of(&array.elem),
        _ => match value_of(array)? {
            Operand::Param(index) => Some(Operand::Element(index)),
            Operand::Const(text) => {
                let elements = elements(ParamValue { format: Format::Text, bytes: text.as_bytes() })?;
                let text = |element: ParamValue<'_>| str::from_utf8(element.bytes).ok().map(str::to_owned);
                elements
                    .into_iter()
                    .map(|element| text(element).map(Operand::Const))
                    .collect::<Option<_>>()
                    .map(Operand::OneOf)
            }
            _ => None,
        },
    }
}

fn cast(operand: Operand, type_oid: Option<u32>) -> Operand {
    Operand::Cast(Box::new(operand), type_oid)
}

/// The OID of a type without a modifier. `varchar(3)` would truncate its value.
pub(super) fn type_of(data_type: &DataType) -> Option<u32> {
    builtin_types::of_name(&data_type.to_string().to_ascii_lowercase())
}

fn type_of_elements(array: &DataType) -> Option<u32> {
    match array {
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => type_of(element),
        _ => None,
    }
}

fn constant(value: &Value) -> Option<Operand> {
    match value {
        Value::Placeholder(name) => {
            let number: u16 = name.strip_prefix('$')?.parse().ok()?;
            Some(Operand::Param(number.checked_sub(1)?))
        }
        Value::SingleQuotedString(text) => Some(Operand::Const(text.clone())),
        Value::Number(text, _) => Some(cast(Operand::Const(text.clone()), Some(builtin_types::NUMERIC))),
        Value::Boolean(truth) => Some(cast(Operand::Const(truth.to_string()), Some(builtin_types::BOOLEAN))),
        _ => None,
    }
}

/// The keyword DEFAULT used as a value.
pub(crate) fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

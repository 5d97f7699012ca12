//! Reads one SELECT, UPDATE or DELETE into the parts a decision needs; INSERT is next door, judgement in `decision`.

use sqlparser::ast::{
    Assignment, AssignmentTarget, BinaryOperator, Delete, Expr, FromTable, GroupByExpr, LimitClause, Query,
    Select, SelectFlavor, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor, TableWithJoins,
    Update, Value, WildcardAdditionalOptions,
};

use super::expression::{Uses, column_name};
use super::names::folded;
use super::{FunctionName, Reason, TableName};

/// What a statement does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    /// SELECT.
    Select,
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
}

/// A value in a statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operand {
    /// A parameter, counted from zero: `$1` is 0.
    Param(u16),
    /// A literal, as the text format has it.
    Const(String),
    /// The column's default.
    Default,
    /// Anything else.
    Expression,
}

/// `column = value` in a WHERE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Equality {
    /// The column.
    pub column: String,
    /// A parameter or a constant.
    pub operand: Operand,
}

/// What only an INSERT has.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct InsertParts {
    /// The column list; empty when not written.
    pub columns: Vec<String>,
    /// The rows of VALUES; one empty row for DEFAULT VALUES.
    pub rows: Vec<Vec<Operand>>,
    /// ON CONFLICT.
    pub conflict: Option<Conflict>,
}

/// ON CONFLICT.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// The target's columns; empty when there is none or a constraint is named.
    pub columns: Vec<String>,
    /// ON CONSTRAINT.
    pub constraint: Option<String>,
    /// DO UPDATE, not DO NOTHING.
    pub updates: bool,
}

/// A statement that can be packed if the catalogue agrees.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// What it does.
    pub verb: Verb,
    /// On which table; `None` for a SELECT without FROM.
    pub table: Option<TableName>,
    /// The equalities that hold for every row it finds.
    pub equalities: Vec<Equality>,
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
    /// All columns it mentions.
    pub columns: Vec<String>,
    /// It returns rows: SELECT, or RETURNING.
    pub returns_rows: bool,
}

/// A candidate that is being read.
pub(super) struct Draft {
    pub candidate: Candidate,
    pub uses: Uses,
}

impl Draft {
    pub(super) fn new(verb: Verb) -> Self {
        let candidate = Candidate {
            verb,
            table: None,
            equalities: Vec::new(),
            insert: None,
            assigned: Vec::new(),
            defaulted: Vec::new(),
            functions: Vec::new(),
            operators: Vec::new(),
            casts: Vec::new(),
            columns: Vec::new(),
            returns_rows: verb == Verb::Select,
        };
        Self { candidate, uses: Uses::default() }
    }

    pub(super) fn finish(mut self) -> Candidate {
        self.candidate.functions = self.uses.functions.into_iter().collect();
        self.candidate.operators = self.uses.operators.into_iter().collect();
        self.candidate.casts = self.uses.casts.into_iter().collect();
        self.candidate.columns = self.uses.columns.into_iter().collect();
        self.candidate
    }

    /// The one table, with nothing joined and nothing unusual about it.
    fn table(&mut self, table: &TableWithJoins) -> Result<(), Reason> {
        if !table.joins.is_empty() {
            return Err(Reason::Form("a join"));
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
            return Err(Reason::Form("FROM with something other than a table"));
        };
        if sample.is_some() {
            return Err(Reason::Form("TABLESAMPLE"));
        }
        if !with_hints.is_empty() || !partitions.is_empty() || !index_hints.is_empty() {
            return Err(Reason::Form("a table with hints"));
        }
        self.name_table(TableName::new(name)?);
        if let Some(alias) = alias {
            if !alias.columns.is_empty() || alias.at.is_some() {
                return Err(Reason::Form("an alias with columns"));
            }
            self.uses.qualifiers = vec![folded(&alias.name)];
        }
        Ok(())
    }

    pub(super) fn name_table(&mut self, table: TableName) {
        self.uses.qualifiers.push(table.name.clone());
        self.candidate.table = Some(table);
    }

    /// WHERE: notes the equalities among its conjuncts.
    fn selection(&mut self, selection: Option<&Expr>) -> Result<(), Reason> {
        let selection = selection.ok_or(Reason::NoEquality)?;
        self.uses.expression(selection)?;
        self.conjuncts(selection);
        if self.candidate.equalities.is_empty() { Err(Reason::NoEquality) } else { Ok(()) }
    }

    fn conjuncts(&mut self, expr: &Expr) {
        match expr {
            Expr::Nested(inner) => self.conjuncts(inner),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                self.conjuncts(left);
                self.conjuncts(right);
            }
            Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
                let found =
                    column_of(left).zip(value_of(right)).or_else(|| column_of(right).zip(value_of(left)));
                if let Some((column, operand)) = found {
                    self.candidate.equalities.push(Equality { column, operand });
                }
            }
            _ => {}
        }
    }

    /// What SELECT or RETURNING give back.
    pub(super) fn projection(&mut self, items: &[SelectItem]) -> Result<(), Reason> {
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expr) => self.uses.expression(expr)?,
                // The parser takes the string of a typed literal, `my_type 'x'`, for an alias.
                SelectItem::ExprWithAlias { expr: _, alias } if alias.quote_style == Some('\'') => {
                    return Err(Reason::Form("an unusual item to select"));
                }
                SelectItem::ExprWithAlias { expr, alias: _ } => self.uses.expression(expr)?,
                SelectItem::Wildcard(options) => plain_wildcard(options)?,
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
                    plain_wildcard(options)?;
                    self.uses.qualifier(name)?;
                }
                _ => return Err(Reason::Form("an unusual item to select")),
            }
        }
        Ok(())
    }

    /// RETURNING; PostgreSQL 18 lets it name the row before and after.
    pub(super) fn returning(&mut self, items: Option<&[SelectItem]>) -> Result<(), Reason> {
        let Some(items) = items else { return Ok(()) };
        self.candidate.returns_rows = true;
        for qualifier in ["old", "new"] {
            self.uses.qualifiers.push(qualifier.to_owned());
        }
        self.projection(items)
    }

    /// SET.
    pub(super) fn assignments(&mut self, assignments: &[Assignment]) -> Result<(), Reason> {
        for Assignment { target, value } in assignments {
            let targets = match target {
                AssignmentTarget::ColumnName(name) => std::slice::from_ref(name),
                AssignmentTarget::Tuple(names) => names,
            };
            let mut columns = Vec::with_capacity(targets.len());
            for target in targets {
                let [part] = target.0.as_slice() else {
                    return Err(Reason::Form("SET of a part of a column"));
                };
                let ident = part.as_ident().ok_or(Reason::Form("SET of a part of a column"))?;
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
                    self.uses.expression(value)?;
                }
            }
            self.candidate.assigned.extend(columns);
        }
        self.uses.columns.extend(self.candidate.assigned.iter().cloned());
        Ok(())
    }
}

/// UPDATE.
pub(super) fn update(update: &Update) -> Result<Candidate, Reason> {
    let Update {
        update_token: _,
        optimizer_hints: _,
        table,
        assignments,
        from,
        selection,
        returning,
        output: None,
        or: None,
        order_by,
        limit: None,
    } = update
    else {
        return Err(Reason::Form("a clause that is not PostgreSQL's"));
    };
    if from.is_some() {
        return Err(Reason::Form("UPDATE with FROM"));
    }
    if !order_by.is_empty() {
        return Err(Reason::Form("a clause that is not PostgreSQL's"));
    }
    let mut draft = Draft::new(Verb::Update);
    draft.table(table)?;
    draft.assignments(assignments)?;
    draft.selection(selection.as_ref())?;
    draft.returning(returning.as_deref())?;
    Ok(draft.finish())
}

/// DELETE.
pub(super) fn delete(delete: &Delete) -> Result<Candidate, Reason> {
    let Delete {
        delete_token: _,
        optimizer_hints: _,
        tables,
        from: FromTable::WithFromKeyword(from),
        using,
        selection,
        returning,
        output: None,
        order_by,
        limit: None,
    } = delete
    else {
        return Err(Reason::Form("a clause that is not PostgreSQL's"));
    };
    if using.is_some() {
        return Err(Reason::Form("DELETE with USING"));
    }
    let ([table], true, true) = (from.as_slice(), tables.is_empty(), order_by.is_empty()) else {
        return Err(Reason::Form("a clause that is not PostgreSQL's"));
    };
    let mut draft = Draft::new(Verb::Delete);
    draft.table(table)?;
    draft.selection(selection.as_ref())?;
    draft.returning(returning.as_deref())?;
    Ok(draft.finish())
}

/// SELECT of one row, or without FROM.
pub(super) fn select(query: &Query) -> Result<Candidate, Reason> {
    let select = point_select(query)?;
    let mut draft = Draft::new(Verb::Select);
    match select.from.as_slice() {
        [] => {
            if let Some(selection) = &select.selection {
                draft.uses.expression(selection)?;
            }
        }
        [table] => {
            draft.table(table)?;
            draft.selection(select.selection.as_ref())?;
        }
        _ => return Err(Reason::Form("a join")),
    }
    draft.projection(&select.projection)?;
    Ok(draft.finish())
}

/// The SELECT inside a query that has nothing else.
fn point_select(query: &Query) -> Result<&Select, Reason> {
    let Query {
        with,
        body,
        order_by,
        limit_clause,
        fetch,
        locks,
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators,
    } = query
    else {
        return Err(Reason::Form("a clause that is not PostgreSQL's"));
    };
    let refused = [
        (with.is_some(), "WITH"),
        (order_by.is_some(), "ORDER BY"),
        (!locks.is_empty(), "a row lock: FOR UPDATE and its like outlive the statement"),
        (!pipe_operators.is_empty(), "a clause that is not PostgreSQL's"),
        (!limit_is_plain(limit_clause.as_ref()), "LIMIT or OFFSET with an expression"),
        (fetch.as_ref().is_some_and(|f| f.with_ties || f.percent), "FETCH with TIES or PERCENT"),
        (
            fetch.as_ref().and_then(|f| f.quantity.as_ref()).is_some_and(|q| value_of(q).is_none()),
            "FETCH with an expression",
        ),
    ];
    refuse(&refused)?;
    match &**body {
        SetExpr::Select(select) => plain_select(select),
        SetExpr::SetOperation { .. } => Err(Reason::Form("UNION, INTERSECT or EXCEPT")),
        _ => Err(Reason::Form("a query other than a plain SELECT")),
    }
}

/// A SELECT without any of the clauses that look at more than one row.
fn plain_select(select: &Select) -> Result<&Select, Reason> {
    let Select {
        select_token: _,
        optimizer_hints: _,
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: _,
        projection: _,
        exclude: None,
        into,
        from: _,
        lateral_views,
        prewhere: None,
        selection: _,
        connect_by,
        group_by: GroupByExpr::Expressions(group_by, group_modifiers),
        cluster_by,
        distribute_by,
        sort_by,
        having,
        named_window,
        qualify: None,
        window_before_qualify: _,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    } = select
    else {
        return Err(Reason::Form("DISTINCT, or a clause that is not PostgreSQL's"));
    };
    refuse(&[
        (into.is_some(), "SELECT INTO"),
        (!group_by.is_empty() || !group_modifiers.is_empty(), "GROUP BY"),
        (having.is_some(), "HAVING"),
        (!named_window.is_empty(), "WINDOW"),
        (!lateral_views.is_empty() || !connect_by.is_empty(), "a clause that is not PostgreSQL's"),
        (
            !cluster_by.is_empty() || !distribute_by.is_empty() || !sort_by.is_empty(),
            "a clause that is not PostgreSQL's",
        ),
    ])?;
    Ok(select)
}

fn refuse(conditions: &[(bool, &'static str)]) -> Result<(), Reason> {
    match conditions.iter().find(|(refused, _)| *refused) {
        Some((_, what)) => Err(Reason::Form(what)),
        None => Ok(()),
    }
}

fn limit_is_plain(limit: Option<&LimitClause>) -> bool {
    match limit {
        None => true,
        Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
            limit.iter().chain(offset.iter().map(|o| &o.value)).all(|expr| value_of(expr).is_some())
                && limit_by.is_empty()
        }
        Some(LimitClause::OffsetCommaLimit { .. }) => false,
    }
}

fn plain_wildcard(options: &WildcardAdditionalOptions) -> Result<(), Reason> {
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
        return Err(Reason::Form("an unusual item to select"));
    };
    Ok(())
}

/// The column an expression is, its qualifier having been checked by the walk.
fn column_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(ident) => Some(folded(ident)),
        Expr::CompoundIdentifier(idents) => idents.last().map(folded),
        Expr::Nested(inner) => column_of(inner),
        _ => None,
    }
}

/// The parameter or constant an expression is, casts looked through.
pub(super) fn value_of(expr: &Expr) -> Option<Operand> {
    match expr {
        Expr::Nested(inner) => value_of(inner),
        Expr::Cast { expr, .. } => value_of(expr),
        Expr::TypedString(typed) => constant(&typed.value.value),
        Expr::Value(value) => constant(&value.value),
        _ => None,
    }
}

fn constant(value: &Value) -> Option<Operand> {
    match value {
        Value::Placeholder(name) => {
            let number: u16 = name.strip_prefix('$')?.parse().ok()?;
            Some(Operand::Param(number.checked_sub(1)?))
        }
        Value::Number(text, _) | Value::SingleQuotedString(text) => Some(Operand::Const(text.clone())),
        Value::Boolean(truth) => Some(Operand::Const(truth.to_string())),
        _ => None,
    }
}

/// The word DEFAULT in the place of a value.
pub(super) fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

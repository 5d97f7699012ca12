//! Reads a SELECT that consists of one function call, which may have a merge rule. The function is judged
//! elsewhere.

use sqlparser::ast::{
    CastKind, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgOperator, FunctionArguments, Select,
    SelectItem, TableFactor, TableFunctionArgs, UnaryOperator, Value,
};

use crate::classify::read::builder::{plain_wildcard, type_of};
use crate::classify::read::candidate::{Argument, ArgumentValue, Call, Item, Operand, Output};
use crate::classify::read::computed::parts;
use crate::classify::read::expression::References;
use crate::classify::text::names::{FunctionName, folded};

/// The function call, if the SELECT consists of one, and the names that its arguments use.
pub(crate) fn call(select: &Select) -> Option<(Call, References)> {
    let mut references = References::default();
    let mut call = plain_call(select, &mut references)?;
    call.inner_functions = references.functions.iter().cloned().collect();
    Some((call, references))
}

fn plain_call(select: &Select, references: &mut References) -> Option<Call> {
    if select.selection.is_some() {
        return None;
    }
    match select.from.as_slice() {
        [] => {
            let [item] = select.projection.as_slice() else { return None };
            let (function, alias) = match item {
                SelectItem::UnnamedExpr(Expr::Function(function)) => (function, None),
                SelectItem::ExprWithAlias { expr: Expr::Function(function), alias } => {
                    (function, Some(alias))
                }
                _ => return None,
            };
            let Function { name, args: FunctionArguments::List(list), over: None, .. } = function else {
                return None;
            };
            let function = FunctionName::new(name).ok()?;
            let (inner_functions, output) = (Vec::new(), Output::Value(alias.map(folded)));
            Some(Call { function, inner_functions, arguments: arguments(&list.args, references)?, output })
        }
        [table] if table.joins.is_empty() => {
            let TableFactor::Table {
                name,
                alias,
                args: Some(TableFunctionArgs { args, settings: None }),
                with_ordinality: false,
                sample: None,
                ..
            } = &table.relation
            else {
                return None;
            };
            let alias = match alias {
                Some(alias) if !alias.columns.is_empty() || alias.at.is_some() => return None,
                alias => alias.as_ref().map(|alias| folded(&alias.name)),
            };
            let items = items(&select.projection)?;
            let function = FunctionName::new(name).ok()?;
            let (inner_functions, output) = (Vec::new(), Output::Rows { alias, items });
            Some(Call { function, inner_functions, arguments: arguments(args, references)?, output })
        }
        _ => None,
    }
}

fn items(projection: &[SelectItem]) -> Option<Vec<Item>> {
    if let [SelectItem::Wildcard(options)] = projection {
        return plain_wildcard(options).ok().map(|()| Vec::new());
    }
    let item = |item: &SelectItem| {
        let (expr, alias) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, None),
            SelectItem::ExprWithAlias { expr, alias } if alias.quote_style != Some('\'') => {
                (expr, Some(folded(alias)))
            }
            _ => return None,
        };
        let Expr::Identifier(column) = expr else { return None };
        Some(Item { column: folded(column), alias })
    };
    projection.iter().map(item).collect()
}

fn arguments(args: &[FunctionArg], references: &mut References) -> Option<Vec<Argument>> {
    args.iter().map(|arg| argument(arg, references)).collect()
}

fn argument(arg: &FunctionArg, references: &mut References) -> Option<Argument> {
    let (name, expr) = match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => (None, expr),
        FunctionArg::Named {
            name,
            arg: FunctionArgExpr::Expr(expr),
            operator: FunctionArgOperator::RightArrow | FunctionArgOperator::Assignment,
        }
        | FunctionArg::ExprNamed {
            name: Expr::Identifier(name),
            arg: FunctionArgExpr::Expr(expr),
            operator: FunctionArgOperator::RightArrow | FunctionArgOperator::Assignment,
        } => (Some(folded(name)), expr),
        _ => return None,
    };
    let argument = plain(expr).or_else(|| computed(expr, references))?;
    Some(Argument { name, ..argument })
}

/// An expression whose names are recorded.
fn computed(expr: &Expr, references: &mut References) -> Option<Argument> {
    references.constant(expr);
    references.expression(expr).ok()?;
    Some(Argument { name: None, value: ArgumentValue::Computed(parts(expr)?), negated: false, cast: None })
}

fn plain(expr: &Expr) -> Option<Argument> {
    match expr {
        Expr::Nested(inner) => plain(inner),
        Expr::Cast { expr, data_type, format: None, kind: CastKind::Cast | CastKind::DoubleColon } => {
            let inner = plain(expr)?;
            if inner.cast.is_some() || inner.negated {
                return None;
            }
            Some(Argument { cast: Some(type_of(data_type)?), ..inner })
        }
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            let inner = plain(expr)?;
            let number = matches!(inner.value, ArgumentValue::Param(_) | ArgumentValue::Number(_));
            if inner.negated || inner.cast.is_some() || !number {
                return None;
            }
            Some(Argument { negated: true, ..inner })
        }
        Expr::Value(value) => {
            let value = match &value.value {
                Value::Number(text, _) => ArgumentValue::Number(text.clone()),
                Value::SingleQuotedString(text) => ArgumentValue::String(text.clone()),
                Value::Boolean(truth) => ArgumentValue::Boolean(*truth),
                Value::Null => ArgumentValue::Null,
                Value::Placeholder(number) => {
                    let number: u16 = number.strip_prefix('$')?.parse().ok()?;
                    ArgumentValue::Param(number.checked_sub(1)?)
                }
                _ => return None,
            };
            Some(Argument { name: None, value, negated: false, cast: None })
        }
        _ => None,
    }
}

impl Argument {
    /// The value as the source of a key.
    pub(crate) fn operand(&self) -> Option<Operand> {
        match &self.value {
            _ if self.negated => None,
            ArgumentValue::Param(index) => Some(Operand::Param(*index)),
            ArgumentValue::String(text) | ArgumentValue::Number(text) => Some(Operand::Const(text.clone())),
            ArgumentValue::Boolean(truth) => Some(Operand::Const(truth.to_string())),
            ArgumentValue::Null | ArgumentValue::Computed(_) => None,
        }
    }
}

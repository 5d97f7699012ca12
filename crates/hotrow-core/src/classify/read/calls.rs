//! Function calls in an expression: records the names and rejects aggregates and window functions. The
//! function is judged elsewhere.

use sqlparser::ast::{Function, FunctionArg, FunctionArgExpr, FunctionArguments};

use crate::classify::known::functions::{is_keyword_function, takes_names};
use crate::classify::read::expression::References;
use crate::classify::reason::Reason;
use crate::classify::text::names::FunctionName;

/// Whether the server can read a constant argument of this function as the name of an object, when it analyses the statement. A
/// user's function with the name of PostgreSQL's own that does so is not packed (`function_facts.sql`).
fn reads_names(function: &FunctionName) -> bool {
    !matches!(function.schema.as_deref(), None | Some("pg_catalog")) || takes_names(&function.name)
}

impl References {
    /// Walks one call.
    pub(crate) fn function(&mut self, function: &Function) -> Result<(), Reason> {
        let Function { name, uses_odbc_syntax, parameters, args, filter, null_treatment, over, within_group } =
            function;
        if over.is_some() {
            return Err(Reason::Unsupported("a window function"));
        }
        let plain = !uses_odbc_syntax
            && matches!(parameters, FunctionArguments::None)
            && filter.is_none()
            && null_treatment.is_none()
            && within_group.is_empty();
        if !plain {
            return Err(Reason::Unsupported("an aggregate"));
        }
        let name = FunctionName::new(name)?;
        let reads_names = reads_names(&name);
        if matches!(args, FunctionArguments::None) && is_keyword_function(&name.name) {
            self.syntax(&name.name);
        } else {
            if name.name == "nullif" {
                self.operator("=");
            }
            self.functions.insert(name);
        }
        match args {
            FunctionArguments::None => Ok(()),
            FunctionArguments::Subquery(_) => Err(Reason::Unsupported("a subquery")),
            FunctionArguments::List(list) => {
                if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
                    return Err(Reason::Unsupported("an aggregate"));
                }
                list.args.iter().try_for_each(|arg| self.argument(arg, reads_names))
            }
        }
    }

    /// `reads_names` is whether a constant can be the name of an object.
    fn argument(&mut self, arg: &FunctionArg, reads_names: bool) -> Result<(), Reason> {
        match arg {
            FunctionArg::Named { arg: FunctionArgExpr::Expr(expr), .. }
            | FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => {
                if reads_names {
                    self.constant(expr);
                }
                self.expression(expr)
            }
            FunctionArg::ExprNamed { name, arg: FunctionArgExpr::Expr(expr), .. } => {
                if reads_names {
                    self.constant(expr);
                }
                self.expressions([name, expr])
            }
            _ => Err(Reason::Unsupported("an aggregate")),
        }
    }
}

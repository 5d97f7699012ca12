//! Expressions with keyword syntax: LIKE, CASE, CAST, EXTRACT and others. Operators and calls are read in
//! `expression` and `calls`.

use sqlparser::ast::{CastKind, CeilFloorKind, DateTimeField, Expr};

use crate::classify::read::expression::References;
use crate::classify::reason::Reason;

impl References {
    /// Expressions with keyword syntax: LIKE, CASE, CAST, EXTRACT and others.
    pub(crate) fn keyword_operator(&mut self, expr: &Expr) -> Result<(), Reason> {
        match expr {
            Expr::Like { expr, pattern, escape_char, any: false, negated: _ } => {
                self.pattern(["~~", "!~~"], expr, pattern, escape_char.as_deref())
            }
            Expr::ILike { expr, pattern, escape_char, any: false, negated: _ } => {
                self.pattern(["~~*", "!~~*"], expr, pattern, escape_char.as_deref())
            }
            Expr::SimilarTo { expr, pattern, escape_char, negated: _ } => {
                self.pattern(["~", "!~"], expr, pattern, escape_char.as_deref())
            }
            Expr::Case { operand, conditions, else_result, case_token: _, end_token: _ } => {
                if let Some(operand) = operand {
                    self.operator("=");
                    self.expression(operand)?;
                }
                for when in conditions {
                    self.expressions([&when.condition, &when.result])?;
                }
                self.expressions(else_result.as_deref())
            }
            Expr::Cast { expr, data_type, format: None, kind: CastKind::Cast | CastKind::DoubleColon } => {
                self.cast(data_type)?;
                self.expression(expr)
            }
            Expr::AtTimeZone { timestamp, time_zone } => {
                self.syntax("timezone");
                self.expressions([&**timestamp, &**time_zone])
            }
            Expr::Function(function) => self.function(function),
            Expr::CompoundFieldAccess { root, access_chain } => {
                self.expression(root)?;
                access_chain.iter().try_for_each(|access| self.access(access))
            }
            _ => self.keyword_function(expr),
        }
    }

    /// Functions with a syntax of their own.
    fn keyword_function(&mut self, expr: &Expr) -> Result<(), Reason> {
        match expr {
            Expr::Extract { expr, field: _, syntax: _ } => {
                self.syntax("extract");
                self.expression(expr)
            }
            Expr::Ceil { expr, field } => {
                self.syntax("ceil");
                self.rounded(expr, field)
            }
            Expr::Floor { expr, field } => {
                self.syntax("floor");
                self.rounded(expr, field)
            }
            Expr::Position { expr, r#in } => {
                self.syntax("position");
                self.expressions([&**expr, &**r#in])
            }
            Expr::Substring { expr, substring_from, substring_for, special: _, shorthand: _ } => {
                self.syntax("substring");
                self.expression(expr)?;
                self.expressions(substring_from.as_deref())?;
                self.expressions(substring_for.as_deref())
            }
            Expr::Trim { expr, trim_what, trim_characters, trim_where: _ } => {
                self.syntax("btrim");
                self.expression(expr)?;
                self.expressions(trim_what.as_deref())?;
                self.expressions(trim_characters.iter().flatten())
            }
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                self.syntax("overlay");
                self.expressions([&**expr, &**overlay_what, &**overlay_from])?;
                self.expressions(overlay_for.as_deref())
            }
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => {
                Err(Reason::Unsupported("a subquery"))
            }
            _ => Err(Reason::Unsupported("an expression of a kind that is not known to be harmless")),
        }
    }

    fn pattern(
        &mut self,
        operators: [&str; 2],
        expr: &Expr,
        pattern: &Expr,
        escape: Option<&Expr>,
    ) -> Result<(), Reason> {
        for operator in operators {
            self.operator(operator);
        }
        self.expressions([expr, pattern])?;
        self.expressions(escape)
    }

    fn rounded(&mut self, expr: &Expr, field: &CeilFloorKind) -> Result<(), Reason> {
        if matches!(field, CeilFloorKind::DateTimeField(DateTimeField::NoDateTime)) {
            self.expression(expr)
        } else {
            Err(Reason::Unsupported("CEIL or FLOOR with a field"))
        }
    }
}

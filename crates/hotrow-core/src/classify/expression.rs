//! Walks an expression of a statement that may be packed and notes what it uses; refuses every form it does not know.

use std::collections::BTreeSet;

use sqlparser::ast::{
    AccessExpr, BinaryOperator, CeilFloorKind, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, ObjectName, Subscript, UnaryOperator, Value, ValueWithSpan,
};

use super::functions::is_keyword_function;
use super::names::folded;
use super::{FunctionName, Reason, casts};

/// What the expressions of one statement use.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// Names that may qualify a column: the table, its alias, `excluded`, `old`, `new`.
    pub qualifiers: Vec<String>,
    /// All functions called.
    pub functions: BTreeSet<FunctionName>,
    /// All operators.
    pub operators: BTreeSet<String>,
    /// All types cast to.
    pub casts: BTreeSet<String>,
    /// All columns mentioned.
    pub columns: BTreeSet<String>,
}

const SYSTEM_COLUMNS: &[&str] = &["xmin", "xmax", "cmin", "cmax", "ctid", "tableoid"];

/// A column's name, unless it is one that tells row versions or transactions apart.
pub(super) fn column_name(ident: &Ident) -> Result<String, Reason> {
    let name = folded(ident);
    if SYSTEM_COLUMNS.contains(&name.as_str()) { Err(Reason::SystemColumn(name)) } else { Ok(name) }
}

impl Uses {
    /// Walks one expression.
    pub(super) fn expression(&mut self, expr: &Expr) -> Result<(), Reason> {
        match expr {
            Expr::Identifier(ident) => self.word(ident),
            Expr::CompoundIdentifier(idents) => self.column(idents),
            Expr::Value(value) => plain_value(value),
            Expr::TypedString(typed) => {
                self.casts.insert(casts::allowed(&typed.data_type)?);
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
            Expr::Collate { expr, collation: _ } => self.expression(expr),
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
            Expr::Tuple(items) => self.expressions(items),
            Expr::Array(array) => self.expressions(&array.elem),
            _ => self.worded_operator(expr),
        }
    }

    /// Walks several expressions.
    pub(super) fn expressions<'e>(&mut self, all: impl IntoIterator<Item = &'e Expr>) -> Result<(), Reason> {
        all.into_iter().try_for_each(|expr| self.expression(expr))
    }

    /// The forms that SQL spells with words: LIKE, CASE, CAST, EXTRACT and so on.
    fn worded_operator(&mut self, expr: &Expr) -> Result<(), Reason> {
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
            Expr::Cast { expr, data_type, format: None, kind: _ } => {
                self.casts.insert(casts::allowed(data_type)?);
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
            _ => self.worded_function(expr),
        }
    }

    /// Functions with a syntax of their own.
    fn worded_function(&mut self, expr: &Expr) -> Result<(), Reason> {
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
                Err(Reason::Form("a subquery"))
            }
            Expr::AnyOp { .. } | Expr::AllOp { .. } => Err(Reason::Form("ANY or ALL over a set")),
            _ => Err(Reason::Form("an expression of a kind that is not known to be harmless")),
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
        if matches!(field, CeilFloorKind::DateTimeField(sqlparser::ast::DateTimeField::NoDateTime)) {
            self.expression(expr)
        } else {
            Err(Reason::Form("CEIL or FLOOR with a field"))
        }
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

    /// `table.column`; what looks like a column can be a function applied to the row, so the name is looked up later.
    fn column(&mut self, idents: &[Ident]) -> Result<(), Reason> {
        let [qualifier, ident] = idents else {
            return Err(Reason::Form("a column name of more than two parts"));
        };
        if !self.qualifiers.contains(&folded(qualifier)) {
            return Err(Reason::Form("a column of something other than the table"));
        }
        self.columns.insert(column_name(ident)?);
        Ok(())
    }

    /// Checks that `alias.*` means the table.
    pub(super) fn qualifier(&self, name: &ObjectName) -> Result<(), Reason> {
        match super::names::parts(name)?.as_slice() {
            [only] if self.qualifiers.contains(only) => Ok(()),
            _ => Err(Reason::Form("a column of something other than the table")),
        }
    }

    fn function(&mut self, function: &Function) -> Result<(), Reason> {
        let Function { name, uses_odbc_syntax, parameters, args, filter, null_treatment, over, within_group } =
            function;
        if over.is_some() {
            return Err(Reason::Form("a window function"));
        }
        let plain = !uses_odbc_syntax
            && matches!(parameters, FunctionArguments::None)
            && filter.is_none()
            && null_treatment.is_none()
            && within_group.is_empty();
        if !plain {
            return Err(Reason::Form("an aggregate"));
        }
        let name = FunctionName::new(name)?;
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
            FunctionArguments::Subquery(_) => Err(Reason::Form("a subquery")),
            FunctionArguments::List(list) => {
                if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
                    return Err(Reason::Form("an aggregate"));
                }
                list.args.iter().try_for_each(|arg| self.argument(arg))
            }
        }
    }

    fn argument(&mut self, arg: &FunctionArg) -> Result<(), Reason> {
        match arg {
            FunctionArg::Named { arg: FunctionArgExpr::Expr(expr), .. }
            | FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => self.expression(expr),
            FunctionArg::ExprNamed { name, arg: FunctionArgExpr::Expr(expr), .. } => {
                self.expressions([name, expr])
            }
            _ => Err(Reason::Form("an aggregate")),
        }
    }

    /// Array subscripts; a field after a dot could be a function.
    fn access(&mut self, access: &AccessExpr) -> Result<(), Reason> {
        match access {
            AccessExpr::Subscript(Subscript::Index { index }) => self.expression(index),
            AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None }) => {
                self.expressions(lower_bound)?;
                self.expressions(upper_bound)
            }
            _ => Err(Reason::Form("a field of a composite value")),
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
        use BinaryOperator as Op;
        match op {
            Op::And | Op::Or => {}
            Op::Plus
            | Op::Minus
            | Op::Multiply
            | Op::Divide
            | Op::Modulo
            | Op::StringConcat
            | Op::Gt
            | Op::Lt
            | Op::GtEq
            | Op::LtEq
            | Op::Eq
            | Op::NotEq
            | Op::BitwiseOr
            | Op::BitwiseAnd
            | Op::PGBitwiseXor
            | Op::PGBitwiseShiftLeft
            | Op::PGBitwiseShiftRight
            | Op::PGExp
            | Op::PGOverlap
            | Op::PGRegexMatch
            | Op::PGRegexIMatch
            | Op::PGRegexNotMatch
            | Op::PGRegexNotIMatch
            | Op::PGLikeMatch
            | Op::PGILikeMatch
            | Op::PGNotLikeMatch
            | Op::PGNotILikeMatch
            | Op::PGStartsWith
            | Op::Arrow
            | Op::LongArrow
            | Op::HashArrow
            | Op::HashLongArrow
            | Op::AtAt
            | Op::AtArrow
            | Op::ArrowAt
            | Op::HashMinus
            | Op::AtQuestion
            | Op::Question
            | Op::QuestionAnd
            | Op::QuestionPipe => {
                self.operator(&op.to_string());
            }
            Op::BitwiseXor => self.operator("^"),
            _ => return Err(Reason::Operator(op.to_string())),
        }
        Ok(())
    }

    fn operator(&mut self, name: &str) {
        self.operators.insert(name.to_owned());
    }

    fn syntax(&mut self, name: &str) {
        self.functions.insert(FunctionName::of_syntax(name));
    }
}

/// A literal of a kind PostgreSQL has.
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
        _ => Err(Reason::Form("a literal that is not PostgreSQL's")),
    }
}

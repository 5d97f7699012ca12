//! Reads an argument of a call that is an expression over parameters and constants, so that it can be written
//! with other names for its parameters. Whether its functions are harmless is judged elsewhere.

use sqlparser::ast::{
    CaseWhen, CastKind, DataType, Expr, ExtractSyntax, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Interval, UnaryOperator, Value,
};

use crate::classify::read::candidate::Part;

/// A type with numbers as its modifiers. The parser also takes strings and words, and would write them without
/// quotes.
fn type_text(data_type: &DataType) -> Option<String> {
    let text = data_type.to_string();
    let is_name = |part: &str| part.chars().all(|c| c.is_ascii_alphanumeric() || " _.[]".contains(c));
    let plain = match text.split_once('(') {
        None => is_name(&text),
        Some((name, rest)) => rest.split_once(')').is_some_and(|(modifiers, after)| {
            let numbers = modifiers.chars().all(|c| c.is_ascii_digit() || " ,".contains(c));
            is_name(name) && numbers && is_name(after)
        }),
    };
    plain.then_some(text)
}

/// The expression in parts, if it has only parts that PostgreSQL computes for columns as for parameters.
pub(crate) fn parts(expr: &Expr) -> Option<Vec<Part>> {
    let mut writer = Writer(Vec::new());
    writer.expression(expr)?;
    Some(writer.0)
}

/// NULL, TRUE and FALSE stay constants in the merged statement, and other constants become columns. With such an operand,
/// the server would leave out an operator at planning, and with it an error of its other operand. So they can stand only
/// where the server computes what is around them for each call.
struct Writer(Vec<Part>);

impl Writer {
    fn text(&mut self, text: &str) {
        self.0.push(Part::Text(text.to_owned()));
    }

    /// The tokens keep their order and get no parentheses. PostgreSQL therefore reads them as it reads the
    /// original, whatever precedence the parser gave to its operators.
    fn expression(&mut self, expr: &Expr) -> Option<()> {
        match expr {
            Expr::Nested(inner) => self.between("(", inner, ")"),
            Expr::UnaryOp { op, expr } => match op {
                UnaryOperator::Plus | UnaryOperator::Minus | UnaryOperator::Not => {
                    self.between(&format!("{op} "), expr, "")
                }
                _ => None,
            },
            Expr::BinaryOp { left, op, right } => {
                self.expression(left)?;
                self.between(&format!(" {op} "), right, "")
            }
            Expr::Cast { kind: CastKind::Cast, expr, data_type, format: None } => {
                self.between("cast(", expr, &format!(" as {})", type_text(data_type)?))
            }
            Expr::Cast { kind: CastKind::DoubleColon, expr, data_type, format: None } => {
                self.between("", expr, &format!("::{}", type_text(data_type)?))
            }
            Expr::Interval(Interval {
                value,
                leading_field: None,
                leading_precision: None,
                last_field: None,
                fractional_seconds_precision: None,
            }) if matches!(&**value, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_))) => {
                self.between("interval ", value, "")
            }
            Expr::IsNull(inner) => self.between("", inner, " is null"),
            Expr::IsNotNull(inner) => self.between("", inner, " is not null"),
            Expr::InList { expr, list, negated } => {
                self.expression(expr)?;
                self.list(if *negated { " not in (" } else { " in (" }, list, ")", Self::expression)
            }
            Expr::Array(array) if array.named => self.list("array[", &array.elem, "]", Self::value_or_null),
            Expr::Case { operand, conditions, else_result, case_token: _, end_token: _ } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            Expr::Extract { field, expr, syntax: ExtractSyntax::From } => {
                let field = field.to_string();
                let is_word = field.chars().all(|c| c.is_ascii_alphabetic());
                is_word.then(|| self.between(&format!("extract({field} from "), expr, ")"))?
            }
            Expr::Function(function) => self.function(function),
            Expr::Value(value) => self.value(&value.value),
            _ => None,
        }
    }

    fn between(&mut self, before: &str, expr: &Expr, after: &str) -> Option<()> {
        self.text(before);
        self.expression(expr)?;
        self.text(after);
        Some(())
    }

    fn list(
        &mut self,
        before: &str,
        items: &[Expr],
        after: &str,
        write: fn(&mut Self, &Expr) -> Option<()>,
    ) -> Option<()> {
        self.text(before);
        for (place, item) in items.iter().enumerate() {
            self.text(if place == 0 { "" } else { ", " });
            write(self, item)?;
        }
        self.text(after);
        Some(())
    }

    fn case(
        &mut self,
        operand: Option<&Expr>,
        conditions: &[CaseWhen],
        otherwise: Option<&Expr>,
    ) -> Option<()> {
        let start = self.0.len();
        self.text("case");
        if let Some(operand) = operand {
            self.between(" ", operand, "")?;
        }
        for (place, when) in conditions.iter().enumerate() {
            self.between(" when ", &when.condition, " then ")?;
            if place == 0 && !self.0[start..].iter().any(|part| matches!(part, Part::Param(_))) {
                return None; // the server would compute it at planning
            }
            self.value_or_null(&when.result)?;
        }
        if let Some(otherwise) = otherwise {
            self.text(" else ");
            self.value_or_null(otherwise)?;
        }
        self.text(" end");
        Some(())
    }

    /// An expression, or NULL, TRUE or FALSE with or without a cast.
    fn value_or_null(&mut self, expr: &Expr) -> Option<()> {
        match expr {
            Expr::Value(value) if matches!(value.value, Value::Boolean(_) | Value::Null) => {
                self.text(&value.to_string());
                Some(())
            }
            Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, format: None }
                if matches!(&**expr, Expr::Value(value) if value.value == Value::Null) =>
            {
                self.text(&format!("cast(null as {})", type_text(data_type)?));
                Some(())
            }
            _ => self.expression(expr),
        }
    }

    fn function(&mut self, function: &Function) -> Option<()> {
        let is_plain = |ident: &sqlparser::ast::Ident| ident.quote_style.is_none();
        if !function.name.0.iter().all(|part| part.as_ident().is_some_and(is_plain)) {
            return None;
        }
        self.text(&function.name.to_string());
        match &function.args {
            FunctionArguments::None => {}
            FunctionArguments::List(list) if list.args.is_empty() => self.text("()"),
            FunctionArguments::List(list) => {
                for (place, argument) in list.args.iter().enumerate() {
                    let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument else { return None };
                    self.between(if place == 0 { "(" } else { ", " }, expr, "")?;
                }
                self.text(")");
            }
            FunctionArguments::Subquery(_) => return None,
        }
        Some(())
    }

    fn value(&mut self, value: &Value) -> Option<()> {
        match value {
            Value::Placeholder(name) => {
                let number: u16 = name.strip_prefix('$')?.parse().ok()?;
                self.0.push(Part::Param(number.checked_sub(1)?));
            }
            Value::Number(text, false) => self.text(text),
            Value::SingleQuotedString(text) => self.text(&format!("'{}'", text.replace('\'', "''"))),
            _ => return None,
        }
        Some(())
    }
}

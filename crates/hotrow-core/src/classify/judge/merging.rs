//! How calls of a function with a merge rule become one call of its batch function. This module runs no calls.

use hotrow_lane::key::hash_of;

use crate::key::{KeySource, KeySpec, ValueForm, key_space};

use crate::classify::facts::{Facts, MergeRule, Parameter, ResultKind};
use crate::classify::known::builtin_types;
use crate::classify::read::candidate::{Argument, ArgumentValue, Call, Item, Operand, Output, Part};
use crate::untrusted::identifier as quoted;

/// How calls of one shape become one call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Merging {
    /// The statement that calls the batch function, with one array for each argument.
    pub text: String,
    /// The types of these arrays.
    pub types: Vec<u32>,
    /// A number that all statements with this text and these types share.
    pub group: u64,
    /// The contents of each array.
    pub elements: Vec<Element>,
    /// The result of the batch function for each call.
    pub returns: Returns,
    /// Maximum number of calls in one call of the batch function.
    pub most: u16,
}

/// The result of a batch function for each call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Returns {
    Row,
    /// Any number of rows, each with the call's number before its columns.
    Rows,
    /// Like `Rows`. In addition, one row can say in how many milliseconds to retry a call and how long the
    /// call waits at most. These two values follow the call's number.
    RowsOrWait,
}

impl Returns {
    /// Number of columns that the statement returns before the columns that the client requested.
    pub fn lead(self) -> u16 {
        match self {
            Returns::Row => 0,
            Returns::Rows => 1,
            Returns::RowsOrWait => 3,
        }
    }
}

/// The contents of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Element {
    /// The source of each call's value.
    pub source: ElementSource,
    /// The type's oid.
    pub type_oid: u32,
}

/// The source of a value of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ElementSource {
    /// A parameter, counted from zero.
    Param(u16),
    /// A parameter with a minus sign. The sign can be added in text format only.
    NegatedParam(u16),
    /// The same value in all calls of the statement, in text format. `None` is NULL.
    Const(Option<String>),
}

/// A call of a function with a merge rule. Its arguments are in the order of the function's parameters.
pub(crate) struct Matched<'a> {
    pub rule: &'a MergeRule,
    call: &'a Call,
    arguments: Vec<Option<&'a Argument>>,
}

impl<'a> Matched<'a> {
    /// The merge rule for a call, if there is one and the call cannot mean another function.
    pub(crate) fn find(call: &'a Call, facts: &'a Facts) -> Option<Self> {
        let function = &call.function;
        let means = |schema: &str, visible: bool| match &function.schema {
            Some(wanted) => wanted == schema,
            None => visible,
        };
        let mut namesakes = facts.namesakes(function);
        if namesakes.next().is_none() || namesakes.next().is_some() {
            return None;
        }
        let rule =
            facts.rules.merge.iter().find(|rule| {
                rule.callable && rule.name == function.name && means(&rule.schema, rule.visible)
            })?;
        let mut arguments = vec![None; rule.parameters.len()];
        for (place, argument) in call.arguments.iter().enumerate() {
            let place = match &argument.name {
                Some(name) => rule.parameters.iter().position(|parameter| parameter.name == *name)?,
                None => place,
            };
            let slot: &mut Option<&Argument> = arguments.get_mut(place)?;
            if slot.replace(argument).is_some() {
                return None;
            }
        }
        let complete = arguments.iter().take(rule.required).all(Option::is_some);
        complete.then_some(Matched { rule, call, arguments })
    }

    /// The row for which a call contends. `None` if the call does not show it.
    pub(crate) fn key(&self) -> Option<KeySpec> {
        let parameter = self.rule.parameters.get(self.rule.key_argument)?;
        let source = match self.arguments[self.rule.key_argument]?.operand()? {
            Operand::Param(index) => KeySource::Param(index),
            Operand::Const(text) => KeySource::Const(text),
            Operand::OneOf(_)
            | Operand::Element(_)
            | Operand::Cast(..)
            | Operand::Unnested(_)
            | Operand::Rows(_)
            | Operand::Null
            | Operand::Default
            | Operand::All
            | Operand::Expression => return None,
        };
        let form = ValueForm::of_type(parameter.type_oid);
        Some(KeySpec::in_space(key_space(&self.rule.key_space), &parameter.name, form, source))
    }

    /// How the call can be merged with others. `declared` are the parameter types that the client declared.
    pub(crate) fn merging(&self, declared: &[u32]) -> Option<Merging> {
        let mut arrays = Arrays::default();
        let mut places = vec![None; self.arguments.len()];
        for (place, (parameter, argument)) in places.iter_mut().zip(self.given()) {
            if let Some(plain) = argument.filter(|argument| !is_computed(argument)) {
                let type_oid = type_of(plain, parameter, declared)?;
                *place = Some(arrays.add(source(plain), type_oid, parameter)?);
            }
        }
        let mut given = Vec::new();
        for (place, (parameter, argument)) in places.iter().zip(self.given()) {
            let value = match (place, argument.map(|argument| &argument.value)) {
                (Some(place), _) => format!("${place}"),
                (None, Some(ArgumentValue::Computed(parts))) => arrays.computed(parts, declared)?,
                _ => continue,
            };
            given.push(format!("{} => {value}", quoted(&parameter.name)));
        }
        let given = given.join(", ");
        let MergeRule { batch_schema, batch_name, .. } = self.rule;
        let batch_function = format!("{}.{}({given})", quoted(batch_schema), quoted(batch_name));
        let (text, returns) = match (self.rule.returns_set, self.rule.wait_argument) {
            (false, _) => (self.select_row(&batch_function)?, Returns::Row),
            (true, None) => (self.select_rows(&batch_function, None)?, Returns::Rows),
            (true, Some(wait)) if self.arguments[wait].is_some_and(is_computed) => return None,
            (true, Some(wait)) => {
                (self.select_rows(&batch_function, Some(places[wait]))?, Returns::RowsOrWait)
            }
        };
        let mut identity = text.clone().into_bytes();
        arrays.types.iter().for_each(|oid| identity.extend_from_slice(&oid.to_be_bytes()));
        Some(Merging {
            text,
            types: arrays.types,
            group: hash_of(&identity),
            elements: arrays.elements,
            returns,
            most: self.rule.most_calls,
        })
    }

    /// The function's parameters with the arguments that are given for them.
    fn given(&self) -> impl Iterator<Item = (&Parameter, Option<&'a Argument>)> {
        self.rule.parameters.iter().zip(self.arguments.iter().copied())
    }

    /// The statement with a batch function that returns one row for each call. Its columns have the names that the
    /// client expects.
    fn select_row(&self, batch_function: &str) -> Option<String> {
        let name = &self.call.function.name;
        match &self.call.output {
            Output::Value(alias) => {
                let alias = quoted(alias.as_ref().unwrap_or(name));
                Some(format!("select hotrow_answer as {alias} from {batch_function} as hotrow_answer"))
            }
            Output::Rows { alias, items } => {
                let alias = alias.as_ref().unwrap_or(name);
                // The only column of a function with a plain result is named after the function's alias.
                let columns = match self.rule.columns.as_slice() {
                    [_] => std::slice::from_ref(alias),
                    columns => columns,
                };
                let items = if items.is_empty() { "*".to_owned() } else { selected(items, columns)? };
                Some(format!("select {items} from {batch_function} as {}", quoted(alias)))
            }
        }
    }

    /// The statement with a batch function whose rows contain their call's number. For calls that wait, `wait` is the
    /// index of the argument with the waiting time.
    fn select_rows(&self, batch_function: &str, wait: Option<Option<usize>>) -> Option<String> {
        let (name, rule) = (&self.call.function.name, self.rule);
        let (Output::Value(alias) | Output::Rows { alias, .. }) = &self.call.output;
        let alias = alias.as_ref().unwrap_or(name);
        let columns = if rule.named { rule.columns.as_slice() } else { std::slice::from_ref(alias) };
        let all = columns.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(", ");
        let items = match &self.call.output {
            Output::Rows { items, .. } if items.is_empty() => all.clone(),
            Output::Rows { items, .. } => selected(items, columns)?,
            Output::Value(_) => match rule.result {
                ResultKind::Plain => format!("{all} as {}", quoted(alias)),
                ResultKind::Record => format!("row({all}) as {}", quoted(alias)),
                // The row would have the batch function's type, and the client can see a row's type.
                ResultKind::Row => return None,
            },
        };
        let (lead, waits) = match wait {
            None => (CALL.to_owned(), String::new()),
            Some(place) => {
                let wait = place.map(|place| milliseconds(&format!("(${place})[{CALL}]")));
                let wait = wait.unwrap_or_else(|| "cast(null as pg_catalog.int8)".to_owned());
                (format!("{CALL}, {AGAIN_IN}"), format!(", {}, {wait}", milliseconds(AGAIN_IN)))
            }
        };
        Some(format!(
            "select {CALL}{waits}, {items} from {batch_function} as {} ({lead}, {all})",
            quoted(alias)
        ))
    }
}

/// The arrays that the merged statement gets as parameters.
#[derive(Default)]
struct Arrays {
    elements: Vec<Element>,
    types: Vec<u32>,
}

impl Arrays {
    /// The number, from one, of a new array for an argument.
    fn add(&mut self, source: ElementSource, type_oid: u32, parameter: &Parameter) -> Option<usize> {
        let is_own = type_oid == parameter.type_oid;
        self.types.push(if is_own { parameter.array_oid } else { builtin_types::array_of(type_oid)? });
        self.elements.push(Element { source, type_oid });
        Some(self.types.len())
    }

    /// The number of the array with the values of a parameter.
    fn of_param(&mut self, param: u16, type_oid: u32) -> Option<usize> {
        let element = Element { source: ElementSource::Param(param), type_oid };
        let array = builtin_types::array_of(type_oid)?;
        let known = self.elements.iter().position(|one| *one == element);
        if known.is_none() {
            self.elements.push(element);
            self.types.push(array);
        }
        Some(known.unwrap_or(self.types.len() - 1) + 1)
    }

    /// An array with the results of an expression, which the server computes for each call from columns of the
    /// same types as the parameters. Without parameters, it is computed for each element of another array.
    fn computed(&mut self, parts: &[Part], declared: &[u32]) -> Option<String> {
        let (mut text, mut arrays, mut columns) = (String::new(), Vec::new(), Vec::new());
        for part in parts {
            let param = match part {
                Part::Text(part) => {
                    text.push_str(part);
                    continue;
                }
                Part::Param(param) => *param,
            };
            let column = format!("hotrow_{}", param + 1);
            if !columns.contains(&column) {
                let type_oid = *declared.get(usize::from(param))?;
                arrays.push(format!("pg_catalog.unnest(${})", self.of_param(param, type_oid)?));
                columns.push(column.clone());
            }
            text.push_str(&column);
        }
        if columns.is_empty() {
            arrays.push("pg_catalog.unnest($1)".to_owned());
            columns.push("hotrow_any".to_owned());
        }
        let (arrays, columns) = (arrays.join(", "), columns.join(", "));
        Some(format!(
            "array(select {text} from rows from ({arrays}) with ordinality as hotrow_calls ({columns}, {CALL}) \
             order by {CALL})"
        ))
    }
}

fn is_computed(argument: &Argument) -> bool {
    matches!(argument.value, ArgumentValue::Computed(_))
}

/// Names of the leading columns inside the statement.
const CALL: &str = "hotrow_call";
const AGAIN_IN: &str = "hotrow_again_in";

/// An interval as a whole number of milliseconds that fits a bigint.
fn milliseconds(interval: &str) -> String {
    // least() ignores NULL and would return a number for it.
    format!(
        "case when {interval} is not null then cast(least(pg_catalog.date_part('epoch', {interval}), 1e9) \
         operator(pg_catalog.*) 1000 as pg_catalog.int8) end"
    )
}

/// A select list of these items, if each of them is one of the columns.
fn selected(items: &[Item], columns: &[String]) -> Option<String> {
    let item = |Item { column, alias }: &Item| {
        let known = columns.contains(column).then(|| quoted(column))?;
        Some(alias.as_ref().map_or(known.clone(), |alias| format!("{known} as {}", quoted(alias))))
    };
    Some(items.iter().map(item).collect::<Option<Vec<_>>>()?.join(", "))
}

/// The type of an argument's values, if the function accepts it without an error. Otherwise the call is not
/// merged and the server reports the error.
fn type_of(argument: &Argument, parameter: &Parameter, declared: &[u32]) -> Option<u32> {
    let wanted = parameter.type_oid;
    let given = match &argument.value {
        ArgumentValue::Param(index) => match declared.get(usize::from(*index)) {
            Some(oid) if !builtin_types::OPEN.contains(oid) => {
                // A cast to a wider type changes no value, and the function accepts the wider type too.
                let widens = |cast| builtin_types::widens(*oid, cast) && builtin_types::fits(cast, wanted);
                if argument.cast.is_some_and(|cast| cast != *oid && !widens(cast)) {
                    return None;
                }
                *oid
            }
            // For an expression with a minus sign, the server picks one of several types itself.
            _ if argument.negated => return None,
            _ => argument.cast.unwrap_or(wanted),
        },
        ArgumentValue::String(_) | ArgumentValue::Null => argument.cast.unwrap_or(wanted),
        ArgumentValue::Number(text) => match (argument.cast, text.parse::<i64>()) {
            // A whole number that the type can hold keeps its text. Another one is rounded or refused.
            (Some(builtin_types::INTEGER), Ok(number)) if i32::try_from(number).is_ok() => {
                builtin_types::INTEGER
            }
            (Some(builtin_types::BIGINT), Ok(_)) => builtin_types::BIGINT,
            (Some(_), _) => return None,
            (None, Ok(number)) if i32::try_from(number).is_ok() => builtin_types::INTEGER,
            (None, Ok(_)) => builtin_types::BIGINT,
            (None, Err(_)) => builtin_types::NUMERIC,
        },
        // For another type, the server converts the value, and does not read its text.
        ArgumentValue::Boolean(_) if argument.cast.is_some_and(|cast| cast != builtin_types::BOOLEAN) => {
            return None;
        }
        ArgumentValue::Boolean(_) => builtin_types::BOOLEAN,
        ArgumentValue::Computed(_) => return None,
    };
    let numeric = [builtin_types::INTEGER, builtin_types::BIGINT, builtin_types::NUMERIC];
    let fits = builtin_types::fits(given, wanted) && (!argument.negated || numeric.contains(&given));
    fits.then_some(given)
}

fn source(argument: &Argument) -> ElementSource {
    let sign = if argument.negated { "-" } else { "" };
    match &argument.value {
        ArgumentValue::Param(index) if argument.negated => ElementSource::NegatedParam(*index),
        ArgumentValue::Param(index) => ElementSource::Param(*index),
        ArgumentValue::Number(text) => ElementSource::Const(Some(format!("{sign}{text}"))),
        ArgumentValue::String(text) => ElementSource::Const(Some(text.clone())),
        ArgumentValue::Boolean(truth) => ElementSource::Const(Some(truth.to_string())),
        ArgumentValue::Null | ArgumentValue::Computed(_) => ElementSource::Const(None),
    }
}

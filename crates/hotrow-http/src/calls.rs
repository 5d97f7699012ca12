//! The calls of the hotrow schema's functions: the statement, which is made from the function's parameters, and the effect.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use hotrow_sql::{Function, functions};

/// The statements of functions whose answers are not just their columns.
const STATEMENTS: [(&str, &str); 4] = [
    ("list_sales", include_str!("../sql/list_sales.sql")),
    ("mark_read_up_to", include_str!("../sql/mark_read_up_to.sql")),
    ("redrive", include_str!("../sql/redrive.sql")),
    ("sale", include_str!("../sql/sale.sql")),
];

/// The effect of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The call may change data, and has a merge rule.
    Merged,
    /// The call may change data.
    Writes,
    /// The call changes nothing.
    Reads,
}

/// A call of the hotrow schema.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The statement.
    pub sql: &'static str,
    /// The effect.
    pub effect: Effect,
}

impl Call {
    /// The call of a function that has a route.
    pub fn of(function: &str) -> Self {
        static CALLS: LazyLock<BTreeMap<&str, (String, Effect)>> = LazyLock::new(|| {
            let routed = functions().iter().filter(|function| function.http.at().is_some());
            routed.map(|function| (function.name.as_str(), (statement(function), effect(function)))).collect()
        });
        let (sql, effect) = CALLS.get(function).unwrap_or_else(|| panic!("{function} has no route"));
        Call { sql, effect: *effect }
    }
}

fn statement(function: &Function) -> String {
    let Function { name, .. } = function;
    if let Some((_, written)) = STATEMENTS.iter().find(|(function, _)| function == name) {
        return (*written).to_owned();
    }
    let places: Vec<_> = (1..=function.of_requests().len()).map(|place| format!("${place}")).collect();
    format!("select * from hotrow.{name}({})", places.join(", "))
}

fn effect(function: &Function) -> Effect {
    match function {
        Function { merge: Some(_), .. } => Effect::Merged,
        Function { is_stable: true, .. } => Effect::Reads,
        _ => Effect::Writes,
    }
}

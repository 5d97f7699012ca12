//! Calls of functions with a pack rule: whether a call can only mean such functions, and the row for which it contends.

use crate::key::{KeySource, KeySpec, ValueForm, key_space};

use crate::classify::facts::{Facts, PackRule};
use crate::classify::judge::declared_source::contradiction;
use crate::classify::read::candidate::{Call, Operand};
use crate::classify::reason::Reason;

/// A call of a function with a pack rule. If the function is overloaded, all functions that the call can mean have rules.
pub(crate) struct Declared<'a> {
    rules: Vec<&'a PackRule>,
    call: &'a Call,
    /// Why a function does not do what its rule declares.
    contradiction: Option<&'static str>,
}

impl<'a> Declared<'a> {
    /// The rules for a call. None if it can mean a function without one.
    pub(crate) fn find(call: &'a Call, facts: &'a Facts) -> Option<Self> {
        let mut namesakes = facts.namesakes(&call.function);
        let rule_of = |oid| facts.rules.pack.iter().find(|rule| Some(rule.oid) == oid);
        let rules: Vec<&PackRule> =
            namesakes.clone().map(|fact| rule_of(fact.oid())).collect::<Option<_>>()?;
        let contradiction = namesakes.find_map(|fact| contradiction(fact, &facts.functions));
        (!rules.is_empty()).then_some(Declared { rules, call, contradiction })
    }

    /// The function, unless its calls cannot be packed in spite of the rule.
    pub(crate) fn function(&self) -> Result<String, Reason> {
        let rule = self.rules[0];
        let name = format!("{}.{}", rule.schema, rule.name);
        if self.rules.iter().any(|rule| rule.may_change_other_nodes) {
            let why = "is not a function of the hotrow schema and may change rows of several nodes (the database has Citus)";
            return Err(Reason::Distributed { table: name, why });
        }
        match self.contradiction {
            Some(why) => Err(Reason::Function { name, why }),
            None => Ok(name),
        }
    }

    /// The row for which the call contends. None if its arguments do not show it, or if overloaded functions differ.
    pub(crate) fn key(&self) -> Option<KeySpec> {
        let mut keys = self.rules.iter().map(|rule| self.key_by(rule));
        let first = keys.next()??;
        keys.all(|key| key.as_ref() == Some(&first)).then_some(first)
    }

    fn key_by(&self, rule: &PackRule) -> Option<KeySpec> {
        let space = key_space(&rule.key_space);
        let Some(place) = rule.key_argument else {
            return Some(KeySpec { table: space, columns: Vec::new() });
        };
        let parameter = rule.parameters.get(place)?;
        let named = |name: &String| !name.is_empty() && *name == parameter.name;
        let argument = self.call.arguments.iter().enumerate().find(|(at, argument)| match &argument.name {
            Some(name) => named(name),
            None => *at == place,
        });
        let source = match argument?.1.operand()? {
            Operand::Param(index) => KeySource::Param(index),
            Operand::Const(text) => KeySource::Const(text),
            _ => return None,
        };
        let form = ValueForm::of_type(parameter.type_oid);
        Some(KeySpec::in_space(space, &parameter.name, form, source))
    }
}

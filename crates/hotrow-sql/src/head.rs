//! The heads of functions, as the migrations have them: parameters, results and options.

use crate::migrations::MIGRATIONS;
use crate::text::Pack;

/// The beginning of a function in the migrations.
pub(crate) struct Head {
    pub(crate) name: String,
    /// The text before the body.
    pub(crate) text: String,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) returns: Returns,
    pub(crate) is_stable: bool,
    /// The body in the migrations, for a distributed hotrow schema.
    pub(crate) body: String,
}

/// A parameter of a function.
#[derive(Debug)]
pub struct Parameter {
    /// The name.
    pub name: String,
    /// The type, as the migration writes it: `text`, `bigint`, `int`.
    pub of: String,
    /// The default, as the migration writes it: `1`, `'ledger'`, `null`.
    pub default: Option<String>,
}

pub(crate) enum Returns {
    /// These parameters.
    Out(Vec<String>),
    /// Rows with these columns, each with its type.
    Table(Vec<(String, String)>),
    /// Rows of a type.
    Rows(String),
    /// A value.
    Value,
}

impl Head {
    pub(crate) fn of(name: &str) -> Self {
        let beginning = format!("\ncreate function hotrow.{name}(");
        // Clients see the head, which is the same in both packs.
        let found =
            MIGRATIONS.iter().rev().filter(|it| it.source.contains(&beginning)).find_map(|migration| {
                let after = |pack| Some(migration.text(pack).split_once(&beginning)?.1.to_owned());
                after(Pack::One).zip(after(Pack::Many))
            });
        let (one, many) = found.unwrap_or_else(|| {
            panic!("no migration creates {name} with `create function hotrow.{name}(` at the start of a line")
        });
        let (head, _) = one.split_once(" as $$").unwrap_or((&one, ""));
        let (_, body) = many.split_once(" as $$").unwrap_or((&many, ""));
        let (all, rest) = in_parentheses(head);
        let (mut parameters, mut outs) = (Vec::new(), Vec::new());
        for parameter in split(all).filter(|parameter| !parameter.is_empty()) {
            match parameter.strip_prefix("out ") {
                Some(out) => outs.push(name_and_type(out).0),
                None => parameters.push(Parameter::read(parameter)),
            }
        }
        let options = rest.split_once("language").map_or("", |(_, options)| options);
        let returns = match rest.trim_start().strip_prefix("returns ") {
            None => Returns::Out(outs),
            Some(of) => match of.trim_start().strip_prefix("table (") {
                Some(columns) => {
                    Returns::Table(split(in_parentheses(columns).0).map(name_and_type).collect())
                }
                None => match of.trim_start().strip_prefix("setof ") {
                    Some(of) => Returns::Rows(of.split_whitespace().next().unwrap_or_default().to_owned()),
                    None => Returns::Value,
                },
            },
        };
        Head {
            name: name.to_owned(),
            text: format!("create or replace function hotrow.{name}({head}"),
            parameters,
            returns,
            is_stable: options.split_whitespace().any(|word| word == "stable"),
            body: body.split("$$").next().unwrap_or_default().to_owned(),
        }
    }
}

impl Parameter {
    fn read(text: &str) -> Self {
        let (declared, default) = match text.split_once(" default ") {
            Some((declared, default)) => (declared, Some(default.to_owned())),
            None => (text, None),
        };
        let (name, of) = name_and_type(declared);
        Self { name, of, default }
    }
}

/// The text up to the parenthesis that ends it, and the text after that.
fn in_parentheses(text: &str) -> (&str, &str) {
    let mut depth = 0;
    for (place, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return (&text[..place], &text[place + 1..]),
            ')' => depth -= 1,
            _ => {}
        }
    }
    (text, "")
}

fn split(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim)
}

fn name_and_type(text: &str) -> (String, String) {
    let (name, of) = text.split_once(' ').unwrap_or((text, ""));
    (name.to_owned(), of.to_owned())
}

//! The functions of feeds in a distributed pack. Feeds stay on the coordinator, because a post is delivered to users of all
//! shards. Each function is called through one of the same name that refuses the call on any other node. This module asks no
//! server.

use super::dispatch::{Dispatcher, Head, Returns};
use crate::functions::functions;
use crate::migrations::MIGRATIONS;

/// The schema of the functions that do the work. PL/pgSQL compiles a whole function before it runs a part of it, and they name
/// tables that other nodes do not have.
pub const SCHEMA: &str = "hotrow_feeds";

/// The names of the functions.
fn names() -> impl Iterator<Item = &'static str> {
    let feeds = functions().iter().filter(|function| function.area == "feeds");
    feeds.flat_map(|function| {
        let twin = function.merge.as_ref().map(|merge| merge.batch.as_str());
        std::iter::once(function.name.as_str()).chain(twin)
    })
}

/// The functions that clients call.
pub fn fronts() -> impl Iterator<Item = Dispatcher> {
    names().map(|name| {
        let head = Head::of(name);
        let arguments = head.arguments(|parameter| format!("{name}.{parameter}"));
        let call = format!("from {SCHEMA}.{name}({arguments}) f");
        let run = match &head.returns {
            Returns::Out(outs) => {
                let targets: Vec<_> = outs.iter().map(|out| format!("{name}.{out}")).collect();
                format!("    select f.* into {} {call};\n", targets.join(", "))
            }
            Returns::Table(_) | Returns::Rows(_) => format!("    return query select f.* {call};\n"),
            Returns::Value if head.is_void => format!("    perform {SCHEMA}.{name}({arguments});\n"),
            Returns::Value => format!("    return {SCHEMA}.{name}({arguments});\n"),
        };
        head.with_body(&format!("\nbegin\n    perform hotrow.check_coordinator('{name}');\n{run}end\n"))
    })
}

/// The statements that create the functions that do the work.
pub fn functions_of_the_coordinator() -> String {
    names()
        .map(|name| {
            original(name).replacen(
                "create function hotrow.",
                &format!("create or replace function {SCHEMA}."),
                1,
            )
        })
        .collect()
}

/// The statement of the migrations that creates a function.
fn original(name: &str) -> String {
    let beginning = format!("\ncreate function hotrow.{name}(");
    let found = MIGRATIONS.iter().rev().find_map(|migration| migration.file.split_once(&beginning));
    let (_, rest) = found.unwrap_or_else(|| panic!("no migration creates {name}"));
    let (text, _) = rest.split_once("\n$$;\n").unwrap_or((rest, ""));
    format!("{beginning}{text}\n$$;\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_feeds_refuses_calls_elsewhere_before_it_names_a_table() {
        let fronts: Vec<_> = fronts().collect();
        let due = functions().iter().filter(|function| function.area == "feeds");
        let due: usize = due.map(|function| 1 + usize::from(function.merge.is_some())).sum();
        assert_eq!(fronts.len(), due);
        for front in &fronts {
            let name = &front.name;
            assert!(
                front
                    .body
                    .starts_with(&format!("\nbegin\n    perform hotrow.check_coordinator('{name}');\n"))
            );
            assert_eq!(front.body.matches("hotrow.").count(), 1, "{name}: {}", front.body);
            assert_eq!(front.body.matches(&format!("{SCHEMA}.{name}(")).count(), 1, "{name}: {}", front.body);
            assert!(front.text.contains(" security definer set search_path = "), "{}", front.text);
        }
        let text = functions_of_the_coordinator();
        assert_eq!(text.matches("\ncreate or replace function hotrow_feeds.").count(), due);
        assert_eq!(text.matches("\n$$;\n").count(), due);
    }
}

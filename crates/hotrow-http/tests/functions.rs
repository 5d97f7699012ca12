//! Compares the manifests of the hotrow schema's functions with the places where a function must appear too: the catalog after an
//! installation, the model, and the documentation. A failure names each place that misses a function.

#![expect(clippy::unwrap_used, reason = "the lints' exception for tests covers only functions with #[test]")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use hotrow_model::{Command, FeedCommand, QueueCommand};
use hotrow_sql::{Counterpart, Function, Grant, functions};

const MANIFESTS: &str = "crates/hotrow-sql/sql/*/functions.toml";
const GOLDEN: &str = "crates/hotrow-sql/tests/golden/schema.txt";
/// Renews the golden file.
const RENEW: &str = "HOTROW_GOLDEN=write cargo test -p hotrow-sql golden";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(root().join(path)).ok()
}

#[track_caller]
fn assert_none(forgotten: &[String]) {
    assert!(forgotten.is_empty(), "\n{}\n", forgotten.join("\n"));
}

/// A type as the catalog writes it.
fn catalog_type(name: &str) -> String {
    let (name, array) = name.strip_suffix("[]").map_or((name, ""), |name| (name, "[]"));
    let name = match name {
        "int" => "integer",
        "timestamptz" => "timestamp with time zone",
        other => other,
    };
    format!("{name}{array}")
}

/// Names and types of a function's parameters as the catalog writes them; with arrays in place of the types for a batch function.
fn parameters(function: &Function, array: &str) -> Vec<(String, String)> {
    function.parameters.iter().map(|it| (it.name.clone(), catalog_type(&it.of) + array)).collect()
}

/// A function of the golden file.
struct Installed {
    parameters: Vec<(String, String)>,
    roles: BTreeSet<String>,
}

/// The functions of the golden file that a role besides the owner can execute.
fn executable() -> BTreeMap<String, Installed> {
    let golden = read(GOLDEN).unwrap();
    let lines = golden.lines().filter_map(|line| line.strip_prefix("function "));
    let functions = lines.map(|line| {
        let (name, rest) = line.split_once('(').unwrap();
        let (arguments, rest) = rest.split_once(") returns ").unwrap();
        let inputs = arguments.split(", ").filter(|argument| !argument.starts_with("OUT "));
        let inputs = inputs.filter_map(|argument| argument.split(" DEFAULT ").next()?.split_once(' '));
        let parameters = inputs.map(|(name, of)| (name.to_owned(), of.to_owned())).collect();
        let (_, roles) = rest.rsplit_once(", executed by ").unwrap();
        let roles = roles.split(' ').filter(|role| *role != "postgres").map(str::to_owned).collect();
        (name.to_owned(), Installed { parameters, roles })
    });
    functions.filter(|(_, function)| !function.roles.is_empty()).collect()
}

#[test]
fn every_executable_function_of_the_catalog_is_declared_as_it_is() {
    let mut executable = executable();
    let mut forgotten = Vec::new();
    for function in functions() {
        let manifest = format!("crates/hotrow-sql/sql/{}/functions.toml", function.area);
        let role = match function.grant {
            Grant::Group => hotrow_sql::DEFAULT_ROLE,
            Grant::Public => "public",
        };
        let batch_function = function.merge.as_ref().map(|merge| (&merge.batch, "[]"));
        for (name, array) in [Some((&function.name, "")), batch_function].into_iter().flatten() {
            let Some(installed) = executable.remove(name) else {
                forgotten.push(format!(
                    "{name}: no role can execute it according to {GOLDEN}; create it in crates/hotrow-sql/sql/{}/ and renew that \
                     file with `{RENEW}`, or remove it from {manifest}",
                    function.area
                ));
                continue;
            };
            let declared = parameters(function, array);
            if installed.parameters != declared {
                let found = installed.parameters;
                forgotten.push(format!(
                    "{name}: the SQL has the parameters {declared:?}, but {GOLDEN} has {found:?}; renew that file with `{RENEW}`"
                ));
            }
            if !installed.roles.iter().eq([role]) {
                forgotten.push(format!(
                    "{name}: {manifest} grants it to {role}, but {GOLDEN} says {:?}; correct one",
                    installed.roles
                ));
            }
        }
    }
    forgotten.extend(executable.keys().map(|name| {
        format!("{name}: a role can execute it, but no entry declares it; add one to {MANIFESTS} or drop the function")
    }));
    assert_none(&forgotten);
}

#[test]
fn every_merge_rule_of_the_catalog_is_declared_as_it_is() {
    let golden = read(GOLDEN).unwrap();
    let mut installed: BTreeSet<&str> =
        golden.lines().filter(|line| line.starts_with("merge rule ")).collect();
    let mut forgotten = Vec::new();
    for function in functions() {
        let Some(merge) = &function.merge else { continue };
        let types = |array: &str| -> String {
            let types: Vec<_> = parameters(function, array).into_iter().map(|(_, of)| of).collect();
            types.join(",")
        };
        let rule = format!(
            "merge rule hotrow.{}({}) into hotrow.{}({}), key {} in {}, at most {}",
            function.name,
            types(""),
            merge.batch,
            types("[]"),
            merge.key,
            merge.key_space,
            merge.most_calls.unwrap_or(256)
        );
        if !installed.remove(rule.as_str()) {
            forgotten.push(format!(
                "{}: {GOLDEN} does not have its {rule}; renew that file with `{RENEW}`",
                function.name
            ));
        }
    }
    forgotten.extend(installed.iter().map(|rule| {
        format!("{rule}: no function declares it; add merge = {{ ... }} to its entry in {MANIFESTS}")
    }));
    assert_none(&forgotten);
}

#[test]
fn the_model_has_every_function_that_the_manifests_assign_to_it() {
    let models = [
        ("Command", "command.rs", Command::FUNCTIONS),
        ("QueueCommand", "queue.rs", QueueCommand::FUNCTIONS),
        ("FeedCommand", "feed_command.rs", FeedCommand::FUNCTIONS),
    ];
    let file_of =
        |wanted: &str| models.iter().find(|(model, ..)| *model == wanted).map_or("", |(_, file, _)| *file);
    let mut modelled: BTreeSet<_> = models
        .iter()
        .flat_map(|(model, _, functions)| functions.iter().map(move |function| (*model, *function)))
        .collect();
    let mut forgotten = Vec::new();
    for function in functions() {
        if let Counterpart::At(model) = &function.model
            && !modelled.remove(&(model.as_str(), function.name.as_str()))
        {
            forgotten.push(format!(
                "{}: {model} in crates/hotrow-model/src/{} has no command for it; add it or set model = \"none: why\"",
                function.name,
                file_of(model)
            ));
        }
    }
    forgotten.extend(modelled.iter().map(|(model, name)| {
        format!("{name}: the model has it; set model = \"{model}\" in its entry in {MANIFESTS}")
    }));
    assert_none(&forgotten);
}

/// Whether a page describes a function: its name with its arguments.
fn describes(page: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    page.match_indices(name).any(|(at, _)| {
        let (before, after) = (&page[..at], &page[at + name.len()..]);
        !before.ends_with(is_part) && after.starts_with('(')
    })
}

#[test]
fn every_function_is_documented() {
    assert!(describes("call `drain(counter)`", "drain") && describes("`hotrow.drain('a')`", "drain"));
    assert!(!describes("`undrain(x)`, drain it, `drain_batch(x)`, the view `hotrow.drain`", "drain"));
    let mut forgotten = Vec::new();
    for function in functions() {
        let page = match &function.docs {
            None => format!("docs/{}.md", function.area),
            Some(Counterpart::At(page)) => format!("docs/{page}"),
            Some(Counterpart::None(_)) => continue,
        };
        if !read(&page).is_some_and(|text| describes(&text, &function.name)) {
            forgotten.push(format!(
                "{}: {page} does not describe it; add it there or set docs = \"none: why\"",
                function.name
            ));
        }
    }
    assert_none(&forgotten);
}

/// All files below a folder, by their path in it.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            found.extend(files(&entry.path()).into_iter().map(|file| format!("{name}/{file}")));
        } else {
            found.push(name);
        }
    }
    found
}

#[test]
fn the_maps_of_the_packs_crates_name_every_file() {
    let mut forgotten = Vec::new();
    for (name, folder, ending) in [
        ("hotrow-sql", "sql", ".sql"),
        ("hotrow-sql", "src", ".rs"),
        ("hotrow-http", "src", ".rs"),
        ("hotrow-model", "src", ".rs"),
    ] {
        let map = read(&format!("crates/{name}/src/lib.rs")).unwrap();
        let map: String = map.lines().filter(|line| line.starts_with("//!")).collect();
        for file in files(&root().join("crates").join(name).join(folder)) {
            let Some(stem) = file.strip_suffix(ending) else { continue };
            let module = stem.strip_suffix("/mod").unwrap_or(stem);
            let spellings = [format!("`{folder}/{file}`"), format!("`{file}`"), format!("`{module}`")];
            let is_private = module == "lib" || module.ends_with("tests");
            // The first line of a migration says what it has.
            let is_migration = file.rsplit('/').next().is_some_and(|name| name.starts_with(char::is_numeric));
            if !is_private && !is_migration && !spellings.iter().any(|spelling| map.contains(spelling)) {
                forgotten.push(format!("crates/{name}/src/lib.rs: the map does not name {folder}/{file}"));
            }
        }
    }
    assert_none(&forgotten);
}

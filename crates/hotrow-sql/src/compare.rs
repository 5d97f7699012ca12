//! Compares an installation with this program: functions, the group role and its grants. Changes nothing, and ignores tables
//! and objects that other roles have added to the schema.

use std::fmt;

use tokio_postgres::{GenericClient, Row};

use crate::Error;
use crate::functions::{Grant, functions};
use crate::generate::granted;
use crate::migrations::{MIGRATIONS, Migration};
use crate::text::Pack;

/// A difference between an installation and this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// A function is missing, has other text or settings, or does not belong to the schema's owner.
    Function(String),
    /// The same about a function of a shard, or of feeds in a distributed hotrow schema.
    Distributed(String),
    /// A node of the cluster has other functions than the coordinator.
    Node(String),
    /// Every role can execute a function that is only for the group role or the owner.
    ForEverybody(String),
    /// The group role does not exist.
    NoRole(String),
    /// The group role cannot use this.
    NoGrant(String),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Function(name) | Self::Distributed(name) => {
                write!(f, "{name} is missing or is not what this program installs")
            }
            Self::Node(node) => write!(f, "the node {node} has other functions than the coordinator"),
            Self::ForEverybody(name) => write!(f, "{name} can be executed by every role"),
            Self::NoRole(name) => write!(f, "the role {name} is missing"),
            Self::NoGrant(name) => write!(f, "the role has no grant on {name}"),
        }
    }
}

/// The differences, if no migration is missing. `role` is the name of the group role.
pub async fn differences(client: &impl GenericClient, role: &str) -> Result<Vec<Difference>, Error> {
    const UNGRANTED: &str = "select f.name from unnest($2::text[]) with ordinality f (name, place)
        where not coalesce(has_function_privilege($1, to_regprocedure(f.name), 'execute'), false) order by f.place";
    const ROLE: &str = "select has_schema_privilege(oid, 'hotrow', 'usage') from pg_roles where rolname = $1";

    let found = found(client, "hotrow").await?;
    let mut differences = Vec::new();
    let mut wanted = installed_functions();
    let shards = crate::distribute::shards(client).await?;
    if shards.is_some() {
        for dispatcher in crate::distribute::dispatchers() {
            wanted.iter_mut().filter(|it| it.name == dispatcher.name).for_each(|it| {
                it.body.clone_from(&dispatcher.body);
            });
        }
    }
    for wanted in wanted {
        let name = format!("hotrow.{}", wanted.name);
        match found.iter().find(|(function, ..)| *function == wanted) {
            Some((_, true, everybody)) => {
                if *everybody && !is_public(&wanted.name) {
                    differences.push(Difference::ForEverybody(name));
                }
            }
            _ => differences.push(Difference::Function(name)),
        }
    }
    if let Some(shards) = shards {
        differences.extend(distributed(client, shards).await?);
    }
    match client.query_opt(ROLE, &[&role]).await? {
        None => differences.push(Difference::NoRole(role.to_owned())),
        Some(row) => {
            if !row.get::<_, bool>(0) {
                differences.push(Difference::NoGrant("the schema hotrow".to_owned()));
            }
            let ungranted = client.query(UNGRANTED, &[&role, &granted(Grant::Group)]).await?;
            differences.extend(ungranted.iter().map(|row| Difference::NoGrant(row.get(0))));
        }
    }
    Ok(differences)
}

/// The functions of a schema. Each with whether the schema's owner owns it, and whether every role can execute it.
async fn found(client: &impl GenericClient, schema: &str) -> Result<Vec<(Function, bool, bool)>, Error> {
    const FOUND: &str = "select p.proname::text, p.prosrc, l.lanname::text, p.provolatile::text, p.prosecdef,
            coalesce(p.proconfig, '{}'), p.proowner = n.nspowner, has_function_privilege('public', p.oid, 'execute')
        from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang
        where n.nspname = $1 order by p.proname, p.oid";
    let rows = client.query(FOUND, &[&schema]).await?;
    let function = |row: &Row| {
        let (name, body, language) = (row.get(0), row.get(1), row.get(2));
        let (volatility, definer, settings) = (row.get(3), row.get(4), row.get(5));
        (Function { name, body, language, volatility, definer, settings }, row.get(6), row.get(7))
    };
    Ok(rows.iter().map(function).collect())
}

/// The differences in the shards of a distributed hotrow schema, and between the nodes.
async fn distributed(client: &impl GenericClient, shards: i32) -> Result<Vec<Difference>, Error> {
    let mut differences = Vec::new();
    for (schema, text) in crate::distribute::functions_by_schema(client, shards).await? {
        let found = found(client, &schema).await?;
        let beginning = format!("\ncreate or replace function {schema}.");
        for wanted in text.split(&beginning).skip(1).map(function) {
            if !found.iter().any(|(function, is_owners, _)| *function == wanted && *is_owners) {
                differences.push(Difference::Distributed(format!("{schema}.{}", wanted.name)));
            }
        }
    }
    let digest = include_str!("../sql/citus/digest.sql");
    let here: String = client.query_one(digest, &[]).await?.get(0);
    let nodes = "select nodename || ':' || nodeport from run_command_on_workers($1) where not success or result <> $2";
    let nodes = client.query(nodes, &[&digest, &here]).await?;
    differences.extend(nodes.iter().map(|row| Difference::Node(row.get(0))));
    Ok(differences)
}

/// The properties of a function that are compared. Overloaded functions differ in their bodies.
#[derive(Debug, PartialEq, Eq)]
struct Function {
    name: String,
    body: String,
    language: String,
    /// As the catalog writes it: `i`, `s` or `v`.
    volatility: String,
    definer: bool,
    settings: Vec<String>,
}

/// The functions of all migrations. All of them are written as `create function hotrow.name(...) ... language x ... [set a = b]
/// as $$...$$`.
fn installed_functions() -> Vec<Function> {
    let of_migration = |migration: &Migration| {
        let text = migration.text(Pack::One);
        text.split("\ncreate function hotrow.").skip(1).map(function).collect::<Vec<_>>()
    };
    MIGRATIONS.iter().flat_map(of_migration).collect()
}

fn function(text: &str) -> Function {
    let mut parts = text.splitn(3, "$$");
    let mut part = || parts.next().unwrap_or_default();
    let (head, body) = (part(), part().to_owned());
    let name = head.split('(').next().unwrap_or_default().to_owned();
    let head = head.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, options) = head.rsplit_once(" language ").unwrap_or_default();
    let mut options = options.trim_end_matches(" as").split(" set ");
    let traits: Vec<_> = options.next().unwrap_or_default().split(' ').collect();
    let volatility = [("immutable", "i"), ("stable", "s")].iter().find(|(word, _)| traits.contains(word));
    Function {
        name,
        body,
        language: traits[0].to_owned(),
        volatility: volatility.map_or("v", |(_, letter)| letter).to_owned(),
        definer: traits.contains(&"definer"),
        settings: options.map(|setting| setting.replace(" = ", "=").replace('\'', "")).collect(),
    }
}

fn is_public(name: &str) -> bool {
    functions().iter().any(|function| function.name == name && function.grant == Grant::Public)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_of_the_migrations_can_be_parsed() {
        for migration in MIGRATIONS {
            let (Migration { area, name, .. }, file) = (migration, migration.text(Pack::One));
            let rule = "begin the statement with `create function hotrow.` at the start of a line that is not the file's first, \
                begin the body with ` as $$`, and end it with `$$;` on a line of its own";
            let replaces = file.lines().any(|line| line.starts_with("create or replace function"));
            assert!(!replaces, "crates/hotrow-sql/sql/{area}/{name}.sql: {rule}");
            let parts: Vec<_> = file.split("create function hotrow.").collect();
            for pair in parts.windows(2) {
                let (before, statement) = (pair[0], pair[1]);
                let function = statement.split('(').next().unwrap();
                assert!(
                    before.ends_with('\n') && statement.contains(" as $$") && statement.contains("\n$$;\n"),
                    "{function} in crates/hotrow-sql/sql/{area}/{name}.sql: {rule}"
                );
            }
        }
    }

    #[test]
    fn every_function_of_the_migrations_is_read() {
        let functions = installed_functions();
        let created = |text: &str| text.matches("create function").count();
        assert_eq!(
            functions.len(),
            MIGRATIONS.iter().map(|migration| created(&migration.text(Pack::One))).sum::<usize>()
        );
        let increment = functions.iter().find(|function| function.name == "increment").unwrap();
        assert!(increment.definer && increment.body.contains("#variable_conflict"), "{increment:?}");
        assert_eq!((increment.language.as_str(), increment.volatility.as_str()), ("plpgsql", "v"));
        assert_eq!(increment.settings[..2], ["search_path=pg_catalog, pg_temp", "jit=off"]);
    }
}

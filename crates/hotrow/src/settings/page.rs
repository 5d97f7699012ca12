//! Compares docs/settings.md with the settings: each has a section that begins with its meaning and its facts. To renew these lines after
//! a change, run `HOTROW_GOLDEN=write cargo test -p hotrow --bin hotrow settings::page`, then read the diff.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

const RENEW: &str =
    "run `HOTROW_GOLDEN=write cargo test -p hotrow --bin hotrow settings::page` and read the diff";
const POSTGRES: &str = "postgres://ann@127.0.0.1/shop";
const MYSQL: &str = "mysql://gate:secret@127.0.0.1/shop";

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md")
}

/// A file's line with a value that the setting can be read from.
fn line_with(name: &str, values: &[&str]) -> String {
    let lines = values.iter().map(|value| format!("{name} = {value}"));
    let mut readable = lines.filter(|line| toml::from_str::<Settings>(line).is_ok());
    readable.next().unwrap_or_else(|| panic!("{name} has another type"))
}

fn settings_with(line: &str, upstream: &str) -> Settings {
    let settings: Settings = toml::from_str(line).unwrap();
    Settings { upstream: settings.upstream.or(Some(upstream.to_owned())), ..settings }
}

/// The bounds of a number, as its error has them.
fn bounds(name: &str) -> Option<&'static str> {
    let line = format!("{name} = {}", i64::MAX);
    toml::from_str::<Settings>(&line).ok()?;
    let upstream = if name == "pack_from" { MYSQL } else { POSTGRES };
    match settings_with(&line, upstream).resolve_any(None) {
        Err(Error::OutOfBounds { bounds, .. }) => Some(bounds),
        _ => panic!("{name} is a number without bounds"),
    }
}

fn value(setting: &Setting) -> String {
    let unit = match setting.unit {
        "MS" => "milliseconds".to_owned(),
        unit => unit.to_lowercase(),
    };
    match (bounds(setting.name), setting.unit) {
        (Some(bounds), _) => format!("{unit}, {bounds}"),
        (None, "BOOL") => "`true` or `false`".to_owned(),
        (None, "MODE") => "`true`, `false`, `\"shadow\"` or `\"deferred\"`".to_owned(),
        (None, unit) => format!("`{unit}`"),
    }
}

fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

fn can_be_in_pool_table(name: &str) -> bool {
    let read = toml::from_str::<PoolTable>(&format!("{name} = 0"));
    !read.is_err_and(|error| error.to_string().contains("unknown field"))
}

/// Whether a gateway in front of MariaDB has the setting.
fn is_for_mysql(name: &str) -> bool {
    let line = match name {
        "upstream" => return true,
        name => line_with(name, &["1", "true", "\"x\""]),
    };
    let resolved = settings_with(&line, MYSQL).resolve_any(None);
    !matches!(resolved, Err(Error::Mysql(mysql::Error::NotUsed(_))))
}

/// The lines with which a setting's section begins, after its heading.
fn facts(setting: &Setting, variable: &str) -> String {
    let name = setting.name;
    let default = match setting.default.as_str() {
        named if named.starts_with('(') => named.trim_matches(['(', ')']).to_owned(),
        value => format!("`{value}`"),
    };
    format!(
        "{}.\n\n- Value: {}. Default: {default}.\n- Option: `--{}`. Environment: `{variable}`.\n- Applied by a reload: {}. In a `[[pool]]` \
         table: {}. In front of MariaDB: {}.",
        hotrow_testkit::linked(setting.meaning, page!("")),
        value(setting),
        name.replace('_', "-"),
        yes(!NEEDS_RESTART.contains(&name)),
        yes(can_be_in_pool_table(name)),
        match is_for_mysql(name) {
            true if !NEEDS_RESTART.contains(&name) => "yes, at the next start",
            is_there => yes(is_there),
        },
    )
}

/// The page with the settings of the code. Its own are the order of the sections, and the text after the facts.
fn renewed(page: &str) -> String {
    let table = Settings::table();
    let variables = Settings::variables();
    let mut sections = page.split("\n### ");
    let mut renewed = sections.next().unwrap_or_default().to_owned();
    for section in sections {
        let name = section.lines().next().unwrap_or_default();
        let Some(place) = table.iter().position(|setting| setting.name == name) else {
            renewed.push_str(&format!("\n### {section}"));
            continue;
        };
        // A heading, the meaning and the facts are the first three paragraphs.
        let rest = section.splitn(4, "\n\n").nth(3).map_or("\n".to_owned(), |rest| format!("\n\n{rest}"));
        renewed.push_str(&format!("\n### {name}\n\n{}{rest}", facts(&table[place], variables[place])));
    }
    renewed
}

#[test]
fn the_page_about_settings_has_all_of_them_with_their_facts() {
    let page = fs::read_to_string(path()).unwrap();
    let renewed = renewed(&page);
    if std::env::var_os("HOTROW_GOLDEN").is_some_and(|mode| mode == "write") {
        fs::write(path(), &renewed).unwrap();
    }
    let page = fs::read_to_string(path()).unwrap();
    for (found, expected) in page.lines().zip(renewed.lines()) {
        assert_eq!(found, expected, "docs/settings.md: {RENEW}");
    }
    assert_eq!(page.lines().count(), renewed.lines().count(), "docs/settings.md: {RENEW}");
    for setting in Settings::table() {
        let sections = page.matches(&format!("\n### {}\n", setting.name)).count();
        assert_eq!(sections, 1, "docs/settings.md: one section for {}", setting.name);
    }
}

#[test]
fn settings_that_a_pool_table_can_have_are_told_apart() {
    assert!(can_be_in_pool_table("lanes") && can_be_in_pool_table("pack"));
    assert!(!can_be_in_pool_table("workers") && !can_be_in_pool_table("log"));
    assert!(is_for_mysql("clients_max") && is_for_mysql("pack_from") && !is_for_mysql("lanes"));
    assert_eq!(bounds("lanes"), Some("1 to 64"));
    assert_eq!(bounds("log"), None);
}

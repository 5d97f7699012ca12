//! docs/limits.md has each bound of the code, with its value, its setting and its comment. To renew the page after a change, run
//! `HOTROW_GOLDEN=write cargo test -p hotrow --test tidy limits`, then read the diff.

use std::collections::BTreeMap;
use std::fs;

use super::{read, root};

const PAGE: &str = "docs/limits.md";

/// The last section, with the names of the bounds that have no row.
const INTERNAL: &str = "## Internal bounds";

/// A crate with bounds, what its names begin with on the page, and the section for bounds that the page does not have yet.
const CRATES: [(&str, &str, &str); 5] = [
    ("hotrow-core", "", INTERNAL),
    ("hotrow-lane", "", INTERNAL),
    ("hotrow-auth", "", INTERNAL),
    ("hotrow-http", "", "## HTTP API and operations page"),
    ("hotrow-mysql", "mysql::", "## In front of MariaDB"),
];

struct Bound {
    name: String,
    /// With its unit.
    value: String,
    comment: String,
    section: &'static str,
}

fn bounds() -> Vec<Bound> {
    let mut bounds = Vec::new();
    for (name, prefix, section) in CRATES {
        let source = read(&format!("crates/{name}/src/limits.rs"));
        let mut comment: Vec<&str> = Vec::new();
        for line in source.lines() {
            if let Some(text) = line.strip_prefix("///") {
                comment.push(text.trim());
                continue;
            }
            if let Some((name, rest)) = line.strip_prefix("pub const ").and_then(|rest| rest.split_once(": "))
            {
                let value = rest.split_once(" = ").unwrap().1.split(';').next().unwrap();
                bounds.push(Bound {
                    name: format!("{prefix}{name}"),
                    value: with_unit(name, number(value)),
                    comment: comment.join(" ").replace("[`", "`").replace("`]", "`"),
                    section,
                });
            }
            comment.clear();
        }
    }
    assert!(bounds.len() > 150, "{} bounds", bounds.len());
    bounds
}

fn number(text: &str) -> u64 {
    let plain =
        |text: &str| text.replace('_', "").parse::<u64>().unwrap_or_else(|_| panic!("not a number: {text}"));
    match text.split_once(" << ") {
        Some((number, places)) => plain(number) << plain(places),
        None => plain(text),
    }
}

/// The value in the largest unit that divides it. The name says what is counted.
fn with_unit(name: &str, value: u64) -> String {
    let units: &[(u64, &str)] = if name.contains("_BYTES") || name.ends_with("BYTES") {
        &[(1 << 30, " GiB"), (1 << 20, " MiB"), (1 << 10, " KiB"), (1, " B")]
    } else if name.ends_with("_MS") || name.contains("_MS_") {
        &[(3_600_000, " h"), (60_000, " min"), (1_000, " s"), (1, " ms")]
    } else if name.contains("_SECONDS") {
        &[(1, " s")]
    } else {
        &[(1, "")]
    };
    let (size, unit) = units
        .iter()
        .find(|(size, _)| value > 0 && value.is_multiple_of(*size))
        .unwrap_or(&units[units.len() - 1]);
    format!("{}{unit}", grouped(value / size))
}

/// A number with commas between its thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

/// The settings of which bounds are the defaults, by the bound's name on the page.
fn settings() -> BTreeMap<String, String> {
    let source = read("crates/hotrow/src/settings.rs");
    let mut settings = BTreeMap::new();
    for line in source.lines() {
        for (from, prefix) in [("= limits::", ""), ("= hotrow_mysql::", "mysql::")] {
            let Some((before, after)) = line.split_once(from) else { continue };
            let bound = after.split(|c: char| c != '_' && !c.is_ascii_uppercase()).next().unwrap();
            if before.contains("\"HOTROW_") && !bound.is_empty() {
                let name = before.split_whitespace().next().unwrap();
                settings.insert(format!("{prefix}{bound}"), name.to_owned());
            }
        }
    }
    assert!(settings.len() > 12, "{settings:?}");
    settings
}

fn row(bound: &Bound, settings: &BTreeMap<String, String>) -> String {
    let mut comment = bound.comment.clone();
    for file in fs::read_dir(root().join("docs/codes")).unwrap() {
        let file = file.unwrap().file_name().to_string_lossy().into_owned();
        let code = file.trim_end_matches(".md");
        comment = comment.replace(&format!("SQLSTATE {code}"), &format!("[{code}](codes/{file})"));
    }
    let setting =
        settings.get(&bound.name).map_or(String::new(), |name| format!("[`{name}`](settings.md#{name})"));
    format!("| `{}` | {} | {setting} | {comment} |", bound.name, bound.value)
}

/// The name in a row of a table.
fn name_in(line: &str) -> Option<&str> {
    line.strip_prefix("| `")?.split('`').next()
}

/// The names of bounds without a row, in lines of a readable length.
fn without_row(bounds: &[Bound], named: &[&str]) -> String {
    let mut lines = vec![String::new()];
    let names = bounds.iter().filter(|bound| bound.section == INTERNAL && !named.contains(&&*bound.name));
    for bound in names {
        let name = format!("`{}`", bound.name);
        match lines.last_mut().filter(|line| line.len() + name.len() < 130) {
            Some(line) if line.is_empty() => line.push_str(&name),
            Some(line) => line.push_str(&format!(", {name}")),
            None => {
                lines.last_mut().unwrap().push(',');
                lines.push(name);
            }
        }
    }
    lines.join("\n")
}

/// The page with the values of the code. Its own are the text, and the order of the rows.
fn renewed(page: &str) -> String {
    let (bounds, settings) = (bounds(), settings());
    let named: Vec<&str> = page.lines().filter_map(name_in).collect();
    let (tables, internal) = page.split_once(INTERNAL).unwrap();
    let mut lines: Vec<String> = Vec::new();
    let (mut section, mut is_in_table) = ("", false);
    for line in tables.lines() {
        if is_in_table && !line.starts_with('|') {
            let missing =
                bounds.iter().filter(|bound| bound.section == section && !named.contains(&&*bound.name));
            lines.extend(missing.map(|bound| row(bound, &settings)));
        }
        is_in_table = line.starts_with('|');
        match name_in(line) {
            Some(name) => lines
                .extend(bounds.iter().find(|bound| bound.name == name).map(|bound| row(bound, &settings))),
            None => lines.push(line.to_owned()),
        }
        if line.starts_with("## ") {
            section = line;
        }
    }
    let introduction = internal.split("\n\n").nth(1).unwrap();
    format!("{}\n{INTERNAL}\n\n{introduction}\n\n{}\n", lines.join("\n"), without_row(&bounds, &named))
}

#[test]
fn the_page_about_limits_has_the_bounds_of_the_code() {
    let renewed = renewed(&read(PAGE));
    if std::env::var_os("HOTROW_GOLDEN").is_some_and(|mode| mode == "write") {
        fs::write(root().join(PAGE), &renewed).unwrap();
    }
    let page = read(PAGE);
    let renew = "run `HOTROW_GOLDEN=write cargo test -p hotrow --test tidy limits` and read the diff";
    for (found, expected) in page.lines().zip(renewed.lines()) {
        assert_eq!(found, expected, "{PAGE}: {renew}");
    }
    assert_eq!(page.lines().count(), renewed.lines().count(), "{PAGE}: {renew}");
    for bound in bounds() {
        assert!(page.contains(&format!("`{}`", bound.name)), "{PAGE} omits {}", bound.name);
    }
}

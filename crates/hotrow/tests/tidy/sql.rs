//! SQL: functions fit a screen, and text that runs in other users' databases qualifies every operator.

use std::fs;

use super::{FUNCTION_LINES_MAX, files, root};

/// The text without comments, strings and quoted names.
fn code(sql: &str) -> String {
    let (mut code, mut rest) = (String::new(), sql);
    while let Some(at) = rest.find(['\'', '"', '-', '$']) {
        let (before, from) = rest.split_at(at);
        code += before;
        let end = match &from[..1] {
            "-" if from.starts_with("--") => from.find('\n').unwrap_or(from.len()),
            "$" if from.starts_with("$$") => from[2..].find("$$").map_or(from.len(), |end| end + 4),
            quote @ ("'" | "\"") => from[1..].find(quote).map_or(from.len(), |end| end + 2),
            other => {
                code += other;
                1
            }
        };
        rest = &from[end..];
    }
    code + rest
}

/// The owner of a database can set its `search_path` for every role. An operator without a schema could run the
/// owner's code with the rights of the role that the gateway or the doctor logs in as.
#[test]
fn every_operator_in_sql_is_qualified() {
    let folders = ["hotrow-connect", "hotrow-gateway", "hotrow-doctor"]
        .map(|name| root().join("crates").join(name).join("sql"));
    for entry in folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap()) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue; // for MariaDB, which has no operators of its users
        }
        let code = code(&fs::read_to_string(&path).unwrap());
        let code =
            code.replace("::", " ").replace("(*)", "()").replace("unlisten *", "unlisten").replace(".*", "");
        let bare: Vec<_> = code
            .split_whitespace()
            .filter(|word| !word.contains("operator(pg_catalog."))
            .filter(|word| {
                let word = word.trim_matches(|c| matches!(c, '(' | ')' | ','));
                word.contains(['=', '<', '>', '+', '-', '*', '/', '&', '|', '~', '%', '#', '!', '@', '^'])
                    || matches!(word, "in" | "like" | "ilike" | "similar" | "between" | "distinct" | "using")
            })
            .collect();
        assert!(bare.is_empty(), "{}: {bare:?}", path.display());
        assert!(!code.contains("case t"), "{}: CASE with an operand compares by =", path.display());
    }
}

#[test]
fn sql_functions_fit_a_screen() {
    let mut too_long = Vec::new();
    for path in files(&[".sql"]) {
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (start, line) in lines.iter().enumerate() {
            if !["create function ", "create or replace function "]
                .iter()
                .any(|begin| line.starts_with(begin))
            {
                continue;
            }
            let end = lines[start..].iter().position(|line| line.ends_with("$$;"));
            let length =
                1 + end.unwrap_or_else(|| panic!("{}:{}: no line ends in $$;", path.display(), start + 1));
            if length > FUNCTION_LINES_MAX {
                too_long.push(format!("{}:{}: {length} lines: {line}", path.display(), start + 1));
            }
        }
    }
    assert!(too_long.is_empty(), "over {FUNCTION_LINES_MAX} lines: split these: {too_long:#?}");
}

//! The page about the log has every warning and every error of the program, and no other message.

use std::fs;

use super::{files, read, root};

/// The crates that the program does not contain.
const OTHERS: [&str; 2] = ["hotrow-lab", "hotrow-testkit"];

/// The text of each literal of this source, in one line.
fn literals(source: &str) -> Vec<String> {
    let parts: Vec<&str> = source.split('"').collect();
    let texts = parts.iter().skip(1).step_by(2);
    texts.map(|text| text.replace("\\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// The messages of the macro `tracing::` with this name. A message that is only a value says itself what it is about.
fn logged(source: &str, macro_name: &str) -> Vec<String> {
    let calls = source.split(macro_name).skip(1).filter_map(|behind| behind.split(");").next());
    let messages = calls.filter_map(|call| literals(call).pop());
    messages.filter(|message| !message.starts_with('{') || message.contains(' ')).collect()
}

#[test]
fn every_warning_and_error_of_the_log_is_on_its_page() {
    let page = read("docs/log.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let described: Vec<&str> =
        rows.flat_map(|cell| cell.split("`, `").map(|name| name.trim_end_matches('`'))).collect();
    let (mut messages, mut texts) = (Vec::new(), Vec::new());
    for path in files(&[".rs"]) {
        let place = path.to_string_lossy();
        let is_program = path.starts_with(root().join("crates")) && !place.contains("/tests");
        if !is_program || OTHERS.iter().any(|name| place.contains(&format!("/{name}/"))) {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
        messages.extend(["tracing::warn!(", "tracing::error!("].iter().flat_map(|name| logged(source, name)));
        texts.extend(literals(source));
    }
    assert!(messages.len() > 50, "{messages:?}");
    messages.retain(|message| !described.iter().any(|described| message.contains(described)));
    assert_eq!(messages, [""; 0], "docs/log.md says nothing about these messages");
    let unknown: Vec<_> = described
        .into_iter()
        .filter(|described| !texts.iter().any(|text| text.contains(described)))
        .collect();
    assert_eq!(unknown, [""; 0], "docs/log.md describes these messages, which are logged nowhere");
}

//! A test waits for signals. Where it sleeps nevertheless, a comment gives the reason.

use std::fs;

use super::files;

fn sleeps(line: &str) -> bool {
    let ends_within_a_name = |text: &str| text.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    // pg_sleep is a statement that lasts: it is the work itself.
    line.match_indices("sleep(").any(|(at, _)| !ends_within_a_name(&line[..at]))
}

/// The numbers of the lines, from 0 on, that sleep without a comment at their end or above them.
fn without_reason(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let is_bare = |at: &usize| {
        let above = at.checked_sub(1).map_or("", |above| lines[above]);
        sleeps(lines[*at]) && !lines[*at].contains("// ") && !above.trim_start().starts_with("// ")
    };
    (0..lines.len()).filter(is_bare).collect()
}

#[test]
fn each_sleep_of_a_test_has_a_reason() {
    let mut bare = Vec::new();
    for path in files(&[".rs"]) {
        let folders = || path.components().map(|part| part.as_os_str());
        if folders().any(|folder| folder == "tests" || folder == "hotrow-testkit") {
            let lines = without_reason(&fs::read_to_string(&path).unwrap());
            bare.extend(lines.iter().map(|line| format!("{}:{}", path.display(), line + 1)));
        }
    }
    assert!(bare.is_empty(), "wait for a signal, or give the reason in a comment: {bare:#?}");
}

#[test]
fn a_sleep_without_a_reason_is_found() {
    let sleeps = "sleep".to_owned() + "(PAUSE);";
    assert_eq!(without_reason(&format!("f();\n{sleeps}\n/// Text.\n{sleeps}")), [1, 3]);
    let with = format!("{sleeps} // the load's shape\n// The load's shape.\n{sleeps}\nselect pg_sleep(1)");
    assert_eq!(without_reason(&with), [0; 0]);
}

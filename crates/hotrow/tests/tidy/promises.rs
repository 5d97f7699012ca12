//! Each promise of ARCHITECTURE.md has tests that `make test` runs, and not only the long ones of `make test-all`.

use std::collections::BTreeMap;

use crate::{files, read, root};

/// The suites of other projects have a command of their own.
const BY_HAND: [&str; 1] = ["tests/conformance"];

/// The tests in each file of the program's tests that are not long.
fn usual_tests() -> BTreeMap<String, usize> {
    let folder = root().join("crates/hotrow/tests");
    let sources = files(&[".rs"]).into_iter().filter(|path| path.starts_with(&folder));
    sources
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            let tests = text
                .lines()
                .filter(|line| line.trim().starts_with("#[test]") || line.contains("#[tokio::test"));
            let long = text.lines().filter(|line| line.trim().starts_with("#[ignore")).count();
            let name = path.strip_prefix(folder.parent().unwrap()).unwrap().with_extension("");
            (name.to_string_lossy().into_owned(), tests.count().saturating_sub(long))
        })
        .collect()
}

#[test]
fn every_promise_has_tests_that_are_not_long() {
    let usual = usual_tests();
    let text = read("ARCHITECTURE.md");
    let rows: Vec<&str> = text
        .lines()
        .skip_while(|line| *line != "## Promises and their tests")
        .filter(|line| line.starts_with('|') && line.as_bytes()[2].is_ascii_digit())
        .collect();
    assert!(rows.len() >= 10, "{rows:?}");
    for row in rows {
        let named = row.split('`').filter(|part| part.starts_with("tests/") && !BY_HAND.contains(part));
        for place in named {
            let inside = |name: &str| name == place || name.starts_with(&format!("{place}/"));
            let count: usize = usual.iter().filter(|(name, _)| inside(name)).map(|(_, count)| count).sum();
            assert!(
                count > 0,
                "`make test` runs no test of {place}, which ARCHITECTURE.md names for a promise: {row}"
            );
        }
    }
}

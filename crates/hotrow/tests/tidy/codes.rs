//! Each SQLSTATE that the gateway raises has a page, and each page has a code that the gateway raises.

use std::collections::BTreeSet;
use std::fs;

use super::{files, read, root};

/// The crates that answer clients.
const CRATES: [&str; 5] = ["hotrow-wire", "hotrow-core", "hotrow-auth", "hotrow-connect", "hotrow-gateway"];

fn is_code(text: &str) -> bool {
    text.len() == 5
        && text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, 'F' | 'X'))
        && text.ends_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase())
}

/// The codes that a file gives to an error. Codes of the server are compared: `== "22023"`, `"57P01" | "57P02"`, or bytes.
fn raised(code: &str) -> BTreeSet<String> {
    let parts: Vec<&str> = code.split('"').collect();
    let codes = parts.windows(3).filter(|part| is_code(part[1])).filter(|part| {
        let (before, after) = (part[0].trim_end(), part[2].trim_start());
        let is_compared = before.ends_with('|') || before.ends_with("==") || after.starts_with('|');
        !is_compared && before.ends_with(['(', ',', '=', '>']) && after.starts_with([',', ')', ';'])
    });
    codes.map(|part| part[1].to_owned()).collect()
}

#[test]
fn each_code_of_the_gateway_has_a_page() {
    let mut codes = BTreeSet::new();
    for path in files(&[".rs"]) {
        let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
        let is_test = parts.iter().any(|part| ["tests", "tests.rs", "random.rs"].contains(&&**part));
        if !is_test && CRATES.iter().any(|name| parts.iter().any(|part| part == name)) {
            let text = fs::read_to_string(&path).unwrap();
            codes.extend(raised(text.split("#[cfg(test)]\nmod tests {").next().unwrap()));
        }
    }
    assert!(codes.len() > 20, "{codes:?}");
    let pages: BTreeSet<String> = fs::read_dir(root().join("docs/codes"))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".md").map(str::to_owned))
        .filter(|name| name != "README")
        .collect();
    assert_eq!(pages, codes, "the pages in docs/codes, and the codes that the gateway raises");
    let index = read("docs/codes/README.md");
    for code in &codes {
        assert!(index.contains(&format!("\n| [{code}]({code}.md) |")), "docs/codes/README.md omits {code}");
    }
}

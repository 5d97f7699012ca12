//! Texts of the program as the pages in `docs` show them.

/// The text with a relative link for each address of a page. `base` is what the addresses begin with: `page!("")`.
pub fn linked(text: &str, base: &str) -> String {
    let mut parts = text.split(base);
    let mut linked = parts.next().unwrap().to_owned();
    for part in parts {
        let is_of_address = |c: char| c.is_alphanumeric() || matches!(c, '/' | '-' | '_' | '.' | '#');
        let end = part.find(|c| !is_of_address(c)).unwrap_or(part.len());
        let address = part[..end].trim_end_matches('.');
        let page = address.split('#').next().unwrap();
        linked.push_str(&format!("[docs/{page}]({address}){}", &part[address.len()..]));
    }
    linked
}

#[test]
fn a_link_has_the_pages_path_as_its_text() {
    let text = "read https://x/docs/a/b-c.md#d, or https://x/docs/e.md. Or not";
    let expected = "read [docs/a/b-c.md](a/b-c.md#d), or [docs/e.md](e.md). Or not";
    assert_eq!(linked(text, "https://x/docs/"), expected);
    assert_eq!(linked("none", "https://x/docs/"), "none");
}

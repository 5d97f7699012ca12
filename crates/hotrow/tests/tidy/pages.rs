//! Texts of the program name pages of the documentation by `page!`: a user who installed it has no `docs` folder.

use std::fs;
use std::path::Path;

use hotrow_core::page;

use super::documents::has_heading;
use super::{files, read, root};

/// What a source file has for users, without its tests. Of comments, only those remain that can be the help of an option.
fn texts(source: &str) -> String {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let is_text = |line: &&str| !line.trim_start().starts_with("//") || line.trim_start().starts_with("///");
    let lines = code.lines().filter(is_text);
    lines.map(|line| line.split(" // ").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Files of tests only: by their names, or because their parents declare them so.
fn is_test(path: &Path) -> bool {
    let is_in = |folder: &str| path.components().any(|part| part.as_os_str() == folder);
    if is_in("tests") || is_in("hotrow-testkit") || path.ends_with("tests.rs") {
        return true;
    }
    let name = path.file_stem().unwrap().to_string_lossy();
    let declared = format!("#[cfg(test)]\nmod {name};");
    let folder = path.parent().unwrap();
    let parents =
        [folder.with_extension("rs"), folder.join("mod.rs"), folder.join("lib.rs"), folder.join("main.rs")];
    parents.iter().any(|parent| fs::read_to_string(parent).is_ok_and(|text| text.contains(&declared)))
}

/// Paths of pages in the texts, each with the rest of its line.
fn paths(texts: &str) -> Vec<&str> {
    let is_path = |at: usize| {
        let (before, after) = (&texts[..at], &texts[at + "docs/".len()..]);
        !before.ends_with(char::is_alphanumeric) && after.starts_with(char::is_alphanumeric)
    };
    let found = texts.match_indices("docs/").filter(|(at, _)| is_path(*at));
    found.filter_map(|(at, _)| texts[at..].lines().next()).collect()
}

/// The pages that the texts name by `page!`.
fn pages(texts: &str) -> impl Iterator<Item = &str> {
    texts.split("page!(\"").skip(1).filter_map(|rest| rest.split('"').next())
}

#[test]
fn texts_of_the_program_name_pages_that_exist_by_their_addresses() {
    let (mut named, mut wrong) = (0, Vec::new());
    for path in files(&[".rs", ".txt"]) {
        let in_source = path.components().any(|part| part.as_os_str() == "src");
        if !in_source || !path.starts_with(root().join("crates")) || is_test(&path) {
            continue;
        }
        let texts = texts(&fs::read_to_string(&path).unwrap());
        wrong.extend(paths(&texts).iter().map(|found| format!("{}: {found}", path.display())));
        for name in pages(&texts) {
            let (page, heading) = name.split_once('#').unwrap_or((name, ""));
            let page = root().join("docs").join(page);
            let exists = page.is_file() && (heading.is_empty() || has_heading(&page, heading));
            if !exists {
                wrong.push(format!("{}: page!({name:?}) does not exist", path.display()));
            }
            named += 1;
        }
    }
    assert!(wrong.is_empty(), "a user cannot find these pages; name those that exist by page!: {wrong:#?}");
    assert!(named > 20, "{named} pages are named");
}

#[test]
fn the_address_of_a_page_is_in_the_repository() {
    let manifest = read("Cargo.toml");
    let repository = manifest.split_once("\nrepository = \"").unwrap().1.split('"').next().unwrap();
    let address = format!("{repository}/blob/v{}/docs/queues.md", env!("CARGO_PKG_VERSION"));
    assert_eq!(page!("queues.md"), address);
}

#[test]
fn a_path_in_a_text_is_found() {
    let source = "//! docs/a.md\n/// docs/b.md\nf(\"see docs/c.md\"); // docs/d.md\n#[cfg(test)]\nmod tests {\ndocs/e.md";
    let texts = texts(source);
    assert_eq!(paths(&texts), ["docs/b.md", "docs/c.md\");"]);
    assert_eq!(pages("(page!(\"a.md\"), page!(\"b.md#c\"))").collect::<Vec<_>>(), ["a.md", "b.md#c"]);
}

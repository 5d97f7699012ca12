//! Each document has one title, and its links lead to files and headings that exist.

use std::fs;
use std::path::{Path, PathBuf};

use super::{ROOT_DOCUMENTS, files, root};

fn documents() -> Vec<PathBuf> {
    let mut documents = files(&[".md"]);
    documents.retain(|path| !path.starts_with(root().join(".github"))); // templates: the reader writes the title
    documents.extend(ROOT_DOCUMENTS.map(|name| root().join(name)));
    documents
}

/// The document without its blocks of code.
fn prose(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.split("```").step_by(2).collect()
}

/// The anchor that GitHub gives to a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

pub fn has_heading(document: &Path, wanted: &str) -> bool {
    let prose = prose(document);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let titles = headings.map(|line| line.trim_start_matches('#').trim_start());
    titles.map(anchor).any(|anchor| anchor == wanted)
}

/// The targets of links, and of pictures in either form.
fn targets(prose: &str) -> impl Iterator<Item = &str> {
    let links = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let pictures = prose.split("<img src=\"").skip(1).filter_map(|rest| rest.split('"').next());
    links.chain(pictures)
}

#[test]
fn documents_have_one_title() {
    for path in documents() {
        if path.ends_with("SUMMARY.md") {
            continue; // mdbook's form: each part has a title
        }
        let text = fs::read_to_string(&path).unwrap();
        let titles = text.lines().filter(|line| line.starts_with("# ")).count();
        assert_eq!(titles, 1, "{}: one title", path.display());
    }
}

#[test]
fn links_have_targets() {
    for path in documents() {
        let prose = prose(&path);
        for link in targets(&prose).filter(|link| !link.contains("://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: {link} has no target", path.display());
            let is_heading = heading.is_empty() || !file.is_empty() && !file.ends_with(".md");
            assert!(is_heading || has_heading(&target, heading), "{}: no heading {link}", path.display());
        }
    }
}

#[test]
fn each_picture_is_shown_in_a_page() {
    let mut shown = Vec::new();
    for path in documents() {
        let prose = prose(&path);
        let folder = path.parent().unwrap();
        shown.extend(targets(&prose).filter_map(|target| folder.join(target).canonicalize().ok()));
    }
    let pictures = fs::read_dir(root().join("docs/images")).unwrap();
    let pictures: Vec<_> = pictures.map(|entry| entry.unwrap().path().canonicalize().unwrap()).collect();
    assert!(!pictures.is_empty());
    for picture in pictures {
        assert!(shown.contains(&picture), "no page shows {}", picture.display());
    }
}

/// The pages for contributors.
pub fn internals() -> Vec<PathBuf> {
    let mut pages = files(&[".md"]);
    pages.retain(|path| path.parent().is_some_and(|folder| folder.ends_with("docs/internals")));
    pages
}

/// Code is given as a file or folder below `crates`, if needed with a function: `hotrow-core/src/session/simple.rs:query`.
#[test]
fn code_that_the_internals_name_exists() {
    let (mut files, mut functions) = (0, 0);
    for page in internals() {
        if page.ends_with("add-a-pack-function.md") {
            continue; // the pack does not have the function of its example
        }
        let prose = prose(&page);
        let words = prose.split('`').skip(1).step_by(2).map(|word| word.trim_start_matches("crates/"));
        for code in words.filter(|code| code.starts_with("hotrow") && code.contains('/')) {
            let (file, function) = code.split_once(':').unwrap_or((code, ""));
            let path = root().join("crates").join(file);
            assert!(path.exists(), "{}: {code} does not exist", page.display());
            files += 1;
            if function.is_empty() {
                continue;
            }
            let source = fs::read_to_string(&path).unwrap();
            let names = [format!("fn {function}("), format!("fn {function}<")];
            let exists = names.iter().any(|name| source.contains(name));
            assert!(exists, "{}: {code} does not exist", page.display());
            functions += 1;
        }
    }
    assert!(files > 250 && functions > 65, "{files} files, {functions} functions");
}

/// Details belong to the pages for contributors.
const ARCHITECTURE_WORDS_MAX: usize = 3_000;

#[test]
fn the_architecture_is_short() {
    let words = super::read("ARCHITECTURE.md").split_whitespace().count();
    assert!(words <= ARCHITECTURE_WORDS_MAX, "{words} words: move details to docs/internals");
}

/// mdbook has only the pages of the summary.
#[test]
fn the_summary_names_every_page() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    for path in documents() {
        let Ok(page) = path.strip_prefix(&docs) else { continue };
        let page = page.to_string_lossy();
        let is_named = summary.contains(&format!("]({page})"));
        assert!(is_named || page == "SUMMARY.md", "docs/SUMMARY.md does not name {page}");
    }
}

#[test]
fn the_index_of_the_documentation_has_the_parts_of_the_summary() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let index = fs::read_to_string(root().join("docs/README.md")).unwrap();
    let rows = index.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let mut rows: Vec<&str> = rows.filter(|part| *part != "part").collect();
    rows.dedup();
    let parts: Vec<&str> = summary.lines().filter_map(|line| line.strip_prefix("# ")).skip(1).collect();
    assert!(parts.len() == 5, "{parts:?}");
    assert_eq!(rows, parts, "docs/README.md has other parts than docs/SUMMARY.md");
}

/// mdbook refuses a line that is neither a title nor a link.
#[test]
fn the_summary_has_titles_and_links_only() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    for line in summary.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        let link = line.trim_start().trim_start_matches("- ");
        let is_link = link.starts_with('[') && link.ends_with(".md)") && link.matches("](").count() == 1;
        assert!(is_link, "docs/SUMMARY.md: {line}");
    }
}

#[test]
fn the_index_of_the_internals_names_every_page() {
    let index = fs::read_to_string(root().join("docs/internals/README.md")).unwrap();
    for page in internals() {
        let name = page.file_name().unwrap().to_string_lossy();
        let is_named = name == "README.md" || index.contains(&format!("]({name}"));
        assert!(is_named, "docs/internals/README.md does not name {name}");
    }
}

//! The project's rules that a program can check: maps that match the files, files of a readable size, pure crates.

#![allow(clippy::unwrap_used, reason = "a file of the project that is missing is the failure to report")]

mod codes;
mod documents;
mod limits;
mod log;
mod modules;
mod monitoring;
mod packaging;
mod pages;
mod promises;
mod sleeps;
mod sql;

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The folders with files that people write.
const FOLDERS: [&str; 8] =
    ["crates", "examples", "fuzz", "docs", "conformance", "packaging", ".ci", ".github"];

/// Every file in `FOLDERS` with one of these endings, without built or fetched files.
fn files(endings: &[&str]) -> Vec<PathBuf> {
    let mut folders = FOLDERS.map(|folder| root().join(folder)).to_vec();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !["target", "corpus", "artifacts", "node_modules"].contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                files.push(path);
            }
        }
    }
    assert!(!files.is_empty(), "no file ends in {endings:?}");
    files
}

fn crates() -> Vec<String> {
    let folders = fs::read_dir(root().join("crates")).unwrap();
    folders.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn the_map_names_every_crate_and_no_other() {
    let map = read("ARCHITECTURE.md");
    for name in crates() {
        assert!(map.contains(&format!("| `{name}` |")), "ARCHITECTURE.md has no line for {name}");
    }
    let lines = map
        .lines()
        .filter_map(|line| line.strip_prefix("| `hotrow"))
        .filter_map(|rest| rest.split('`').next());
    for name in lines.map(|rest| format!("hotrow{rest}")) {
        assert!(crates().contains(&name), "ARCHITECTURE.md names {name}, which does not exist");
    }
}

#[test]
fn every_dependency_has_a_reason() {
    let manifest = read("Cargo.toml");
    let reasons = read("ARCHITECTURE.md");
    let (_, reasons) = reasons.split_once("## Dependencies").unwrap();
    let dependencies =
        manifest.split_once("[workspace.dependencies]").unwrap().1.split("\n[").next().unwrap();
    for line in dependencies.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let Some((name, _)) = line.split_once(" = ") else { continue };
        assert!(name.starts_with("hotrow") || reasons.contains(name), "no reason is given for {name}");
    }
}

#[test]
fn tests_that_the_documents_name_exist() {
    let of_users = ["ARCHITECTURE.md", "docs/differences.md"].map(|document| root().join(document));
    for document in of_users.iter().chain(&documents::internals()) {
        let text = fs::read_to_string(document).unwrap();
        let named: Vec<_> =
            text.split('`').filter(|word| word.starts_with("tests/") && word.len() > 9).collect();
        assert!(!named.is_empty() || !of_users.contains(document), "{} names no tests", document.display());
        for name in named {
            let path = root().join("crates/hotrow").join(name);
            let files = [path.with_extension("rs"), path.join("main.rs"), path.join("mod.rs")];
            let exists = files.iter().any(|file| file.exists());
            assert!(exists, "{} names {name}, which does not exist", document.display());
        }
    }
}

/// The first characters of a file, which begin its description, after a line that names an interpreter.
const BEGINNINGS: [(&str, &str); 12] = [
    (".rs", "//! "),
    (".c", "// "),
    (".sql", "-- "),
    (".py", "\"\"\""),
    (".go", "// "),
    (".js", "// "),
    (".java", "// "),
    (".sh", "# "),
    (".rb", "# "),
    (".mjs", "// "),
    (".css", "/* "),
    (".yml", "# "),
];

#[test]
fn every_source_file_begins_with_a_description_and_stays_readable() {
    for (ending, beginning) in BEGINNINGS {
        for path in files(&[ending]) {
            let text = fs::read_to_string(&path).unwrap();
            if path.parent().is_some_and(|folder| folder.ends_with("pgbench")) {
                continue; // pgbench would send comments, and they would be measured
            }
            let mut lines = text.lines().skip_while(|line| line.starts_with("#!/"));
            let first = lines.next().unwrap_or_default();
            assert!(
                first.starts_with(beginning) && first.len() > beginning.len(),
                "{}: the first line does not describe the file",
                path.display()
            );
            assert!(text.lines().count() <= 600, "{}: over 600 lines: split it", path.display());
        }
    }
}

const PURE: [&str; 7] = [
    "hotrow-wire",
    "hotrow-mysql-wire",
    "hotrow-mysql-core",
    "hotrow-lane",
    "hotrow-core",
    "hotrow-model",
    "hotrow-auth",
];

#[test]
fn pure_crates_stay_pure() {
    for name in PURE {
        let manifest = read(&format!("crates/{name}/Cargo.toml"));
        let dependencies = manifest.split_once("[dependencies]").unwrap().1.split("\n[").next().unwrap();
        for impure in ["tokio", "hotrow-gateway", "nix", "socket", "tracing"] {
            assert!(!dependencies.contains(impure), "{name} depends on {impure}");
        }
        let knows_protocol = name == "hotrow-lane"
            && ["wire", "core", "sqlparser"].iter().any(|one| dependencies.contains(one));
        assert!(!knows_protocol, "lanes know no protocol: {dependencies}");
        for path in
            files(&[".rs"]).iter().filter(|path| path.components().any(|part| part.as_os_str() == name))
        {
            let text = fs::read_to_string(path).unwrap();
            for impure in ["std::net", "std::fs", "std::time::Instant", "SystemTime", "std::thread"] {
                let in_test =
                    path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs");
                assert!(in_test || !text.contains(impure), "{} uses {impure}", path.display());
            }
        }
    }
}

#[test]
fn no_modules_import_each_other_in_a_circle() {
    let sources = crates().into_iter().map(|name| format!("crates/{name}/src"));
    for src in sources.chain(["examples/payments/src".to_owned()]) {
        let circles = modules::circles(&root().join(&src));
        assert!(circles.is_empty(), "{src}: these imports close a circle: {circles:#?}");
    }
}

/// The readers of SQL's expressions, which contain expressions: the grammar itself is a circle.
const RECURSIVE: &str = "References::";

#[test]
fn no_files_call_each_others_methods_in_a_circle() {
    for name in crates() {
        let mut circles = modules::circles_of_methods(&root().join(format!("crates/{name}/src")));
        circles.retain(|call| !call.contains(RECURSIVE));
        assert!(circles.is_empty(), "{name}: these calls close a circle: {circles:#?}");
    }
}

/// The names in backticks in the `//!` lines of a crate's `lib.rs`.
fn map_of(lib: &str) -> Vec<&str> {
    let lines = lib.lines().map_while(|line| line.strip_prefix("//!"));
    lines.flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn each_lib_rs_is_a_map_of_its_crate() {
    for name in crates() {
        let folder = root().join("crates").join(&name);
        let Ok(lib) = fs::read_to_string(folder.join("src/lib.rs")) else { continue };
        let map = map_of(&lib);
        let lines: Vec<&str> = lib.lines().collect();
        let declared = lines
            .windows(2)
            .filter(|pair| pair[0] != "#[cfg(test)]")
            .filter_map(|pair| pair[1].trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
        for module in declared {
            let file = format!("{module}.rs");
            let is_it =
                |word: &&str| word.trim_end_matches('/') == module || word.rsplit('/').next() == Some(&file);
            assert!(map.iter().any(is_it), "the map in {name}'s lib.rs omits {module}");
        }
        let are_files = |word: &&&str| word.ends_with(".rs") || word.ends_with(".sql");
        for file in map.iter().filter(are_files).filter(|file| !file.contains('*')) {
            let exists = folder.join(file).exists() || folder.join("src").join(file).exists();
            assert!(exists, "the map in {name}'s lib.rs names {file}, which does not exist");
        }
    }
}

#[test]
fn make_help_lists_every_target() {
    let makefile = read("Makefile");
    let phony = makefile.lines().find_map(|line| line.strip_prefix(".PHONY:")).unwrap();
    for target in phony.split_whitespace() {
        let rule = makefile.lines().find(|line| line.starts_with(&format!("{target}:")));
        assert!(rule.is_some_and(|rule| rule.contains(" ## ")), "{target} has no line in make help");
    }
}

const ROOT_DOCUMENTS: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "STYLE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
];

/// Words and phrases that STYLE.md replaces by standard terms.
const BANNED: [&str; 27] = [
    "mend",
    "mends",
    "mended",
    "shall",
    "who may come",
    "nobody can tell",
    "of itself",
    "somebody's",
    "makes no sense",
    "likewise",
    "no question of",
    "far enough",
    "whatever becomes",
    "nobody knows",
    "may come in",
    "pay for the hop",
    // PostgreSQL calls these a catalog, a login, startup and CPU time, and a reader searches for its words.
    "catalogue",
    "catalogues",
    "log-in",
    "log-ins",
    "start-up",
    "processor time",
    // Two names for one thing: these are maintenance, the hotrow schema and a batch function.
    "upkeep",
    "schema pack",
    "batch twin",
    // No English: belong in, forever.
    "belongs into",
    "for ever",
];

#[test]
fn texts_use_standard_terms() {
    let mut texts = files(&[
        ".rs",
        ".md",
        ".sql",
        ".sh",
        ".py",
        ".toml",
        ".js",
        ".mjs",
        ".go",
        ".java",
        ".rb",
        ".css",
        ".html",
        ".yml",
        ".json",
        "Containerfile",
        ".service",
        ".socket",
        "run",
    ]);
    texts.extend(ROOT_DOCUMENTS.map(|name| root().join(name)));
    texts.retain(|path| !path.ends_with("STYLE.md") && !path.ends_with("tidy/main.rs"));
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut found = Vec::new();
    for path in texts {
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            for banned in BANNED {
                let is_there = line.match_indices(banned).any(|(at, _)| {
                    let (before, after) = (&line[..at], &line[at + banned.len()..]);
                    !is_word(before.chars().next_back()) && !is_word(after.chars().next())
                });
                if is_there {
                    found.push(format!("{}:{}: {banned:?}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "STYLE.md has standard terms for these: {found:#?}");
}

/// The most lines of a function, in Rust and in SQL.
const FUNCTION_LINES_MAX: usize = 70;

#[test]
fn functions_fit_a_screen() {
    for path in files(&[".rs"]) {
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (start, line) in lines.iter().enumerate() {
            let code = line.trim_start();
            let words = code.split(' ').take_while(|word| *word != "fn").count();
            let begins = words <= 3 && code.split(' ').nth(words) == Some("fn") && line.ends_with('{');
            if !begins {
                continue;
            }
            let end = format!("{}}}", &line[..line.len() - code.len()]);
            let length = lines[start..].iter().position(|line| *line == end).map_or(0, |length| length + 1);
            assert!(length <= FUNCTION_LINES_MAX, "{}:{}: {length} lines: {code}", path.display(), start + 1);
        }
    }
}

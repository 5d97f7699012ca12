//! The modules of each crate: which module imports which, according to the `use` lines and paths of their files,
//! without tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module by its path within the crate. The path of the root is empty.
type Module = Vec<String>;

/// Circles of modules in a crate's `src` folder, each with the imports that close it. Modules of one folder form the
/// vertices, and an import by a file deeper down counts for the module of the folder that it is in. A folder's own file
/// and the files in it are parts of one module, and can use each other.
pub fn circles(src: &Path) -> Vec<String> {
    let files = files(src);
    let imports = imports(&files);
    let folders: BTreeSet<Module> =
        files.keys().flat_map(|module| (0..=module.len()).map(|length| module[..length].to_vec())).collect();
    folders.iter().flat_map(|folder| circles_in(folder, &imports)).collect()
}

fn files(src: &Path) -> BTreeMap<Module, String> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![src.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let inside = path.strip_prefix(src).unwrap().with_extension("");
                let mut module: Module =
                    inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
                module.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
                if !module.iter().any(|part| part == "tests") {
                    files.insert(module, fs::read_to_string(path).unwrap());
                }
            }
        }
    }
    files
}

fn imports(files: &BTreeMap<Module, String>) -> BTreeSet<(Module, Module)> {
    let mut imports = BTreeSet::new();
    for (module, text) in files {
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let code: String = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
        for path in paths(&code) {
            let target = resolve(&path, module, files);
            if target != *module {
                imports.insert((module.clone(), target));
            }
        }
    }
    imports
}

/// All paths in the code that begin with `crate::`, `super::` or `self::`, with the groups of `use` expanded.
fn paths(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            // `super::super::x` is found once, at its first word. `$crate` belongs to a macro's caller.
            if !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '$')) {
                expand(&code[at..], "", &mut paths);
            }
        }
    }
    paths
}

/// Reads one path or group of paths. Returns the code after it.
fn expand<'c>(code: &'c str, before: &str, paths: &mut Vec<String>) -> &'c str {
    let end = code.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | ':'))).unwrap_or(code.len());
    let path = format!("{before}{}", &code[..end]);
    let Some(mut rest) = code[end..].strip_prefix('{').filter(|_| path.ends_with("::")) else {
        paths.push(path);
        return &code[end..];
    };
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if let Some(rest) = rest.strip_prefix('}') {
            return rest;
        }
        let left = expand(rest, &path, paths);
        // `as name` after a path. A group that does not end is not code.
        let next = left.find([',', '}']).unwrap_or(left.len());
        rest = &left[next..];
        if rest.is_empty() {
            return rest;
        }
    }
}

/// The module to which a path used in another module refers.
fn resolve(path: &str, from: &Module, files: &BTreeMap<Module, String>) -> Module {
    let mut target = from.clone();
    for (place, part) in path.split("::").enumerate() {
        match part {
            "crate" if place == 0 => target.clear(),
            "self" => {}
            "super" => drop(target.pop()),
            part => {
                target.push(part.to_owned());
                if !files.keys().any(|module| module.starts_with(&target)) {
                    target.pop();
                    break;
                }
            }
        }
    }
    target
}

/// The circles among the modules right below this one.
fn circles_in(folder: &Module, imports: &BTreeSet<(Module, Module)>) -> Vec<String> {
    let below = |module: &Module| module.strip_prefix(&folder[..])?.first().cloned();
    let mut arrows: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (from, to) in imports {
        if let (Some(left), Some(right)) = (below(from), below(to))
            && left != right
        {
            let why = format!("{} -> {}", from.join("::"), to.join("::"));
            arrows.entry(left).or_default().entry(right).or_insert(why);
        }
    }
    let in_circle: BTreeSet<&String> =
        arrows.keys().filter(|module| reaches_itself(module, &arrows)).collect();
    let closing = arrows.iter().filter(|(from, _)| in_circle.contains(from)).flat_map(|(_, to)| to.iter());
    closing.filter(|(to, _)| in_circle.contains(to)).map(|(_, why)| why.clone()).collect()
}

fn reaches_itself(start: &String, arrows: &BTreeMap<String, BTreeMap<String, String>>) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
    while let Some(module) = open.pop() {
        let next = arrows.get(module).into_iter().flat_map(BTreeMap::keys);
        open.extend(next.filter(|next| seen.insert(*next)));
    }
    seen.contains(start)
}

#[test]
fn a_circle_is_found_in_every_form_of_import() {
    let files = |pairs: &[(&str, &str)]| -> BTreeMap<Module, String> {
        let module =
            |path: &str| path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        pairs.iter().map(|(path, text)| (module(path), (*text).to_owned())).collect()
    };
    let found = |pairs: &[(&str, &str)]| circles_in(&Vec::new(), &imports(&files(pairs)));
    let b = ("b", "fn f() { crate::a::g() }");
    assert_eq!(found(&[("a", "use crate::b;"), b]), ["a -> b", "b -> a"]);
    assert_eq!(found(&[("a", "use super::{c::D, b::{E, F as G}};"), b, ("c", "")]), ["a -> b", "b -> a"]);
    assert_eq!(found(&[("a::x", "use crate::b::E;"), ("a", ""), b]), ["a::x -> b", "b -> a"]);
    assert_eq!(
        found(&[("a", "use crate::b;"), ("b", "// crate::a is not used\nuse crate::c;"), ("c", "")]),
        [""; 0]
    );
    let folder = files(&[("a", "mod x;\nuse crate::a::x::X;"), ("a::x", "use super::Y;")]);
    assert_eq!(circles_in(&Vec::new(), &imports(&folder)), [""; 0], "a folder is one module");
}

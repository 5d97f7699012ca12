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
    let mut arrows = Arrows::new();
    for (from, to) in imports {
        if let (Some(left), Some(right)) = (below(from), below(to))
            && left != right
        {
            let why = format!("{} -> {}", from.join("::"), to.join("::"));
            arrows.entry(left).or_default().entry(right).or_insert(why);
        }
    }
    closing(&arrows)
}

/// Arrows between modules, each with its reason.
type Arrows = BTreeMap<String, BTreeMap<String, String>>;

/// The reasons of the arrows that are parts of circles.
fn closing(arrows: &Arrows) -> Vec<String> {
    let in_circle: BTreeSet<&String> =
        arrows.keys().filter(|module| reaches_itself(module, arrows)).collect();
    let closing = arrows.iter().filter(|(from, _)| in_circle.contains(from)).flat_map(|(_, to)| to.iter());
    closing.filter(|(to, _)| in_circle.contains(to)).map(|(_, why)| why.clone()).collect()
}

fn reaches_itself(start: &String, arrows: &Arrows) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
    while let Some(module) = open.pop() {
        let next = arrows.get(module).into_iter().flat_map(BTreeMap::keys);
        open.extend(next.filter(|next| seen.insert(*next)));
    }
    seen.contains(start)
}

/// Circles of files whose methods of one type call each other, each with the calls that close it. Such calls need no import,
/// so they are counted apart, for each type whose methods are in several files of one folder.
pub fn circles_of_methods(src: &Path) -> Vec<String> {
    let files = files(src);
    let folders: BTreeSet<&[String]> = files.keys().map(|module| folder_of(module, &files)).collect();
    folders.into_iter().flat_map(|folder| circles_of_methods_in(folder, &files)).collect()
}

/// The folder of a module's file.
fn folder_of<'m>(module: &'m [String], files: &BTreeMap<Module, String>) -> &'m [String] {
    let is_folder = files.keys().any(|other| other.len() > module.len() && other.starts_with(module));
    if is_folder { module } else { &module[..module.len().saturating_sub(1)] }
}

fn circles_of_methods_in(folder: &[String], files: &BTreeMap<Module, String>) -> Vec<String> {
    let mut of_types: BTreeMap<&str, BTreeMap<&Module, String>> = BTreeMap::new();
    for (module, text) in files.iter().filter(|(module, _)| folder_of(module, files) == folder) {
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (name, body) in impls(text) {
            of_types.entry(name).or_default().entry(module).or_default().push_str(body);
        }
    }
    of_types.into_iter().flat_map(|(name, bodies)| closing(&calls(name, &bodies))).collect()
}

/// The methods of a type that call methods of other files.
fn calls(name: &str, bodies: &BTreeMap<&Module, String>) -> Arrows {
    let path = |module: &Module| module.join("::");
    let mut homes = BTreeMap::new();
    for (module, body) in bodies {
        for after in body.split("\n    ").filter_map(|line| line.split_once("fn ")) {
            let is_method = after.0.is_empty() || after.0.starts_with("pub") || after.0 == "async ";
            let method = after.1.split(|c: char| !(c.is_alphanumeric() || c == '_')).next();
            homes.extend(method.filter(|_| is_method).map(|method| (method, *module)));
        }
    }
    let mut arrows = Arrows::new();
    for (module, body) in bodies {
        for receiver in ["self.", "session.", "task."] {
            for (at, _) in body.match_indices(receiver) {
                let called = &body[at + receiver.len()..];
                let Some((method, _)) = called.split_once('(') else { continue };
                if let Some(home) = homes.get(method).filter(|home| *home != module) {
                    let why = format!("{} -> {}: {name}::{method}", path(module), path(home));
                    arrows.entry(path(module)).or_default().entry(path(home)).or_insert(why);
                }
            }
        }
    }
    arrows
}

/// The `impl` blocks of a file that are not of a trait: the type's name, and the text.
fn impls(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("\nimpl") {
        let block = &text[at + 1..];
        let Some((header, _)) = block.split_once('{') else { continue };
        let Some(end) = block.find("\n}") else { continue };
        if header.contains(" for ") {
            continue;
        }
        // Behind the parameters of the `impl`, which can have parameters themselves.
        let mut depth = 0_i32;
        let name = header["impl".len()..].char_indices().find(|(_, c)| {
            depth += i32::from(*c == '<') - i32::from(*c == '>');
            depth == 0 && c.is_alphabetic()
        });
        let Some((start, _)) = name else { continue };
        let name = &header["impl".len() + start..];
        let name = name.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
        found.push((name, &block[..end]));
    }
    found
}

#[test]
fn a_circle_of_methods_is_found() {
    let of = |a: &str, b: &str| {
        let file = |body: &str| format!("//! x\n\nimpl<E: Into<u8>> Session<E> {{{body}\n}}\n");
        let module = |name: &str| vec!["session".to_owned(), name.to_owned()];
        let top = (vec!["session".to_owned()], "//! x\n".to_owned());
        let files = [top, (module("a"), file(a)), (module("b"), file(b))].into();
        circles_of_methods_in(&["session".to_owned()], &files)
    };
    let (one, two) = ("\n    fn one(&self) {\n        self.two()\n    }", "\n    pub async fn two(&self) {}");
    assert_eq!(of(one, two), [""; 0]);
    let back = "\n    pub(super) fn two(&self) {\n        self.three.f();\n        self.one()\n    }";
    assert_eq!(
        of(one, back),
        ["session::a -> session::b: Session::two", "session::b -> session::a: Session::one"]
    );
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

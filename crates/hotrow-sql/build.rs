//! Lists the migrations: the numbered files `sql/AREA/NNNN_name.sql`, in the order of their numbers.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let variable = |name| PathBuf::from(std::env::var_os(name).expect("cargo sets it for build scripts"));
    let mut migrations = Vec::new();
    for area in files(&variable("CARGO_MANIFEST_DIR").join("sql")) {
        for file in files(&area) {
            let name = text(file.file_stem());
            if let Some((Ok(number), _)) =
                name.split_once('_').map(|(number, rest)| (number.parse::<i32>(), rest))
            {
                migrations.push((number, name, text(area.file_name()), file));
            }
        }
    }
    migrations.sort();
    let mut list = String::from("&[\n");
    for (number, name, area, file) in migrations {
        let migration =
            format!("number: {number}, name: {name:?}, area: {area:?}, source: include_str!({file:?})");
        writeln!(list, "    Migration {{ {migration} }},").expect("a string has room");
    }
    fs::write(variable("OUT_DIR").join("migrations.rs"), list + "]\n").expect("the folder can be written to");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=sql");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder of an area can be read");
    entries.map(|entry| entry.expect("the folder of an area can be read").path()).collect()
}

fn text(part: Option<&std::ffi::OsStr>) -> String {
    part.and_then(std::ffi::OsStr::to_str).expect("the names of these files are UTF-8").to_owned()
}

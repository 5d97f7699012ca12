//! Tells the program the name of the profile that it is built with, for the demo's output.

use std::path::Path;

fn main() {
    // Cargo has no variable with this name for a profile of one's own, but the output folder is below
    // `target/PROFILE/build`.
    let out = std::env::var("OUT_DIR").expect("cargo sets it for build scripts");
    let build = Path::new(&out).ancestors().find(|folder| folder.ends_with("build"));
    let profile = build.and_then(Path::parent).and_then(Path::file_name).and_then(|name| name.to_str());
    println!("cargo::rustc-env=HOTROW_PROFILE={}", profile.unwrap_or("unknown"));
    println!("cargo::rerun-if-changed=build.rs");
}

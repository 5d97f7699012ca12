//! A short run of `hotrow-lab soak`: it is interrupted, goes on, and reports every series with a picture.

#![allow(clippy::unwrap_used, reason = "a test that cannot create its environment has failed")]

use hotrow_testkit::line::until;
use hotrow_testkit::program;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The longest time that has a sample each second.
const LASTS: &str = "119";

fn start(folder: &Path, seconds: &str) -> Child {
    let mut lab = Command::new(program("hotrow-lab"));
    lab.args(["soak", "--clients", "16", "--round-seconds", "1", "--seconds", seconds, "--folder"])
        .arg(folder);
    lab.arg("--gateway-program").arg(program("hotrow"));
    lab.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// What the run has measured so far. Null if there is nothing yet.
fn measured(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("samples.json")).unwrap_or("null".to_owned());
    serde_json::from_str(&text).expect("the samples are whole at any time")
}

/// Whether this start of the program has both a round and a sample.
fn has_measured(folder: &Path, start: u64) -> bool {
    let measured = measured(folder);
    let last = |list: &str| measured[list].as_array().and_then(|list| list.last()?["start"].as_u64());
    last("ends") == Some(start) && last("samples") == Some(start)
}

/// The output of a run that ends without an error.
fn output(lab: Child) -> String {
    let output = lab.wait_with_output().unwrap();
    let text = String::from_utf8([&*output.stdout, &*output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn a_run_goes_on_and_reports_every_series() {
    let parent = tempfile::tempdir().unwrap();
    // The server's account must be able to pass through it.
    std::fs::set_permissions(parent.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let folder = parent.path().join("run");

    for number in 1..=2 {
        let mut lab = start(&folder, LASTS);
        until("a start has a round and a sample", || {
            has_measured(&folder, number) || lab.try_wait().unwrap().is_some()
        });
        // It may have ended with an error, which its output tells.
        let _ = kill(Pid::from_raw(lab.id().cast_signed()), Signal::SIGINT);
        let text = output(lab);
        assert!(has_measured(&folder, number) && text.contains("not finished"), "{text}");
    }
    let text = output(start(&folder, "1"));
    assert!(!text.contains("not finished"), "the time is over: {text}");

    let after = measured(&folder);
    let (ends, samples) = (after["ends"].as_array().unwrap(), after["samples"].as_array().unwrap());
    let rounds: Vec<_> = ends.iter().map(|end| end["round"].as_u64().unwrap()).collect();
    assert!(rounds.iter().copied().eq(1..=rounds.len() as u64), "the second start goes on: {rounds:?}");
    assert_eq!(ends[0]["start"], 1);
    assert!(ends.iter().all(|end| end["tables"]["proof.counter"][0].as_u64().unwrap() > 0), "{ends:?}");
    assert!(
        ends[0]["log_bytes"].as_array().unwrap().iter().all(|bytes| bytes.as_u64().unwrap() > 0),
        "{ends:?}"
    );
    for gateway in samples.iter().flat_map(|sample| sample["gateways"].as_array().unwrap()) {
        let number = |name: &str| gateway[name].as_u64().unwrap();
        assert!(number("bytes") > 1 << 20 && number("descriptors") > 8 && number("threads") > 0, "{gateway}");
    }
    let sample = samples.last().unwrap();
    assert!(sample["connections"].as_u64().unwrap() > 0, "{sample}");
    assert!(sample["statements"].as_u64().unwrap() > 0, "{sample}");

    let report = std::fs::read_to_string(folder.join("report.md")).unwrap();
    assert!(report.contains("| gateway 2, open descriptors |"), "{report}");
    let pictures: Vec<_> =
        report.lines().filter_map(|line| line.strip_prefix("![")?.split_once("](")).collect();
    assert!(pictures.len() > 10, "{report}");
    for (name, file) in pictures {
        let picture = std::fs::read_to_string(folder.join(file.trim_end_matches(')'))).unwrap();
        assert!(picture.contains("<polyline points") && picture.contains(name), "{name}: {picture}");
    }
    assert!(!folder.join("server/data/postmaster.pid").exists(), "the server still runs");
}

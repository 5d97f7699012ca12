//! A short run of `hotrow-lab billion`: the program is killed and interrupted, and the run goes on. Then the server loses updates,
//! which the run must report.

#![allow(clippy::unwrap_used, reason = "a test that cannot create its environment has failed")]

use hotrow_postgres::PrivateServer;
use hotrow_testkit::line::until;
use hotrow_testkit::program;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// Adds 2 instead of 1 to each fiftieth counter, like a server that applies an update twice.
const SPOIL: &str = "
    create function public.spoil() returns trigger language plpgsql as $$
    begin
        new.n := old.n + 1 + (new.number % 50 = 0)::int;
        return new;
    end $$;
    create function public.hook() returns event_trigger language plpgsql as $$
    begin
        if to_regclass('proof.counter') is not null then
            create or replace trigger spoil before update on proof.counter for each row execute function public.spoil();
        end if;
    end $$;
    create event trigger hook on ddl_command_end when tag in ('CREATE FUNCTION') execute function public.hook()";

fn start(folder: &Path, statements: u64, kills: u64) -> Child {
    let mut lab = Command::new(program("hotrow-lab"));
    lab.args(["billion", "--clients", "16", "--round-seconds", "2", "--folder"]).arg(folder);
    lab.args(["--statements", &statements.to_string(), "--kills", &kills.to_string()]);
    lab.arg("--gateway-program").arg(program("hotrow"));
    lab.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The totals, if there are any yet.
fn state(folder: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(folder.join("state.json")).ok()?;
    Some(serde_json::from_str(&text).expect("the totals are whole at any time"))
}

/// The number with this name in the totals. 0 if there are none yet.
fn total(folder: &Path, name: &str) -> u64 {
    state(folder).map_or(0, |totals| totals[name].as_u64().unwrap())
}

fn output(lab: Child) -> (Output, String) {
    let output = lab.wait_with_output().unwrap();
    let text = [&*output.stdout, &*output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    (output, text)
}

#[test]
#[ignore = "long: make test-all"]
fn a_run_goes_on_after_a_crash_and_finds_a_fault() {
    const MANY: u64 = 1_000_000_000;
    let parent = tempfile::tempdir().unwrap();
    // The server's account must be able to pass through it.
    std::fs::set_permissions(parent.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let folder = parent.path().join("run");

    // A kill for each thousand statements.
    let mut lab = start(&folder, MANY, MANY / 1_000);
    until("a round is checked", || total(&folder, "rounds") > 0 || lab.try_wait().unwrap().is_some());
    lab.kill().unwrap();
    let (_, text) = output(lab);
    let rounds = total(&folder, "rounds");
    assert!(rounds > 0, "{text}");

    let mut lab = start(&folder, MANY, MANY / 1_000);
    until("another round is checked", || {
        total(&folder, "rounds") > rounds || lab.try_wait().unwrap().is_some()
    });
    // It may have ended with an error, which its output tells.
    let _ = kill(Pid::from_raw(lab.id().cast_signed()), Signal::SIGINT);
    let (ended, text) = output(lab);
    assert!(ended.status.success() && text.contains("not finished"), "{text}");
    let (rounds, kills) = (total(&folder, "rounds"), total(&folder, "kills"));

    // The goal is reached with as many kills as there are in a cycle of all events.
    let (ended, text) = output(start(&folder, 1, kills + 7));
    assert!(ended.status.success() && text.contains("The goal is reached"), "{text}");
    assert!(total(&folder, "rounds") > rounds && total(&folder, "starts") == 3, "{text}");
    assert!(total(&folder, "kills") >= kills + 7, "{text}");
    let events = state(&folder).unwrap()["events"].as_object().unwrap().len();
    assert_eq!(events, 7, "an event never happened: {text}");
    assert!(!folder.join("server/data/postmaster.pid").exists(), "the server still runs");

    let server = PrivateServer::builder().keep(folder.join("server")).start().unwrap();
    server.query(SPOIL).unwrap();
    server.stop().unwrap();
    drop(server);
    let (ended, text) = output(start(&folder, MANY, 0));
    assert!(!ended.status.success() && text.contains("a promise is broken"), "{text}");
    let requests = std::fs::read_to_string(folder.join("evidence/requests.csv")).unwrap();
    assert!(requests.lines().count() > 100 && folder.join("evidence/fault.txt").exists(), "{text}");
    let (ended, text) = output(start(&folder, MANY, 0));
    assert!(!ended.status.success() && text.contains("begin another run with --folder"), "{text}");
}

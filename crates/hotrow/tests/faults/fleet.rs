//! Three gateways behind HAProxy with the file of `packaging/haproxy`. Under load, a gateway is killed, one is drained and
//! replaced, one is upgraded: nothing acknowledged is lost, nothing is applied twice, and clients get the documented errors.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use hotrow_testkit::line::{Line, Until};
use hotrow_testkit::{PATIENCE, ReservedPort, server};
use nix::sys::signal::Signal;
use nix::unistd::{User, geteuid};

use crate::checker::check;
use crate::generations::{Generations, folder, serve, visitors};
use crate::load::{Load, Outcome};
use crate::{CLIENTS, prepare, summary};

const CONFIGURATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/haproxy/haproxy.cfg");
/// Debian's path is not in the PATH of all users.
const PROGRAMS: [&str; 3] = ["/usr/sbin/haproxy", "/usr/local/sbin/haproxy", "/usr/bin/haproxy"];
/// What docs/fleet.md promises to clients whose gateway stops.
const STOPPED: [&str; 2] =
    ["FATAL 57P01 terminating connection because the gateway is shutting down", "at prepare: FATAL 57P01"];

/// Three gateways behind HAProxy.
struct Fleet {
    gateways: [Generations; 3],
    ports: [ReservedPort; 3],
    haproxy: Child,
    folder: tempfile::TempDir,
    /// Ports of HAProxy: for all gateways, and for one gateway at a time.
    spread: ReservedPort,
    together: ReservedPort,
}

/// The state of a gateway, as HAProxy sees it.
#[derive(Debug)]
struct Seen {
    status: String,
    /// The result of the last check.
    check: String,
    /// Connections that it has got so far.
    sessions: u64,
}

impl Fleet {
    /// `None` without HAProxy on this machine. The gateways have more options of `hotrow serve`.
    fn start(options: &[&str]) -> Option<Self> {
        let Some(program) = PROGRAMS.into_iter().find(|path| Path::new(path).exists()) else {
            eprintln!("not run: HAProxy is not installed here (Debian's package haproxy)");
            return None;
        };
        let ports = [(); 3].map(|()| ReservedPort::find());
        let gateways = ports.each_ref().map(|port| gateway(port, options));
        let folder = folder();
        let (spread, together) = (ReservedPort::find(), ReservedPort::find());
        let user = User::from_uid(geteuid()).unwrap().expect("this user has a name");
        let mut command = Command::new(program);
        command
            .args(["-db", "-f", CONFIGURATION])
            .env("FLEET_USER", user.name)
            .env("FLEET_SOCKET", socket(&folder))
            .env("FLEET_LISTEN", address(&spread))
            .env("FLEET_LISTEN_TOGETHER", address(&together))
            .stdin(Stdio::null());
        for (number, port) in ports.iter().enumerate() {
            command.env(format!("FLEET_GATEWAY{}", number + 1), address(port));
        }
        let haproxy = command.spawn().unwrap();
        let fleet = Fleet { gateways, ports, haproxy, folder, spread, together };
        // HAProxy takes a server for up until its first check has failed.
        (1..=3).for_each(|number| fleet.wait_until(number, "checked", |seen| seen.check == "L7OK"));
        Some(fleet)
    }

    /// Sends a command to HAProxy, as operators do with socat.
    fn command(&self, text: &str) -> String {
        let mut answer = String::new();
        let Ok(mut stream) = UnixStream::connect(socket(&self.folder)) else { return answer };
        stream.write_all(format!("{text}\n").as_bytes()).unwrap();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn seen(&self, backend: &str, number: usize) -> Option<Seen> {
        let table = self.command("show stat");
        let mut lines = table.lines();
        let names: Vec<_> = lines.next()?.trim_start_matches("# ").split(',').collect();
        let place = |wanted| names.iter().position(|name| *name == wanted);
        let (backend_at, server_at) = (place("pxname")?, place("svname")?);
        let row = lines.map(|line| line.split(',').collect::<Vec<_>>()).find(|row| {
            row.get(backend_at) == Some(&backend) && *row[server_at] == format!("gateway{number}")
        })?;
        let text = |name| Some(row[place(name)?].to_owned());
        let sessions = text("stot")?.parse().ok()?;
        Some(Seen { status: text("status")?, check: text("check_status")?, sessions })
    }

    fn sessions(&self, backend: &str, number: usize) -> u64 {
        self.seen(backend, number).expect("HAProxy knows the gateway").sessions
    }

    /// Waits until HAProxy sees the gateway in this state.
    fn wait_for(&self, number: usize, status: &str) {
        self.wait_until(number, status, |seen| seen.status.starts_with(status));
    }

    fn wait_until(&self, number: usize, what: &str, is_so: impl Fn(&Seen) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let seen = self.seen("hotrow", number);
            if seen.as_ref().is_some_and(&is_so) {
                return;
            }
            assert!(Instant::now() < deadline, "gateway{number} is not {what}: {seen:?}");
            thread::sleep(Duration::from_millis(10)); // the condition has no signal
        }
    }

    /// Starts a gateway at the address of one that has ended.
    fn replace(&mut self, number: usize) {
        self.gateways[number - 1] = gateway(&self.ports[number - 1], &[]);
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let _ = self.haproxy.kill(); // it fails only if HAProxy has ended
        let _ = self.haproxy.wait();
    }
}

fn socket(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("admin.sock")
}

fn address(port: &ReservedPort) -> String {
    format!("127.0.0.1:{}", port.number())
}

/// A gateway on this port.
fn gateway(port: &ReservedPort, options: &[&str]) -> Generations {
    let listen = address(port);
    let gateway = Generations::start(serve(&[&["--listen", &listen], options].concat()));
    gateway.wait_for("hotrow: listening on", 1);
    gateway
}

/// Runs `work` while visitors connect, run a statement and leave. Returns their failures.
fn visited(port: u16, schema: &str, work: impl FnOnce()) -> Vec<String> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let until = Until(&stop);
        let visiting: Vec<_> = (0..3).map(|_| scope.spawn(|| visitors(port, schema, &stop))).collect();
        work();
        drop(until);
        let mut wrong: Vec<_> = visiting.into_iter().flat_map(|visitor| visitor.join().unwrap()).collect();
        wrong.truncate(5); // enough for a report
        wrong
    })
}

/// Stops the load and compares its answers with the rows. Returns the number of units whose outcome is unknown.
fn judge(load: Load, schema: &str) -> usize {
    let records = load.stop();
    summary(schema, &records);
    check(server().port(), schema, &records);
    assert_eq!(records.unexpected(&STOPPED), []);
    records.count(Outcome::Unknown)
}

#[test]
#[ignore = "long: make test-all"]
fn a_fleet_whose_gateways_are_killed_drained_and_upgraded_loses_no_acknowledged_unit() {
    let Some(mut fleet) = Fleet::start(&[]) else { return };
    kill_one(&mut fleet);
    drain_one(&mut fleet);
    upgrade_one(&fleet);
}

/// The clients of a gateway that is killed connect again at once, to the others. It comes back and gets clients again.
fn kill_one(fleet: &mut Fleet) {
    prepare(server().port(), "fleet_killed");
    let load = Load::start(CLIENTS, fleet.spread.number(), "fleet_killed");
    load.flows(1_000);
    (1..=3).for_each(|number| assert!(fleet.sessions("hotrow", number) > 2, "gateway{number} has clients"));
    fleet.gateways[0].signal(Signal::SIGKILL);
    fleet.gateways[0].first.wait().unwrap();
    // A connection that the gateway refuses goes to another one, whether a check has failed yet or not.
    let wrong = visited(fleet.spread.number(), "fleet_killed", || load.flows(500));
    assert_eq!(wrong, [""; 0], "no client reaches the gateway that was killed");
    fleet.wait_for(1, "DOWN");
    let before = fleet.sessions("hotrow", 1);
    fleet.replace(1);
    fleet.wait_for(1, "UP");
    assert_eq!(visited(fleet.spread.number(), "fleet_killed", || load.flows(500)), [""; 0]);
    assert!(fleet.sessions("hotrow", 1) > before, "the gateway that came back gets clients");
    assert!(judge(load, "fleet_killed") > 0, "the kill interrupted no unit");
}

/// A gateway is drained, stopped and replaced as docs/fleet.md says.
fn drain_one(fleet: &mut Fleet) {
    prepare(server().port(), "fleet_drained");
    let load = Load::start(CLIENTS, fleet.spread.number(), "fleet_drained");
    load.flows(500);
    let wrong = visited(fleet.spread.number(), "fleet_drained", || {
        assert_eq!(fleet.command("set server hotrow/gateway2 state drain").trim(), "");
        fleet.wait_for(2, "DRAIN");
        load.flows(200);
        fleet.gateways[1].signal(Signal::SIGTERM);
        fleet.gateways[1].wait_for("hotrow::serve: stopped", 1);
        load.flows(500);
    });
    assert_eq!(wrong, [""; 0], "no client notices at its login that a gateway was drained");
    assert!(!fleet.gateways[1].output().contains("cut off"), "{}", fleet.gateways[1].output());
    let before = fleet.sessions("hotrow", 2);
    fleet.replace(2);
    fleet.command("set server hotrow/gateway2 state ready");
    fleet.wait_for(2, "UP");
    assert_eq!(visited(fleet.spread.number(), "fleet_drained", || load.flows(500)), [""; 0]);
    assert!(fleet.sessions("hotrow", 2) > before, "the gateway that came back gets clients");
    assert_eq!(judge(load, "fleet_drained"), 0, "outcomes are unknown");
}

/// HAProxy does not notice an upgrade.
fn upgrade_one(fleet: &Fleet) {
    prepare(server().port(), "fleet_upgraded");
    let load = Load::start(CLIENTS, fleet.spread.number(), "fleet_upgraded");
    load.flows(500);
    let wrong = visited(fleet.spread.number(), "fleet_upgraded", || {
        fleet.gateways[2].signal(Signal::SIGUSR2);
        fleet.gateways[2].wait_for("hotrow::serve: stopped", 1);
        load.flows(500);
    });
    assert_eq!(wrong, [""; 0], "no client notices at its login that a gateway was upgraded");
    assert_eq!(fleet.gateways[2].pids().len(), 2);
    assert_eq!(fleet.seen("hotrow", 3).map(|seen| seen.status).as_deref(), Some("UP"));
    assert_eq!(judge(load, "fleet_upgraded"), 0, "outcomes are unknown");
}

#[test]
#[ignore = "long: make test-all"]
fn a_gateway_that_stops_without_a_word_to_the_balancer_gets_no_new_clients() {
    // The transaction can finish after HAProxy has noticed the stop, on a busy machine too.
    let Some(fleet) = Fleet::start(&["--drain-timeout-ms", "60000"]) else { return };
    prepare(server().port(), "unannounced");
    let mut held = Line::connect(fleet.ports[0].number(), "unannounced").unwrap().unwrap();
    assert_eq!(held.query("begin; update inv set sold = sold where id = 1").error(), None);
    fleet.gateways[0].signal(Signal::SIGTERM);
    fleet.wait_for(1, "DOWN");
    let wrong = visited(fleet.spread.number(), "unannounced", || {
        let load = Load::start(3, fleet.spread.number(), "unannounced");
        // Visits to another gateway, while the transaction keeps its row.
        let before = fleet.sessions("hotrow", 2);
        fleet.wait_until(2, "visited", |seen| seen.sessions > before + 10);
        assert_eq!(held.query("commit").error(), None, "the transaction can finish");
        load.flows(100);
        assert_eq!(judge(load, "unannounced"), 0, "outcomes are unknown");
    });
    assert_eq!(wrong, [""; 0], "no client reaches a gateway that stops");
    fleet.gateways[0].wait_for("hotrow::serve: stopped", 1);
}

#[test]
#[ignore = "long: make test-all"]
fn clients_of_the_second_port_share_one_gateway_and_move_together() {
    let Some(mut fleet) = Fleet::start(&[]) else { return };
    prepare(server().port(), "together");
    let load = Load::start(CLIENTS, fleet.together.number(), "together");
    load.flows(500);
    let sessions = |fleet: &Fleet| [1, 2, 3].map(|number| fleet.sessions("hotrow_together", number) > 0);
    assert_eq!(sessions(&fleet), [true, false, false]);
    fleet.gateways[0].signal(Signal::SIGKILL);
    fleet.gateways[0].first.wait().unwrap();
    load.flows(500);
    assert_eq!(sessions(&fleet), [true, true, false]);
    judge(load, "together");
}

//! A gateway that hands over to its successor, or that a service manager restarts with its sockets: no attempt to
//! connect is lost, and a successor that fails to start changes nothing.

use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use command_fds::{CommandFdExt, FdMapping};
use hotrow_testkit::line::{Line, Until};
use hotrow_testkit::{PATIENCE, connect, program, server};
use nix::sys::signal::Signal;
use tokio_postgres::Config;

use crate::checker::check;
use crate::generations::{Generations, folder, serve, visitors};
use crate::load::{Load, Outcome};
use crate::{CLIENTS, prepare, summary};

#[test]
fn handing_over_under_load_loses_no_attempt_to_connect() {
    prepare(server().port(), "handover");
    let folder = folder();
    let socket = folder.path().join(".s.PGSQL.6432");
    let listen = format!("127.0.0.1:0,{}", socket.display());
    let gateways = Generations::start(serve(&[
        "--listen",
        &listen,
        "--http",
        "127.0.0.1:0",
        "--metrics",
        "127.0.0.1:0",
    ]));
    gateways.wait_for("hotrow: listening on /", 1);
    assert_eq!(std::fs::metadata(&socket).unwrap().mode() & 0o777, 0o777, "every user may connect");
    let (port, stop) = (gateways.port(), AtomicBool::new(false));
    let load = Load::start(CLIENTS, port, "handover");
    thread::scope(|scope| {
        let until = Until(&stop);
        let visiting: Vec<_> = (0..4).map(|_| scope.spawn(|| visitors(port, "handover", &stop))).collect();
        for round in 1..=3 {
            load.flows(500);
            gateways.signal(Signal::SIGUSR2);
            gateways.wait_for("handed over: clients of this process finish their work", round);
            gateways.wait_for("hotrow::serve: started", round + 1);
            UnixStream::connect(&socket).expect("the socket is still there");
        }
        gateways.wait_for("hotrow::serve: stopped", 3);
        load.flows(500);
        drop(until);
        for visitor in visiting {
            assert_eq!(visitor.join().unwrap(), [""; 0]);
        }
    });
    let records = load.stop();
    summary("handed over", &records);
    check(server().port(), "handover", &records);
    assert_eq!(records.count(Outcome::Unknown), 0);
    assert_eq!(
        records.unexpected(&["FATAL 57P01 terminating connection because the gateway is shutting down"]),
        []
    );
    assert_eq!((gateways.pids().len(), gateways.port()), (4, port));
    gateways.address("hotrow: serving HTTP on ");
    gateways.signal(Signal::SIGTERM);
    gateways.wait_for("hotrow::serve: stopped", 4);
    assert!(!socket.exists(), "the last gateway removes the socket");
    assert!(!gateways.output().contains("cut off"), "{}", gateways.output());
}

#[test]
fn a_client_that_the_old_gateway_accepted_is_served() {
    const DRAIN_MS: u64 = 60_000;
    let drain = DRAIN_MS.to_string();
    let gateways = Generations::start(serve(&["--listen", "127.0.0.1:0", "--drain-timeout-ms", &drain]));
    gateways.wait_for("hotrow: listening on", 1);
    let waiting = TcpStream::connect(("127.0.0.1", gateways.port())).unwrap();
    // This login is accepted after the connection that waits.
    let mut silent = Line::connect(gateways.port(), "public").unwrap().unwrap();
    gateways.signal(Signal::SIGUSR2);
    gateways.wait_for("handed over: clients of this process finish their work", 1);
    let mut late = Line::login(waiting, "public").unwrap().expect("the login succeeds");
    for line in [&mut late, &mut silent] {
        assert_eq!(line.query("select 1").rows(), [[Some("1".to_owned())]]);
    }
    // An idle client is disconnected early, and not only after half of the drain time.
    let since = Instant::now();
    for line in [&mut late, &mut silent] {
        assert_eq!(line.answer().error().map(|report| report.code), Some("57P01".to_owned()));
    }
    assert!(since.elapsed() < Duration::from_millis(DRAIN_MS / 2 - 500), "{:?}", since.elapsed());
    gateways.wait_for("hotrow::serve: stopped", 1);
    assert!(!gateways.output().contains("cut off"), "{}", gateways.output());
}

#[test]
fn a_successor_that_fails_to_start_changes_nothing() {
    let folder = folder();
    let file = folder.path().join("hotrow.toml");
    std::fs::write(&file, "lanes = 2\n").unwrap();
    let gateways =
        Generations::start(serve(&["--listen", "127.0.0.1:0", "--config", file.to_str().unwrap()]));
    gateways.wait_for("hotrow: listening on", 1);
    let mut line = Line::connect(gateways.port(), "public").unwrap().unwrap();
    std::fs::write(&file, "lanes = 0\n").unwrap();
    gateways.signal(Signal::SIGUSR2);
    gateways.wait_for("lanes is 0 and must be 1 to 64", 1);
    gateways.wait_for("the successor failed to start, this gateway continues: it ended, exit status: 1", 1);
    assert_eq!(line.query("select 1").error(), None);
    assert!(Line::connect(gateways.port(), "public").unwrap().is_ok());
    std::fs::write(&file, "lanes = 2\n").unwrap();
    gateways.signal(Signal::SIGUSR2);
    gateways.wait_for("hotrow::serve: started", 2);
    gateways.wait_for("hotrow::serve: stopped", 1);
    assert!(Line::connect(gateways.port(), "public").unwrap().is_ok());
}

/// The sockets as a service manager keeps them and passes them to each gateway that it starts.
struct Manager {
    tcp: TcpListener,
    unix: UnixListener,
    path: PathBuf,
}

impl Manager {
    fn start(&self) -> Generations {
        let listen = format!("{},{}", self.tcp.local_addr().unwrap(), self.path.display());
        // The shell knows the process ID that the protocol requires, and becomes the gateway.
        let mut command = Command::new("sh");
        command.args(["-c", "LISTEN_PID=$$ exec \"$0\" \"$@\""]).arg(program("hotrow"));
        command.args(["serve", "--upstream", &server().url(), "--listen", &listen]).env("LISTEN_FDS", "2");
        let sockets: [OwnedFd; 2] =
            [self.unix.try_clone().unwrap().into(), self.tcp.try_clone().unwrap().into()];
        let mapping = |(parent_fd, child_fd)| FdMapping { parent_fd, child_fd };
        command.fd_mappings(sockets.into_iter().zip(3..).map(mapping).collect()).unwrap();
        Generations::start(command)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_of_the_service_manager_outlive_the_gateway() {
    let folder = folder();
    let path = folder.path().join(".s.PGSQL.6432");
    let (tcp, unix) = (TcpListener::bind("127.0.0.1:0").unwrap(), UnixListener::bind(&path).unwrap());
    let manager = Manager { tcp, unix, path: path.clone() };
    let port = manager.tcp.local_addr().unwrap().port();
    let mut by_unix = Config::new();
    by_unix.host_path(folder.path()).port(6432).user("postgres").dbname("postgres");
    for round in 1..=2 {
        // A client that connects while no gateway runs waits for the next one.
        let early = tokio::task::spawn_blocking(move || {
            let mut line = Line::connect(port, "public").unwrap().unwrap();
            line.query("select 1").rows()
        });
        let mut gateway = manager.start();
        assert_eq!(early.await.unwrap(), [[Some("1".to_owned())]], "round {round}");
        connect(&by_unix).await.simple_query("select 1").await.unwrap();
        gateway.signal(Signal::SIGTERM);
        gateway.wait_for("hotrow::serve: stopped", 1);
        assert!(gateway.first.wait().unwrap().success());
        assert!(path.exists(), "the socket belongs to the manager");
        assert!(!gateway.output().contains("is not used"), "{}", gateway.output());
    }
}

/// The messages to the service manager, as it receives them.
#[test]
fn the_service_manager_is_notified_of_the_serving_process() {
    let folder = folder();
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let received = || {
        let mut message = [0; 1000];
        let length = manager.recv(&mut message).expect("a message arrives");
        String::from_utf8_lossy(&message[..length]).into_owned()
    };
    let mut command = serve(&["--listen", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", &path);
    let gateways = Generations::start(command);
    let ready = || format!("MAINPID={}\nREADY=1\n", gateways.pids().last().unwrap());
    assert_eq!(received(), {
        gateways.wait_for("started", 1);
        ready()
    });
    gateways.signal(Signal::SIGHUP);
    assert!(received().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(received(), ready());
    gateways.signal(Signal::SIGUSR2);
    assert_eq!(received(), {
        gateways.wait_for("hotrow::serve: started", 2);
        ready()
    });
    gateways.wait_for("hotrow::serve: stopped", 1);
    gateways.signal(Signal::SIGTERM);
    assert_eq!(received(), "STOPPING=1\n", "from the last gateway, and not from the earlier one");
    gateways.wait_for("hotrow::serve: stopped", 2);
}

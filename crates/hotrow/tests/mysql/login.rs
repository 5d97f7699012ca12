//! Logins: the server decides, and what the gateway does not support is not offered.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;

use hotrow_mysql_wire::capabilities::{COMPRESS, LOCAL_FILES, MYSQL, SSL};
use hotrow_mysql_wire::handshake::Greeting;
use hotrow_mysql_wire::message::Err as ErrPacket;
use hotrow_testkit::Gateway;

use crate::client::{Client, LogIn};
use crate::{PASSWORD, USER, gateway, root, server, url};

fn error(result: Result<Client, ErrPacket>) -> ErrPacket {
    result.err().expect("the login is refused")
}

#[test]
fn the_server_decides_who_can_log_in() {
    let mut direct = root(server().port());
    direct.ok("create or replace user ann identified by 'p'");
    direct.ok("create or replace user nopass");
    direct.ok("create or replace user elsewhere@'10.0.0.1' identified by 'p'");
    direct.ok("create or replace user locked identified by 'p' account lock");
    let gateway = gateway(&[]);
    for (user, password) in
        [("ann", "wrong"), ("ann", ""), ("nobody", "p"), ("nopass", "p"), ("elsewhere", "p"), ("locked", "p")]
    {
        let through = error(Client::login(gateway.port(), user, password));
        assert_eq!(through, error(Client::login(server().port(), user, password)), "{user}");
    }
    for (user, password) in [("ann", "p"), ("nopass", "")] {
        let mut client = Client::login(gateway.port(), user, password).unwrap();
        assert_eq!(client.value("select substring_index(current_user(), '@', 1)"), user);
    }
    let plugin = "some_other_plugin";
    let client = Client::connect(gateway.port()).unwrap();
    let mut client = client.respond(&LogIn { user: "ann", password: "p", plugin, without: 0 }).unwrap();
    assert_eq!(client.value("select 1"), "1", "the server asked for the account's plugin");
}

#[test]
fn what_is_not_supported_is_not_offered() {
    let gateway = gateway(&[]);
    let (direct, through) = (root(server().port()).greeting, root(gateway.port()).greeting);
    assert_eq!(through.capabilities & (COMPRESS | LOCAL_FILES | SSL), 0);
    assert_eq!((through.capabilities & MYSQL, through.extended), (MYSQL, 0));
    assert_ne!(direct.capabilities & COMPRESS, 0);
    assert_eq!(direct.version, through.version);
    // A client that wants TLS all the same learns that there is none.
    let mut client = Client::connect(gateway.port()).unwrap();
    client.send(1, &[&(SSL | 1 << 9).to_le_bytes()[..], &[0; 28]].concat());
    let refused = ErrPacket::read(&client.packet().unwrap().payload).unwrap();
    assert!(refused.code == 1043 && refused.message.contains("no certificate (tls_cert_file)"), "{refused}");
}

#[test]
fn abandoned_logins_are_no_interrupted_connections_for_the_server() {
    let gateway = gateway(&[]);
    let mut direct = root(server().port());
    let mut aborted = || direct.rows("show global status like 'Aborted_connects'")[0][1].clone();
    let before = aborted();
    for _ in 0..5 {
        drop(Client::connect(gateway.port()).unwrap());
    }
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 300], &[5, 0, 0, 1, 1, 2, 3, 4, 5]] {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, gateway.port())).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer); // the gateway may reset the connection
        let greeting = Greeting::read(&answer[4..]);
        assert!(greeting.is_ok(), "{bytes:?}: {greeting:?}");
    }
    // The gateway's own logins end in QUIT, so the server has finished them when no connection of others is left.
    let others = "select count(*) from information_schema.processlist where user = 'unauthenticated user'";
    let mut watcher = root(server().port());
    hotrow_testkit::line::until("the logins are over", || watcher.value(others) == "0");
    assert_eq!(aborted(), before);
}

#[test]
fn the_most_clients_and_a_server_that_is_down_give_errors_at_once() {
    let gateway = gateway(&["--clients-max", "1"]);
    let client = root(gateway.port());
    let refused = error(Client::connect(gateway.port()));
    assert_eq!((refused.code, refused.sqlstate.as_str()), (1040, "08004"), "{refused}");
    drop(client);

    let port = hotrow_testkit::free_port();
    let gateway = Gateway::in_front_of(&format!("mysql://{USER}:{PASSWORD}@127.0.0.1:{port}"), &[]);
    let refused = error(Client::connect(gateway.port()));
    assert!(refused.code == 1429 && refused.message.contains("check that it runs"), "{refused}");
    assert!(!gateway.log().contains(PASSWORD), "{}", gateway.log());
}

#[test]
fn the_command_line_client_of_mariadb_works() {
    let gateway = gateway(&[]);
    let output = Command::new("mariadb")
        .args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--batch", "--skip-column-names"])
        .args([
            &format!("--port={}", gateway.port()),
            &format!("--user={USER}"),
            &format!("--password={PASSWORD}"),
        ])
        .args(["--execute", "select connection_id() > 0, 'ok'; show databases like 'mysql'"])
        .output()
        .expect("the package of the server has its client");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\tok\nmysql\n");
}

#[test]
fn settings_that_belong_to_postgresql_are_refused() {
    let output = hotrow_testkit::hotrow()
        .args(["serve", "--check", "--upstream", &url(server()), "--lanes", "2"])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("lanes is set"), "{error}");
}

//! The command line for its users: explanations, and errors with their next step.

use std::process::Output;

use hotrow_postgres::PrivateServer;
use hotrow_testkit::{Gateway, config, connect, server};

fn hotrow(upstream: &str, args: &[&str]) -> Output {
    hotrow_testkit::hotrow().args(args).args(["--upstream", upstream]).output().unwrap()
}

/// Standard output of a command that succeeds.
fn succeeds(upstream: &str, args: &[&str]) -> String {
    let output = hotrow(upstream, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Both outputs of a command that fails.
fn fails(upstream: &str, args: &[&str]) -> String {
    let output = hotrow(upstream, args);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

#[tokio::test]
async fn explain_shows_how_a_unit_runs_and_fails_for_statements_that_the_server_rejects() {
    let client = connect(&config(server().port())).await;
    client.batch_execute("create table explained (id int primary key, stock int)").await.unwrap();
    let explain = |sql: &str| succeeds(&server().url(), &["explain", sql]);
    let unit = explain("begin; update explained set stock = 1 where id = 7; commit");
    assert_contains(
        &unit,
        &["packed as one unit", "BEGIN\nanswered by the gateway", "COMMIT\nanswered", "id = 7\n"],
    );
    assert!(!unit.contains("passed through"), "{unit}");
    assert_contains(&unit, &["shape: update explained set stock = $1 where id = $2\n"]);
    let with_setting = explain("set local my.tenant to acme; delete from explained where id = 4711");
    assert_contains(
        &with_setting,
        &["shape: set local my.tenant to ?\n", "shape: delete from explained where id = $1\n"],
    );
    assert_contains(&explain("update explained set stock = 1 where id = 7"), &["key       id = 7\n"]);
    assert_contains(&explain("update explained set stock = 1 where id = $1"), &["key       id = $1\n"]);
    assert_contains(
        &explain("update explained set stock = 1 where id in (1, $1)"),
        &["packed", "key       id in (1, $1)\n"],
    );
    let several = explain("update explained set stock = 1 where id > 1");
    assert_contains(&several, &["passed through", "instead ", "column IN (...)"]);
    assert_contains(&explain("begin"), &["answered by the gateway", "then      the first statement takes"]);
    let locks = explain("select stock from explained where id = 7 for update");
    assert_contains(&locks, &["passed through", "key       id = 7\n", "waits     as the first statement"]);
    assert_contains(
        &explain("set app.tenant = 'x'"),
        &["keeps a server connection until RESET ALL", "SET LOCAL"],
    );
    let unit = explain("begin; update explained set stock = 1 where id > 1; commit");
    assert_contains(
        &unit,
        &["passed through as one unit", "send BEGIN to COMMIT in one message", "use autocommit"],
    );
    assert_contains(&explain("create table later (id int); select * from later"), &["passed through"]);

    let rejected = |sql: &str| fails(&server().url(), &["explain", sql]);
    assert_contains(&rejected("selct 1"), &["the server rejects `selct 1`", "syntax error", "42601"]);
    assert_contains(&rejected("select 1; select * from nowhere"), &["relation \"nowhere\" does not exist"]);
    let away = fails("postgres://127.0.0.1:1/shop", &["explain", "select 1"]);
    assert_contains(&away, &["no connection to 127.0.0.1:1", "check that the server runs", "--upstream"]);
}

#[tokio::test]
async fn migrate_without_the_right_to_create_roles_fails_and_names_the_statement() {
    let private = PrivateServer::builder().label("roles").start().unwrap();
    let client = connect(&config(private.port())).await;
    for statement in ["create role owner login", "create database shop owner owner"] {
        client.batch_execute(statement).await.unwrap();
    }
    let url = format!("postgres://owner@127.0.0.1:{}/shop", private.port());
    let create = "an administrator run `create role hotrow_caller nologin;`";
    assert_contains(
        &fails(&url, &["migrate"]),
        &["installed 0001_settings", "hotrow_caller is missing", create],
    );
    assert_contains(&fails(&url, &["migrate", "--check"]), &["the role hotrow_caller is missing", create]);
    client.batch_execute("create role hotrow_caller nologin").await.unwrap();
    assert_contains(
        &fails(&url, &["migrate", "--check"]),
        &["run hotrow migrate: it creates the role and its grants"],
    );
    succeeds(&url, &["migrate"]);
    succeeds(&url, &["migrate", "--check"]);
}

#[test]
fn an_error_about_an_invalid_upstream_has_an_example() {
    for (upstream, part) in [
        ("http://127.0.0.1:5432/shop", "begins with http://"),
        ("127.0.0.1:5432", "has neither postgres:// nor keywords"),
    ] {
        for command in [&["serve"][..], &["migrate"]] {
            assert_contains(&fails(upstream, command), &[part, "postgres://user@127.0.0.1:5432/shop"]);
        }
    }
}

#[test]
fn an_invalid_flag_says_what_it_must_be() {
    for (flags, part) in [
        (["--lanes", "abc"], "it must be a whole number of connections"),
        (["--pack", "perhaps"], "it must be true, false, shadow or deferred"),
    ] {
        let output = hotrow_testkit::hotrow().arg("serve").args(flags).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert_contains(&String::from_utf8(output.stderr).unwrap(), &[part, "hotrow help config"]);
    }
    assert_contains(&fails("postgres://127.0.0.1/x", &["explain", " "]), &["the statement is empty"]);
}

#[test]
fn an_unknown_variable_is_an_error_of_every_command() {
    for command in [&["explain", "select 1"][..], &["migrate", "--check"], &["verify"]] {
        let output = hotrow_testkit::hotrow()
            .args(command)
            .args(["--upstream", &server().url()])
            .env("HOTROW_LANE", "3")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        assert_contains(&String::from_utf8(output.stderr).unwrap(), &["HOTROW_LANE is not a setting"]);
    }
}

#[test]
fn an_invalid_environment_variable_is_named() {
    for (variable, value, part) in [
        ("HOTROW_LANES", "abc", "HOTROW_LANES is \"abc\" and must be a whole number of connections"),
        ("HOTROW_LANE", "3", "HOTROW_LANE is not a setting"),
    ] {
        let mut command = hotrow_testkit::hotrow();
        let output =
            command.args(["serve", "--upstream", &server().url()]).env(variable, value).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_contains(&String::from_utf8(output.stderr).unwrap(), &[part, "hotrow help config"]);
    }
}

#[tokio::test]
async fn an_error_at_login_does_not_mention_a_statement() {
    let gateway = Gateway::in_front_of("postgres://postgres@127.0.0.1:1/x", &["--server-wait-ms", "1"]);
    let error = gateway.config().connect(tokio_postgres::NoTls).await.err().unwrap();
    let refusal = error.as_db_error().unwrap();
    assert_contains(refusal.message(), &["cannot be reached", "the client was not logged in"]);
    assert!(!refusal.message().contains("statement"), "{refusal:?}");
}

#[test]
fn each_shell_gets_a_script_that_knows_all_commands() {
    let hotrow = |args: &[&str]| {
        let output = hotrow_testkit::hotrow().args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let help = hotrow(&["--help"]);
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    let commands: Vec<&str> = commands.into_iter().filter(|word| !word.is_empty()).collect();
    assert!(commands.contains(&"serve") && commands.contains(&"completions"), "{commands:?}");
    for shell in ["bash", "zsh", "fish"] {
        let script = hotrow(&["completions", shell]);
        assert_contains(&script, &commands);
        assert_contains(&script, &["lane-lock-timeout-ms"]);
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("hotrow.bash");
    std::fs::write(&script, hotrow(&["completions", "bash"])).unwrap();
    let completed = std::process::Command::new("bash")
        .args(["-c", ". \"$0\"; COMP_WORDS=(hotrow heal); COMP_CWORD=1; _hotrow hotrow heal hotrow; echo \"${COMPREPLY[*]}\""])
        .arg(&script)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&completed.stdout), "health\n", "{completed:?}");
    let unknown = hotrow_testkit::hotrow().args(["completions", "csh"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
}

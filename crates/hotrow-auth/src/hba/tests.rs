//! Tests which line of the access file decides for a client, and the errors for invalid lines.

use super::*;

fn hba(text: &str) -> Hba {
    Hba::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// A client: `user@database from address`, optionally followed by `tls`. No address means a Unix socket.
fn method(hba: &Hba, client: &str) -> Option<Method> {
    let (user, rest) = client.split_once('@').unwrap();
    let mut words = rest.split(' ');
    let database = words.next().unwrap();
    let address = words.next().filter(|word| *word != "unix").map(|address| address.parse().unwrap());
    let console = database == "hotrow";
    let attempt = LoginAttempt { address, tls: words.next() == Some("tls"), user, database, console };
    hba.decide(&attempt).map(|rule| rule.method)
}

#[test]
fn the_first_matching_line_decides() {
    let list = hba("
# type  database        user       address         method
local   all             postgres                   trust
local   \"all\"         all                        reject
host    shop,\"b c\"    ann, bob   10.0.0.0/8      md5   # comment
host    shop            all        10.1.0.0 255.255.0.0  reject
hostssl sameuser        all        all             password
hostnossl all           \"all\"    ::1/128         trust
host    all             \\
        carl                       2001:db8::/32   scram-sha-256
host    replication     all        all             trust
");
    for (client, expected) in [
        ("postgres@shop unix", Some(Method::Trust)),
        ("ann@shop unix", None),
        ("ann@all unix", Some(Method::Reject)),
        ("ann@shop 10.1.2.3", Some(Method::Md5)),
        ("carl@shop 10.1.2.3", Some(Method::Reject)),
        ("carl@shop 10.2.2.3", None),
        ("carl@shop ::ffff:10.1.2.3", Some(Method::Reject)),
        ("carl@carl 192.0.2.1 tls", Some(Method::Password)),
        ("carl@carl 192.0.2.1", None),
        ("carl@shop 192.0.2.1 tls", None),
        ("all@x ::1", Some(Method::Trust)),
        ("all@x ::1 tls", None),
        ("ann@x ::1", None),
        ("carl@x 2001:db8::5", Some(Method::ScramSha256)),
        ("carl@x 2001:db9::5", None),
        ("dora@replication 192.0.2.1", None),
    ] {
        assert_eq!(method(&list, client), expected, "{client}");
    }
    let address = "10.255.0.0".parse().ok();
    let bob = LoginAttempt { address, tls: false, user: "bob", database: "b c", console: false };
    assert_eq!(list.decide(&bob).map(|rule| rule.method), Some(Method::Md5));
    let lines: Vec<_> = list.0.iter().map(|rule| rule.line).collect();
    assert_eq!(lines, [3, 4, 5, 6, 7, 8, 9, 11]);
}

#[test]
fn the_console_has_to_be_named() {
    let list = hba("local all,sameuser all trust\nlocal hotrow ann md5");
    assert_eq!(method(&list, "ann@hotrow unix"), Some(Method::Md5));
    assert_eq!(method(&list, "hotrow@hotrow unix"), None);
    assert_eq!(method(&list, "hotrow@shop unix"), Some(Method::Trust));
    let attempt =
        LoginAttempt { address: None, tls: false, user: "hotrow", database: "hotrow", console: false };
    let rule = list.decide(&attempt).map(|rule| rule.method);
    assert_eq!(rule, Some(Method::Trust), "the server's database of this name is one of all");
}

#[test]
fn without_an_access_file_only_this_machine_is_trusted() {
    let list = Hba::built_in();
    for client in
        ["ann@shop unix", "ann@shop 127.0.0.1", "ann@shop 127.9.9.9", "ann@hotrow ::1", "ann@hotrow unix"]
    {
        assert_eq!(method(&list, client), Some(Method::Trust), "{client}");
    }
    for client in ["ann@shop 10.0.0.1", "ann@shop 2001:db8::1", "ann@hotrow 128.0.0.1"] {
        assert_eq!(method(&list, client), None, "{client}");
    }
    assert_eq!(list.insecure(), None);
}

#[test]
fn finds_insecure_lines() {
    for (line, insecure) in [
        ("host all all all trust", true),
        ("hostssl all all all trust", true),
        ("host all all 127.0.0.0/7 trust", true),
        ("host all all ::/0 trust", true),
        ("host all all 10.0.0.1/32 trust", true),
        ("hostssl all all all trust clientcert=verify-ca", true),
        ("hostssl all all all trust clientcert=verify-full", false),
        ("host all all 127.0.0.1/32 trust", false),
        ("host all all ::1/128 trust", false),
        ("local all all trust", false),
        ("local all all password", false),
        ("hostssl all all all password", false),
        ("host all all all scram-sha-256", false),
        ("host all all all reject", false),
    ] {
        assert_eq!(hba(line).insecure().is_some(), insecure, "{line}");
    }
}

#[test]
fn certificates() {
    let list = hba(
        "hostssl a all all cert\nhostssl b all all md5 clientcert=verify-ca\nhostssl c all all scram-sha-256 clientcert=verify-full",
    );
    let certificates: Vec<_> = list.0.iter().map(|rule| rule.certificate).collect();
    assert_eq!(certificates, [Certificate::OfUser, Certificate::Verified, Certificate::OfUser]);
}

#[test]
fn an_invalid_line_is_rejected_with_its_number_and_text() {
    for (text, line, words) in [
        ("local all all trust\n\nhost all all 127.0.0.1/32 peer", 3, "\"peer\" is not a supported method"),
        ("hosts all all all trust", 1, "\"hosts\" is not a connection type"),
        ("hostgssenc all all all trust", 1, "write host"),
        ("include other.conf", 1, "not supported"),
        ("local", 1, "missing: databases"),
        ("local all", 1, "missing: users"),
        ("local all all", 1, "missing: method"),
        ("host all all", 1, "missing: address"),
        ("host all all 10.0.0.1 trust", 1, "is not a mask for 10.0.0.1"),
        ("host all all 10.0.0.1", 1, "10.0.0.1/32"),
        ("host all all 10.0.0.1 255.0.255.0 trust", 1, "is not a mask"),
        ("host all all 10.0.0.1/33 trust", 1, "is not an address"),
        ("host all all db.example.org trust", 1, "not supported"),
        ("host all all samenet md5", 1, "write the addresses"),
        ("local samerole all trust", 1, "name the databases"),
        ("local all +staff trust", 1, "name the users"),
        ("local /^shop all trust", 1, "regular expressions"),
        ("local all @users trust", 1, "other files"),
        ("local all all trust md5", 1, "is not a supported option"),
        ("local all all md5 map=x", 1, "\"map=x\" is not a supported option"),
        ("host all all all md5 clientcert=verify-ca", 1, "needs TLS"),
        ("host all all all cert", 1, "write hostssl"),
        ("host all all 127.0.0.1/32 password", 1, "in cleartext"),
        ("hostnossl all all all password", 1, "in cleartext"),
        ("local all,,x all trust", 1, "nothing before it"),
        ("local all \"all trust", 1, "not closed"),
        ("local all all trust,", 1, "ends with a comma"),
        ("local all all trust,md5", 1, "only one method"),
    ] {
        let error = Hba::parse(text).expect_err(text);
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.cause.contains(words), "{text}: {error}");
    }
    let many = "local all all trust\n".repeat(limits::HBA_RULES_MAX + 1);
    assert!(Hba::parse(&many).unwrap_err().cause.contains("more than"));
}

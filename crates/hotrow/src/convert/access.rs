//! The access file for a way of logging in that other poolers have as a setting. Pure.

/// TLS for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// None.
    Off,
    /// A client can use it.
    Offered,
    /// A client has to use it.
    Required,
    /// A client has to use it with a certificate.
    Verified,
}

/// The lines of an access file in which all clients log in by this method of PgBouncer, and what is different.
pub fn lines(method: &str, tls: Tls) -> (Vec<String>, Option<String>) {
    let (connection, certificate) = match tls {
        Tls::Off | Tls::Offered => ("host", ""),
        Tls::Required => ("hostssl", ""),
        Tls::Verified => ("hostssl", " clientcert=verify-ca"),
    };
    let by = |method: &str| {
        // all does not include the console, which is the database hotrow.
        vec![
            format!("local all,hotrow all {method}"),
            format!("{connection} all,hotrow all all {method}{certificate}"),
        ]
    };
    match method {
        "scram-sha-256" | "md5" => (by(method), None),
        "cert" => (
            vec!["hostssl all,hotrow all all cert".to_owned()],
            Some("clients on a Unix socket have no certificate and are rejected: add a local line to the access file".to_owned()),
        ),
        "trust" | "any" => {
            let trusted = ["local all,hotrow all trust", "host all,hotrow all 127.0.0.1/32 trust", "host all,hotrow all ::1/128 trust"];
            let mut lines: Vec<String> = trusted.map(str::to_owned).to_vec();
            lines.push(format!("{connection} all,hotrow all all scram-sha-256{certificate}"));
            let what = "without a proof the gateway admits clients of this machine only; clients of other machines log in by scram-sha-256. It does not check that users_file has the user";
            (lines, Some(what.to_owned()))
        }
        other => {
            let what = match other {
                "plain" => "plain passwords are not sent in the clear: clients log in by scram-sha-256 with the same password".to_owned(),
                "pam" | "ldap" => format!("{other} has no counterpart: clients log in by scram-sha-256, with secrets in users_file or from auth_query"),
                other => format!("{other:?} is not known: clients log in by scram-sha-256"),
            };
            (by("scram-sha-256"), Some(what))
        }
    }
}

/// The line that admits one user to one database from everywhere. None if a name has a line break, with which no line
/// can be written.
pub fn line(database: &str, user: &str) -> Option<String> {
    // Quoted names have no special meaning: a database can be called all.
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let is_one_line = [database, user].iter().all(|name| !name.contains(['\n', '\r']));
    is_one_line.then(|| format!("host {} {} all scram-sha-256", quoted(database), quoted(user)))
}

#[cfg(test)]
mod tests {
    use hotrow_auth::{Hba, LoginAttempt};

    use super::{Tls, line, lines};

    #[test]
    fn a_line_for_one_user_admits_nobody_else() {
        let names = ["all", "sameuser", "replication", "hotrow", "bob", "+bob", "/.*", "a \"b\",c#", "all,x"];
        let reaches = |hba: &Hba, database: &str, user: &str| {
            let console = database == hotrow_gateway::console::DATABASE;
            let address = Some("10.1.2.3".parse().unwrap());
            hba.decide(&LoginAttempt { address, tls: false, user, database, console }).is_some()
        };
        for database in names {
            for user in names {
                let hba = Hba::parse(&line(database, user).unwrap()).unwrap();
                for (other, stranger) in names.iter().flat_map(|one| names.map(|two| (*one, two))) {
                    let expected = (other, stranger) == (database, user);
                    assert_eq!(
                        reaches(&hba, other, stranger),
                        expected,
                        "{database} {user} {other} {stranger}"
                    );
                }
            }
        }
        assert_eq!(line("shop", "a\nhost all all all trust"), None);
    }

    #[test]
    fn every_method_gives_an_access_file_that_admits_no_stranger() {
        for method in ["scram-sha-256", "md5", "cert", "trust", "any", "plain", "pam", "ldap", "new"] {
            for tls in [Tls::Off, Tls::Offered, Tls::Required, Tls::Verified] {
                let (lines, what) = lines(method, tls);
                let hba =
                    Hba::parse(&lines.join("\n")).unwrap_or_else(|error| panic!("{method} {tls:?}: {error}"));
                assert!(hba.insecure().is_none(), "{method} {tls:?}");
                assert_eq!(what.is_none(), matches!(method, "scram-sha-256" | "md5"), "{method}");
            }
        }
        assert!(lines("md5", Tls::Required).0[1].starts_with("hostssl"));
        assert!(lines("md5", Tls::Verified).0[1].ends_with("clientcert=verify-ca"));
    }
}

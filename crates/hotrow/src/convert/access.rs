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

#[cfg(test)]
mod tests {
    use hotrow_auth::Hba;

    use super::{Tls, lines};

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

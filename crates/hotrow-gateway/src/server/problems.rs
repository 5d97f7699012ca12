//! What a client gets if the server gives no connection, and the reason by which the metrics and the log count that.

use hotrow_connect::upstream::Error;
use hotrow_wire::SqlState;

use crate::metrics::RefusalReason;

/// SQLSTATE, message and hint. `outcome` says what was not done, and `retry` that it can be repeated.
pub fn no_server(error: &Error, outcome: &str, retry: &str) -> (SqlState, String, String) {
    match error {
        Error::Io { .. } | Error::Timeout { .. } => (
            SqlState::CannotConnectNow,
            format!("the server cannot be reached: {error}; {outcome}"),
            format!("{retry} server_wait_ms limits how long clients wait for the server."),
        ),
        Error::NoPassword(_) | Error::OtherVerifier(_) => (
            SqlState::InvalidAuthorizationSpecification,
            format!("the gateway cannot log in at the server for this client: {error}"),
            "Change users_file or auth_query in the gateway's settings, then reload.".to_owned(),
        ),
        // A refusal by the server may be over at the next attempt.
        _ => (
            SqlState::CannotConnectNow,
            format!("the server gave no connection: {error}; {outcome}"),
            match error.is_retryable() || matches!(error, Error::Refused { .. }) {
                true => retry.to_owned(),
                false => {
                    "Retrying does not help until the settings of the gateway or of the server are changed."
                        .to_owned()
                }
            },
        ),
    }
}

/// The reason of the metrics and the log.
pub fn reason(error: &Error) -> RefusalReason {
    match error {
        Error::NoPassword(_) | Error::OtherVerifier(_) => RefusalReason::NoCredentials,
        Error::Refused { code, .. } if code.starts_with("28") => RefusalReason::NoCredentials,
        error if error.is_full() => RefusalReason::ServerFull,
        error if error.is_retryable() => RefusalReason::NoServer,
        _ => RefusalReason::ServerRefuses,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str) -> Error {
        Error::Refused { code: code.to_owned(), message: "no".to_owned(), frame: bytes::Bytes::new() }
    }

    #[test]
    fn each_cause_has_a_reason_of_its_own() {
        for (code, expected) in [
            ("53300", RefusalReason::ServerFull),
            ("28P01", RefusalReason::NoCredentials),
            ("28000", RefusalReason::NoCredentials),
            ("57P03", RefusalReason::NoServer),
            ("3D000", RefusalReason::ServerRefuses),
        ] {
            assert_eq!(reason(&refused(code)), expected, "{code}");
        }
        assert_eq!(reason(&Error::NoPassword("ann".to_owned())), RefusalReason::NoCredentials);
        assert_eq!(reason(&Error::NotBound), RefusalReason::ServerRefuses);
    }

    #[test]
    fn a_full_server_is_not_unreachable() {
        let (code, message, hint) = no_server(&refused("53300"), "nothing was done", "Retry.");
        assert_eq!((code, hint.as_str()), (SqlState::CannotConnectNow, "Retry."));
        assert_eq!(message, "the server gave no connection: 53300: no; nothing was done");
    }
}

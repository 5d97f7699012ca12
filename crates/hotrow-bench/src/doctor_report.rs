//! The report of `hotrow doctor`, as far as the benchmark reads it. docs/doctor.md describes its fields.

use hotrow_doctor::diagnosis::workload::Workload;
use hotrow_doctor::report::VERSION;
use serde::{Deserialize, Serialize};

/// The fields of a report that the benchmark uses.
#[derive(Debug, Clone, Deserialize)]
pub struct Report {
    /// What is wrong, the most important first.
    pub findings: Vec<Finding>,
    /// What the gateway would give.
    pub prediction: Range,
    /// The shape of the load.
    pub workload: Workload,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Finding {
    /// The name of the situation.
    pub kind: String,
}

/// A range of factors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// The cautious factor.
    pub low: f64,
    /// The optimistic factor.
    pub high: f64,
}

/// The prediction of one run of the doctor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Examined {
    #[serde(flatten)]
    pub range: Range,
    /// The situation that the doctor found.
    pub finding: String,
}

/// Why a report cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is not a report of the doctor.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// It has another version.
    #[error("its version is {0}, and this program reads version {VERSION}")]
    Version(serde_json::Value),
    /// It is another file.
    #[error("it has no version, so it is not a report of the doctor")]
    NoVersion,
    /// It is about another kind of server.
    #[error("it is about a MariaDB server, and the benchmark makes loads for PostgreSQL only")]
    MariaDb,
}

impl Report {
    /// Reads a report. The version is checked first, because fields of another version can have another meaning.
    pub fn parse(text: &str) -> Result<Self, Unreadable> {
        let json: serde_json::Value = serde_json::from_str(text)?;
        if json.pointer("/server/product").is_some_and(|product| product == "mariadb") {
            return Err(Unreadable::MariaDb);
        }
        match json.get("version") {
            Some(version) if version.as_u64() == Some(VERSION.into()) => Ok(serde_json::from_value(json)?),
            Some(version) => Err(Unreadable::Version(version.clone())),
            None => Err(Unreadable::NoVersion),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Report, Unreadable};

    #[test]
    fn reports_that_are_of_no_use_are_told_apart() {
        let parse = |text: &str| Report::parse(text).unwrap_err();
        let mariadb = r#"{"version": 1, "server": {"product": "mariadb"}}"#;
        assert!(matches!(parse(mariadb), Unreadable::MariaDb));
        assert!(matches!(parse(r#"{"version": 99}"#), Unreadable::Version(_)));
        assert!(matches!(parse("{}"), Unreadable::NoVersion));
        assert!(matches!(parse(r#"{"version": 1}"#), Unreadable::Json(_)));
    }
}

//! What the gateway does with a statement, and why, as text for `hotrow explain`.

use std::sync::Arc;
use std::time::Duration;

use hotrow_core::classify::{self, Alters, Analysis, Boundary, Decision, Pass, Piece, Reason};
use hotrow_core::key::KeySource;
use hotrow_core::limits;
use hotrow_core::normalise::{self, Literal, Normaliser};
use hotrow_lane::lane::LaneKind;
use hotrow_wire::frontend::{self, Parse};

use crate::config::Config;
use crate::pool::Pool;
use crate::pool::identity::Identity;
use crate::server::held::{self, HeldConnections};
use crate::server::upstream;

/// Why there is no explanation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server cannot be asked.
    #[error(
        "cannot ask the server about the statement: {0}; check that the server runs, and that --upstream names its host, \
         port, user, password and database, for example postgres://user@127.0.0.1:5432/shop"
    )]
    Server(#[from] held::Error),
    /// The server refuses the statement itself.
    #[error(
        "the server rejects `{statement}`: {message} ({code}); correct the statement, or connect to its database with --upstream"
    )]
    Rejected {
        /// The statement, or the one of several.
        statement: String,
        /// The server's message.
        message: String,
        /// The server's SQLSTATE.
        code: String,
    },
    /// The decision needs the server's description of a text that someone else has written, with a constant in it.
    #[error(
        "the statement contains a constant, and a server that describes the statement converts it, perhaps with a function of a \
         user; check the statement with hotrow explain"
    )]
    Constant,
}

impl Error {
    /// The error with the server's SQLSTATE in place of its message, which can contain a constant of the statement.
    pub fn without_values(&self) -> String {
        match self {
            Self::Server(held::Error::Upstream(upstream::Error::Refused { code, .. }))
            | Self::Rejected { code, .. } => format!("the server refuses the statement ({code})"),
            Self::Server(_) | Self::Constant => self.to_string(),
        }
    }
}

impl From<upstream::Error> for Error {
    fn from(error: upstream::Error) -> Self {
        Self::Server(error.into())
    }
}

/// One statement of the text and the decision about it.
struct Explained {
    analysis: Analysis,
    decision: Option<Decision>,
    text: String,
}

impl Explained {
    fn is_packed(&self) -> bool {
        matches!(self.decision, Some(Decision::Packed(_)))
    }

    fn boundary(&self) -> Option<Boundary> {
        match self.analysis {
            Analysis::Pass(Pass { boundary, .. }) => boundary,
            _ => None,
        }
    }
}

/// Explains a text that a client of the upstream URL's user and database sends.
pub async fn explain(config: Config, sql: &str) -> Result<String, Error> {
    let pool = open(config, &[]).await?;
    let mut normaliser = Normaliser::new();
    let shape = normaliser.run(sql);
    let literals: Vec<Literal<'_>> = shape.literals().collect();
    let pieces = match classify::pieces(shape.shape) {
        Some(pieces) if pieces.len() > 1 => pieces,
        _ => vec![Piece { text: shape.shape.to_owned(), first: 0, count: literals.len() }],
    };
    let mut statements = Vec::with_capacity(pieces.len());
    for piece in &pieces {
        let literals = literals.get(piece.first..piece.first + piece.count).unwrap_or_default();
        let is_known = !statements.iter().any(changes_catalogue);
        statements.push(explain_one(&pool, &piece.text, literals, is_known).await?);
    }
    let mut text = unit(&statements);
    if let Some(reason) = pool.context.unpackable() {
        text.push_str(&format!("\n\nbut no statement of these clients is packed: {reason}"));
    }
    Ok(text)
}

/// A pool of the upstream URL's user and database, with these settings of the server. It has no clients.
async fn open(mut config: Config, settings: &[(&str, &str)]) -> Result<Arc<Pool>, Error> {
    config.server_wait = Duration::ZERO; // a person waits for the answer: a server that is away is an error at once
    config.citus_lanes = true; // the explanation says that the setting is needed
    let mut parameters = vec![("user", &*config.upstream.user), ("database", &*config.upstream.database)];
    parameters.extend_from_slice(settings);
    let parameters: Vec<_> =
        parameters.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let held = Arc::new(HeldConnections::new(&config));
    let credential = config.upstream.credential();
    let identity = Identity::new(config.routes.first().clone(), &parameters);
    Ok(Pool::open(Arc::new(config), held, Arc::default(), identity, credential, Arc::default()).await?)
}

/// Decides about statements that other clients have sent, one after another, as the gateway would.
pub struct Judge(Arc<Pool>);

/// What the gateway does with a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    pub is_packed: bool,
    /// Its concurrent calls are merged into one call.
    pub is_merged: bool,
    pub writes: bool,
    /// Why.
    pub reason: String,
    /// What to do about it, if something is known.
    pub remedy: Option<&'static str>,
    /// The columns of its key, with the parameter (from zero) that has the value, where there is one.
    pub key: Vec<(String, Option<u16>)>,
    /// Maximum number of its units on one row in one commit.
    pub rows_per_commit: Option<u16>,
    /// It begins or ends a transaction.
    pub is_boundary: bool,
}

impl Judge {
    /// Connects to the server of the configuration. The session gets these settings of the server.
    pub async fn open(config: Config, settings: &[(&str, &str)]) -> Result<Self, Error> {
        Ok(Self(open(config, settings).await?))
    }

    /// Why no statement of the user can be packed.
    pub fn unpackable(&self) -> Option<String> {
        self.0.context.unpackable()
    }

    /// The decision about one shape of a statement, whose parameters have these types (0 if a type is not known). No code of
    /// the users who sent the statement or own its tables runs on the server.
    pub async fn rule(&self, shape: &str, types: &[u32]) -> Result<Ruling, Error> {
        let pool = &self.0;
        let analysis = classify::analyse(shape);
        let ruling = match &analysis {
            Analysis::Candidate(candidate) => {
                if candidate.needs_description() && may_contain_constant(shape) {
                    return Err(Error::Constant);
                }
                let facts = pool.facts(candidate).await?;
                let types: Vec<u8> = types.iter().flat_map(|oid| oid.to_be_bytes()).collect();
                let statement = pool.context.statements.extended(shape.as_bytes(), &types);
                let types = pool.known_types(&statement, candidate).await?;
                Ruling::of(&classify::decide(candidate, &facts, &types))
            }
            Analysis::Pass(pass) => Ruling::passed(
                &pass.reason,
                pass.boundary.is_some() || pass.transaction.is_some() || pass.leaves_open == Some(false),
            ),
            _ => Ruling::passed(&Reason::Session("the statement".to_owned()), false),
        };
        Ok(ruling)
    }
}

/// Whether a text may contain a constant in quotes. The server converts it to the type of its place when it parses the text. If the
/// type is a domain, or contains one, the conversion calls the functions in the domain's checks, with the rights of the session.
/// Numbers and parameters are not converted before the statement runs.
fn may_contain_constant(text: &str) -> bool {
    let mut after_dollars = text.split('$').skip(1);
    text.contains('\'') || after_dollars.any(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

impl Drop for Judge {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Ruling {
    fn passed(reason: &Reason, is_boundary: bool) -> Self {
        Self {
            is_packed: false,
            is_merged: false,
            writes: false,
            reason: reason.to_string(),
            remedy: reason.remedy(),
            key: Vec::new(),
            rows_per_commit: None,
            is_boundary,
        }
    }

    fn of(decision: &Decision) -> Self {
        let packing = match decision {
            Decision::Packed(packing) => packing,
            Decision::Pass { reason, .. } => return Self::passed(reason, false),
        };
        // Of several statements in WITH, one with a key.
        let part = packing.parts().find(|part| part.key.is_some()).unwrap_or(packing);
        let columns = part.key.iter().flat_map(|key| &key.columns);
        let parameter = |source: &KeySource| match source {
            KeySource::Param(index) => Some(*index),
            _ => None,
        };
        Self {
            is_packed: true,
            is_merged: packing.merging.is_some(),
            writes: packing.kind == LaneKind::Write,
            reason: packing.why.clone(),
            remedy: None,
            key: columns.map(|column| (column.name.clone(), parameter(&column.source))).collect(),
            rows_per_commit: Some(part.rows_per_commit),
            is_boundary: false,
        }
    }
}

/// Whether later statements of the text may depend on its result, which the server does not know yet.
fn changes_catalogue(statement: &Explained) -> bool {
    matches!(&statement.analysis, Analysis::Pass(pass) if pass.alters > Alters::Nothing)
}

/// Several statements that could not be taken apart: the server parses one at a time.
fn is_several(analysis: &Analysis) -> bool {
    matches!(
        analysis,
        Analysis::Pass(Pass { reason: Reason::SeveralStatements | Reason::ManyStatements, .. })
    )
}

async fn explain_one(
    pool: &Pool,
    shape: &str,
    literals: &[Literal<'_>],
    is_known: bool,
) -> Result<Explained, Error> {
    let types: Vec<u32> = literals.iter().map(|literal| literal.type_oid).collect();
    let analysis = classify::analyse(shape);
    if is_known && !is_several(&analysis) {
        parse(pool, shape, &types).await?;
    }
    let decision = match &analysis {
        Analysis::Candidate(candidate) => {
            let facts = pool.facts(candidate).await?;
            let types: Vec<u8> = types.iter().flat_map(|oid| oid.to_be_bytes()).collect();
            let statement = pool.context.statements.extended(shape.as_bytes(), &types);
            Some(classify::decide(candidate, &facts, &pool.known_types(&statement, candidate).await?))
        }
        _ => None,
    };
    let values: Vec<String> =
        literals.iter().map(|literal| String::from_utf8_lossy(literal.value).into_owned()).collect();
    let explanation = classify::explain(&analysis, decision.as_ref(), &values);
    Ok(Explained { analysis, decision, text: format!("shape: {}\n{explanation}", shown(shape)) })
}

/// The shape as `SHOW STATEMENTS` shows it. The gateway takes no literals out of a text of several statements, so each of
/// them can have literals here.
fn shown(statement: &str) -> String {
    let mut normaliser = Normaliser::new();
    let shape = normaliser.run(statement).shape;
    normalise::without_values(shape, shape.chars().count())
}

/// Lets the server parse the statement without running it: a syntax error or a missing table says nothing about packing.
async fn parse(pool: &Pool, shape: &str, types: &[u32]) -> Result<(), Error> {
    let mut held = pool.take_own().await?;
    let upstream = &mut held.upstream;
    let types: Vec<u8> = types.iter().flat_map(|oid| oid.to_be_bytes()).collect();
    Parse { name: b"", text: shape.as_bytes(), types: &types }.put(&mut upstream.output);
    upstream.prepared.forget_unnamed();
    upstream.output.extend_from_slice(frontend::SYNC);
    upstream.flush().await?;
    let refusal = upstream.until_ready(|_| Ok(())).await?;
    pool.give_back(held);
    match refusal {
        // A driver that sends the statement may declare the types of its parameters.
        Some(upstream::Error::Refused { code, message, .. })
            if !matches!(code.as_str(), "42P18" | "42P08") =>
        {
            Err(Error::Rejected { statement: shape.to_owned(), message, code })
        }
        _ => Ok(()),
    }
}

/// The statements of one text, and how they run together.
fn unit(statements: &[Explained]) -> String {
    let paragraphs = |inner: &dyn Fn(&Explained) -> String| -> String {
        statements
            .iter()
            .map(|statement| inner(statement).trim_end().to_owned())
            .collect::<Vec<_>>()
            .join("\n\n")
    };
    let [first, .., last] = statements else { return paragraphs(&|statement| statement.text.clone()) };
    let packed = statements.iter().filter(|statement| statement.is_packed()).count();
    let around = match (first.boundary(), last.boundary()) {
        (Some(Boundary::Begin(_)), Some(Boundary::Commit)) => 2,
        _ => 0,
    };
    if packed == 0 || packed + around != statements.len() || statements.len() > limits::UNIT_STATEMENTS_MAX {
        let head = "passed through as one unit, because not all of its statements can be packed\n\n";
        return head.to_owned() + &paragraphs(&|statement| statement.text.clone());
    }
    let head = "packed as one unit: all statements run in one batch\n\n";
    head.to_owned()
        + &paragraphs(&|statement| match statement.boundary() {
            Some(boundary) => format!(
                "{}\nanswered by the gateway\n  because   the batch takes the place of the transaction\n",
                boundary.tag()
            ),
            None => statement.text.clone(),
        })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn an_error_without_values_repeats_no_message_of_the_server() {
        let (code, message) =
            ("22008".to_owned(), "date/time field value out of range: \"31.12.26\"".to_owned());
        let rejected = Error::Rejected {
            statement: "select 1".to_owned(),
            message: message.clone(),
            code: code.clone(),
        };
        let refused = Error::from(upstream::Error::Refused { code, message, frame: Bytes::new() });
        for error in [rejected, refused] {
            assert!(error.to_string().contains("31.12.26"));
            assert_eq!(error.without_values(), "the server refuses the statement (22008)");
        }
        assert!(Error::Server(held::Error::Paused).without_values().contains("paused"));
    }
}

//! What the gateway does with a statement, and why, as text for `hotrow explain`.

use hotrow_connect::config::UpstreamConfig;
use hotrow_core::classify::{self, Alters, Analysis, BlockCommand, Decision, Pass, Piece, Reason};
use hotrow_core::limits;
use hotrow_core::normalise::{self, Literal, Normaliser};

use crate::judge::{Error, Judge};

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

    fn block_command(&self) -> Option<BlockCommand> {
        match self.analysis {
            Analysis::Pass(Pass { block_command, .. }) => block_command,
            _ => None,
        }
    }
}

/// Explains a text that a client of the URL's user and database sends.
pub async fn explain(server: UpstreamConfig, sql: &str) -> Result<String, Error> {
    let mut judge = Judge::open(server, &[]).await?;
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
        let is_known = !statements.iter().any(changes_catalog);
        statements.push(explain_one(&mut judge, &piece.text, literals, is_known).await?);
    }
    let mut text = unit(&statements);
    if let Some(reason) = judge.unpackable() {
        text.push_str(&format!("\n\nbut no statement of these clients is packed: {reason}"));
    }
    Ok(text)
}

/// Whether later statements of the text may depend on its result, which the server does not know yet.
fn changes_catalog(statement: &Explained) -> bool {
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
    judge: &mut Judge,
    shape: &str,
    literals: &[Literal<'_>],
    is_known: bool,
) -> Result<Explained, Error> {
    let types: Vec<u32> = literals.iter().map(|literal| literal.type_oid).collect();
    let analysis = classify::analyse(shape);
    if is_known && !is_several(&analysis) {
        judge.parse(shape, &types).await?;
    }
    let decision = match &analysis {
        Analysis::Candidate(candidate) => Some(judge.decide(candidate, shape, &types).await?),
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
    let around = match (first.block_command(), last.block_command()) {
        (Some(BlockCommand::Begin(_)), Some(BlockCommand::Commit)) => 2,
        _ => 0,
    };
    if packed == 0 || packed + around != statements.len() || statements.len() > limits::UNIT_STATEMENTS_MAX {
        let head = "passed through as one unit, because not all of its statements can be packed\n\n";
        return head.to_owned() + &paragraphs(&|statement| statement.text.clone());
    }
    let head = "packed as one unit: all statements run in one batch\n\n";
    head.to_owned()
        + &paragraphs(&|statement| match statement.block_command() {
            Some(block_command) => format!(
                "{}\nanswered by the gateway\n  because   the batch takes the place of the transaction\n",
                block_command.tag()
            ),
            None => statement.text.clone(),
        })
}

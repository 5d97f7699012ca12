//! Sends one transaction, and finds out from the answers what became of it.

use super::plan::{Plan, Way};
use super::statement::Statement;
use crate::histories::history::{Op, Outcome};
use hotrow_testkit::line::{Answer, Line, Report};

/// What a client knows after a transaction.
pub struct Done {
    pub outcome: Outcome,
    /// The operations of each statement that was sent.
    pub statements: Vec<Vec<Op>>,
    /// The errors, by SQLSTATE. One that is no error of a server or gateway says what was wrong with an answer.
    pub error: Option<Report>,
    /// An answer that no database may give.
    pub wrong: Option<String>,
    /// Whether the connection can be used for the next transaction.
    pub is_connected: bool,
    /// Whether a failed transaction waits for its ROLLBACK.
    pub is_open: bool,
}

/// A statement's answer: its rows and its tag.
type Completion = (Vec<Vec<Option<String>>>, String);

/// The answers to a transaction so far.
#[derive(Default)]
struct Heard {
    completions: Vec<Completion>,
    error: Option<Report>,
    /// Whether all messages so far were answered up to ReadyForQuery.
    whole: bool,
    /// Whether a transaction is open, or has failed.
    is_open: bool,
}

impl Heard {
    fn hear(&mut self, answer: &Answer) {
        let mut rows = Vec::new();
        for (tag, body) in answer.frames() {
            match tag {
                'D' => {
                    let row = Answer { bytes: frame(tag, body), whole: true };
                    rows.extend(row.rows());
                }
                'C' => {
                    let text = String::from_utf8_lossy(&body[..body.len().saturating_sub(1)]).into_owned();
                    self.completions.push((std::mem::take(&mut rows), text));
                }
                'Z' => self.is_open = body != b"I",
                _ => {}
            }
        }
        self.whole = answer.whole;
        self.error = self.error.take().or_else(|| answer.error());
    }
}

fn frame(tag: char, body: &[u8]) -> Vec<u8> {
    let length = body.len() as u32 + 4;
    [&[tag as u8][..], &length.to_be_bytes(), body].concat()
}

/// Sends a transaction that is not [`Way::PipelinedSingles`], and reads its answers.
pub fn run(line: &mut Line, plan: &Plan) -> Done {
    let mut heard = Heard { whole: true, ..Heard::default() };
    let sent = match plan.way {
        Way::Interactive => interactive(line, plan, &mut heard),
        _ => at_once(line, plan, &mut heard),
    };
    let (statements, with_commit) = sent;
    let mut done = judge(&plan.statements[..statements], plan.way.is_explicit(), with_commit, heard);
    done.is_connected &= plan.cut_after.is_none();
    done
}

/// Sends a statement as one message, or as the messages of an extended query without Sync.
fn put(line: &mut Line, statement: &Statement, is_extended: bool) {
    if is_extended {
        let (sql, values) = statement.sql();
        let values: Vec<String> = values.iter().map(u64::to_string).collect();
        let values: Vec<Option<&str>> = values.iter().map(|value| Some(value.as_str())).collect();
        line.put_unnamed_call(sql, &values);
    } else {
        line.put_query(&statement.text());
    }
}

/// Sends everything, and reads the answers. Returns the number of statements that were sent, and whether the commit was.
fn at_once(line: &mut Line, plan: &Plan, heard: &mut Heard) -> (usize, bool) {
    let mut answers = 1;
    match plan.way {
        Way::Block | Way::Text => {
            let texts: Vec<String> = plan.statements.iter().map(Statement::text).collect();
            let text = texts.join("; ");
            let text =
                if plan.way == Way::Block { format!("{}; {text}; commit", plan.begin()) } else { text };
            line.put_query(&text);
        }
        Way::Unit | Way::ImplicitUnit => {
            let explicit = plan.way == Way::Unit;
            explicit.then(|| line.put_unnamed_call(plan.begin(), &[]));
            plan.statements.iter().for_each(|statement| put(line, statement, true));
            explicit.then(|| line.put_unnamed_call("commit", &[]));
            line.put_sync();
        }
        Way::Single => {
            put(line, &plan.statements[0], plan.is_extended);
            if plan.is_extended {
                line.put_sync();
            }
        }
        Way::Pipelined | Way::Interactive | Way::PipelinedSingles => {
            line.put_query(plan.begin());
            for statement in &plan.statements {
                put(line, statement, plan.is_extended);
                if plan.is_extended {
                    line.put_sync();
                }
            }
            line.put_query("commit");
            answers = plan.statements.len() + 2;
        }
    }
    let is_sent = line.send().is_ok();
    for _ in 0..answers {
        if plan.cut_after.is_some() || !is_sent || !heard.whole {
            heard.whole = false;
            break;
        }
        heard.hear(&line.answer());
    }
    (plan.statements.len(), true)
}

/// Sends each message after the answer to the one before it.
fn interactive(line: &mut Line, plan: &Plan, heard: &mut Heard) -> (usize, bool) {
    let exchange = |line: &mut Line, heard: &mut Heard| {
        match line.send() {
            Ok(()) => heard.hear(&line.answer()),
            Err(_) => heard.whole = false,
        }
        heard.whole && heard.error.is_none()
    };
    line.put_query(plan.begin());
    if !exchange(line, heard) {
        return (0, false);
    }
    for (statement, at) in plan.statements.iter().zip(0..) {
        if plan.cut_after == Some(at) {
            heard.whole = false;
            return (at, false);
        }
        put(line, statement, plan.is_extended);
        if plan.is_extended {
            line.put_sync();
        }
        if !exchange(line, heard) {
            return (at + 1, false);
        }
    }
    line.put_query("commit");
    if plan.cut_after.is_some() {
        // The answer is not awaited.
        let _ = line.send();
        heard.whole = false;
    } else {
        exchange(line, heard);
    }
    (plan.statements.len(), true)
}

/// Sends single statements together, and reads the answers. `each` is called after each of them.
pub fn run_singles(line: &mut Line, plan: &Plan, mut each: impl FnMut(Done)) {
    for statement in &plan.statements {
        put(line, statement, plan.is_extended);
        if plan.is_extended {
            line.put_sync();
        }
    }
    let mut is_connected = line.send().is_ok();
    for (statement, at) in plan.statements.iter().zip(0..) {
        let mut heard = Heard::default();
        if is_connected && plan.cut_after.is_none_or(|cut| at < cut) {
            heard.hear(&line.answer());
        }
        is_connected &= heard.whole;
        each(judge(std::slice::from_ref(statement), false, true, heard));
    }
}

/// Finds the outcome. `is_explicit` is whether COMMIT has an answer of its own, `with_commit` whether it was sent, or will be
/// executed without a further message.
fn judge(sent: &[Statement], is_explicit: bool, with_commit: bool, heard: Heard) -> Done {
    let is_control = |tag: &str| matches!(tag, "BEGIN" | "COMMIT" | "ROLLBACK");
    let commit = heard.completions.iter().rfind(|(_, tag)| matches!(tag.as_str(), "COMMIT" | "ROLLBACK"));
    let answers: Vec<&Completion> = heard.completions.iter().filter(|(_, tag)| !is_control(tag)).collect();
    let outcome = match (&heard.error, commit) {
        // 08007 says that the outcome is unknown. A connection can end after the commit.
        (Some(error), _) if error.code == "08007" || error.severity != "ERROR" => unless(with_commit),
        (Some(_), _) => Outcome::Failed,
        (None, Some((_, tag))) if tag == "COMMIT" => Outcome::Committed,
        (None, Some(_)) => Outcome::Failed,
        (None, None) if !is_explicit && heard.whole => Outcome::Committed,
        (None, None) => unless(with_commit),
    };
    let mut wrong = None;
    let statements = sent.iter().enumerate().map(|(at, statement)| match answers.get(at) {
        Some((rows, tag)) => statement.answered(rows, tag).unwrap_or_else(|text| {
            wrong = Some(text);
            statement.writes()
        }),
        None => statement.writes(),
    });
    let statements = statements.collect();
    if outcome == Outcome::Committed && answers.len() != sent.len() {
        wrong = Some(format!("{} statements got {} answers, and COMMIT", sent.len(), answers.len()));
    }
    if outcome == Outcome::Failed && heard.error.is_none() && with_commit {
        wrong = Some("a transaction without an error was rolled back".into());
    }
    let (is_connected, is_open) = (heard.whole, heard.is_open);
    Done { outcome, statements, error: heard.error, wrong, is_connected, is_open }
}

/// The outcome without an answer.
fn unless(with_commit: bool) -> Outcome {
    if with_commit { Outcome::Unknown } else { Outcome::Failed }
}

/// Ends a transaction that has failed.
pub fn roll_back(line: &mut Line) -> bool {
    line.query("rollback").whole
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(tags: &[&str], error: Option<(&str, &str)>, whole: bool) -> Heard {
        let error = error.map(|(severity, code)| Report {
            severity: severity.into(),
            code: code.into(),
            message: String::new(),
        });
        let completions = tags.iter().map(|tag| (Vec::new(), (*tag).to_owned())).collect();
        Heard { completions, error, whole, is_open: false }
    }

    fn outcome(is_explicit: bool, with_commit: bool, heard: Heard) -> Outcome {
        let done = judge(&[Statement::Append(1, 1)], is_explicit, with_commit, heard);
        assert_eq!(done.wrong, None);
        done.outcome
    }

    #[test]
    fn an_outcome_is_known_only_from_answers() {
        let block = &["BEGIN", "UPDATE 1", "COMMIT"];
        assert_eq!(outcome(true, true, heard(block, None, true)), Outcome::Committed);
        assert_eq!(outcome(false, true, heard(&["UPDATE 1"], None, true)), Outcome::Committed);
        // The connection ended before the answer to COMMIT, and before COMMIT was sent.
        assert_eq!(outcome(true, true, heard(&block[..2], None, false)), Outcome::Unknown);
        assert_eq!(outcome(true, false, heard(&block[..2], None, false)), Outcome::Failed);
        // After a single statement, only ReadyForQuery shows the commit.
        assert_eq!(outcome(false, true, heard(&["UPDATE 1"], None, false)), Outcome::Unknown);
    }

    #[test]
    fn an_error_means_a_rollback_unless_it_ends_the_connection() {
        let failed = |severity, code| heard(&["BEGIN"], Some((severity, code)), true);
        assert_eq!(outcome(true, true, failed("ERROR", "40001")), Outcome::Failed);
        assert_eq!(outcome(true, true, failed("ERROR", "08007")), Outcome::Unknown);
        assert_eq!(outcome(true, true, failed("FATAL", "57P01")), Outcome::Unknown);
        assert_eq!(outcome(true, false, failed("FATAL", "57P01")), Outcome::Failed);
    }

    #[test]
    fn wrong_answers_are_reported() {
        let judged = |tags: &[&str]| judge(&[Statement::Append(1, 1)], true, true, heard(tags, None, true));
        assert!(judged(&["BEGIN", "UPDATE 0", "COMMIT"]).wrong.is_some());
        assert!(judged(&["BEGIN", "COMMIT"]).wrong.is_some());
        assert!(judged(&["BEGIN", "UPDATE 1", "ROLLBACK"]).wrong.is_some());
    }
}

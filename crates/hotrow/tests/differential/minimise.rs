//! Makes a program smaller while it still differs: delta debugging over sessions, steps and frames. Never runs a
//! program itself.

use std::time::Instant;

use crate::program::{Frame, Program, Step};

/// The smallest program for which `differs` still returns true, as far as time allows.
pub async fn minimise(
    program: &Program,
    until: Instant,
    mut differs: impl AsyncFnMut(&Program) -> bool,
) -> Program {
    let mut steps = program.steps.clone();
    for session in program.sessions() {
        let without: Vec<Step> = steps.iter().filter(|step| step.session != session).cloned().collect();
        if without.len() < steps.len()
            && Instant::now() < until
            && differs(&Program { steps: without.clone() }).await
        {
            steps = without;
        }
    }
    loop {
        let before = steps.clone();
        steps = fewer(steps, until, async |steps| differs(&Program { steps: steps.to_vec() }).await).await;
        for index in 0..steps.len() {
            let frames = fewer(steps[index].frames.clone(), until, async |frames| {
                let mut steps = steps.clone();
                steps[index].frames = frames.to_vec();
                !frames.is_empty() && differs(&Program { steps }).await
            });
            steps[index].frames = frames.await;
            for frame in 0..steps[index].frames.len() {
                let Frame::Query(text) = steps[index].frames[frame].clone() else { continue };
                let texts = fewer(statements(&text), until, async |texts| {
                    let mut steps = steps.clone();
                    steps[index].frames[frame] = Frame::Query(texts.join(";").trim().to_owned());
                    differs(&Program { steps }).await
                });
                steps[index].frames[frame] = Frame::Query(texts.await.join(";").trim().to_owned());
            }
        }
        if steps == before || Instant::now() >= until {
            return Program { steps };
        }
    }
}

/// The statements of a simple query, split at semicolons that are not between dollar quotes.
fn statements(text: &str) -> Vec<String> {
    let mut statements = vec![String::new()];
    for (index, part) in text.split("$$").enumerate() {
        let quoted = index % 2 == 1;
        let mut pieces = if quoted { vec![part] } else { part.split(';').collect() };
        let first = pieces.remove(0);
        let dollars = if index > 0 { "$$" } else { "" };
        let last = statements.last_mut().expect("the list is not empty");
        last.push_str(dollars);
        last.push_str(first);
        statements.extend(pieces.into_iter().map(str::to_owned));
    }
    statements
}

/// Removes halves, quarters, ... and single parts while `does` returns true for the rest.
async fn fewer<T: Clone>(
    mut parts: Vec<T>,
    until: Instant,
    mut does: impl AsyncFnMut(&[T]) -> bool,
) -> Vec<T> {
    let mut size = parts.len().div_ceil(2);
    while size > 0 && parts.len() > 1 {
        let mut start = 0;
        while start < parts.len() && Instant::now() < until {
            let end = (start + size).min(parts.len());
            let rest = [&parts[..start], &parts[end..]].concat();
            if does(&rest).await { parts = rest } else { start = end }
        }
        size = if size == 1 { 0 } else { size.div_ceil(2) };
    }
    parts
}

#[test]
fn a_text_is_split_between_its_statements() {
    let text = "a; create function f() as $$ b; c $$ language sql; d";
    let apart = statements(text);
    assert_eq!(apart, ["a", " create function f() as $$ b; c $$ language sql", " d"]);
    assert_eq!(apart.join(";"), text);
}

#[tokio::test]
async fn irrelevant_parts_are_removed() {
    let step = |session: char, texts: &[&str]| {
        Step::new(session, texts.iter().map(|text| Frame::Query((*text).to_owned())).collect())
    };
    let steps = (0..40).flat_map(|n| match n {
        7 => vec![step('a', &["x", "cause", "y"])],
        31 => vec![step('b', &["symptom"])],
        _ => vec![step('a', &["x"]), step('c', &["y", "z"])],
    });
    let program = Program { steps: steps.collect() };
    let differs = async |program: &Program| {
        let text = program.to_string();
        text.find("cause").zip(text.find("symptom")).is_some_and(|(cause, symptom)| cause < symptom)
    };
    let until = Instant::now() + std::time::Duration::from_secs(60);
    let least = minimise(&program, until, differs).await;
    assert_eq!(least, Program { steps: vec![step('a', &["cause"]), step('b', &["symptom"])] });
}

//! Scripts: a line is a call of the hotrow schema and its answer. Reservation IDs are written `#1`, `#2`, in the order of
//! their first appearance. Rows are separated by ` | `, NULL is `-`, and an error of the server is its SQLSTATE.
//!
//! `increment('a', 2) -> 2 1 ok`

use crate::server::{Database, Session};

/// Runs the script in a database of its own, and returns the session for checks that a script cannot express.
pub fn check(script: &str) -> (Database, Session) {
    let database = Database::migrated();
    let session = database.session("postgres");
    check_in(&session, script);
    (database, session)
}

/// Runs the script in this session.
pub fn check_in(session: &Session, script: &str) {
    let mut ids = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (call, expected) = line.split_once(" -> ").unwrap_or_else(|| panic!("no arrow: {line}"));
        let given = ids.iter().enumerate().rev().fold(call.to_owned(), |call, (place, id)| {
            call.replace(&format!("#{}", place + 1), &format!("'{id}'"))
        });
        let answer = match session.ask(&format!("select * from hotrow.{given}")) {
            Ok(rows) if rows.is_empty() => "nothing".to_owned(),
            Ok(rows) => rows.join(" | "),
            Err(code) => code,
        };
        assert_eq!(name_ids(&answer, &mut ids), expected.trim(), "{call}");
    }
}

fn name_ids(answer: &str, ids: &mut Vec<String>) -> String {
    let mut named = answer.to_owned();
    for word in answer.split([' ', '{', '}', ',']) {
        if word.len() == 36 && word.matches('-').count() == 4 {
            let place = ids.iter().position(|id| id == word).unwrap_or_else(|| {
                ids.push(word.to_owned());
                ids.len() - 1
            });
            named = named.replace(word, &format!("#{}", place + 1));
        }
    }
    named
}

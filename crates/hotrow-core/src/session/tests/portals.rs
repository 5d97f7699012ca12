//! Portals of the model of PostgreSQL.

use bytes::BytesMut;
use hotrow_wire::backend;
use hotrow_wire::frontend::Execute;
use hotrow_wire::put_frame;

use super::postgres::{Backend, Database, Failure, failure, returns_rows, text};

/// A statement that is ready to run.
#[derive(Clone, Debug)]
pub(super) struct Portal {
    pub(super) text: String,
    pub(super) values: Vec<String>,
    pub(super) is_done: bool,
    /// Its run has failed.
    pub(super) has_failed: bool,
    /// Its transaction has failed, which has released its statement.
    pub(super) is_released: bool,
    pub(super) by_query: bool,
    /// Its number among all portals of the connection.
    pub(super) number: usize,
}

impl Backend {
    pub(super) fn put_portal(&mut self, name: &str, text: &str, values: Vec<String>) -> &mut Portal {
        self.last_portal += 1;
        let portal = Portal {
            text: text.to_owned(),
            values,
            is_done: false,
            has_failed: false,
            is_released: false,
            by_query: false,
            number: self.last_portal,
        };
        self.portals.insert(name.to_owned(), portal);
        self.portals.get_mut(name).expect("just put")
    }

    pub(super) fn execute_portal(
        &mut self,
        execute: &Execute<'_>,
        database: &mut Database,
    ) -> Result<(), Failure> {
        let name = text(execute.portal);
        let Some(portal) = self.portals.get_mut(&name) else {
            return failure("34000", format!("portal \"{name}\" does not exist"));
        };
        let again = std::mem::replace(&mut portal.is_done, true);
        let Portal { text: statement, values, has_failed, is_released, by_query, .. } = portal.clone();
        self.has_run_freed |= is_released && by_query;
        if statement.is_empty() {
            self.kept.extend_from_slice(backend::EMPTY_QUERY);
            return Ok(());
        }
        self.allowed(if is_released { "" } else { &statement })?;
        if has_failed || again && !returns_rows(&statement) {
            return failure("55000", format!("portal \"{name}\" cannot be run"));
        }
        if again {
            let words = [("select", "SELECT 0"), ("show", "SHOW"), ("update", "UPDATE 0")];
            let again = words.into_iter().find(|(word, _)| statement.starts_with(word));
            self.complete(again.expect("it returns rows").1);
            return Ok(());
        }
        let result = self.run(&statement, &values, false, database);
        if let Some(portal) = self.portals.get_mut(&name) {
            portal.has_failed = result.is_err();
        }
        if result.is_ok() && execute.rows_max > 0 && statement.starts_with("select") {
            self.suspend();
        }
        result
    }

    /// A portal with a limit stops after its only row.
    fn suspend(&mut self) {
        let mut complete = BytesMut::new();
        backend::put_command_complete(&mut complete, "SELECT 1");
        self.kept.truncate(self.kept.len() - complete.len());
        put_frame(&mut self.kept, backend::tag::PORTAL_SUSPENDED, |_| {});
    }
}

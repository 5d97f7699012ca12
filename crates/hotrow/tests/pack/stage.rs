//! A connection to a server with the hotrow schema that answers commands in the model's format. Never judges an answer.

use hotrow_model::script::Runner;
use hotrow_model::{Command, Id, Ids, Time};
use hotrow_testkit::line::{Line, Report};

use crate::sql::{self, Call, Clock};

/// One client of the hotrow schema, and its simulated time.
pub struct Stage {
    pub line: Line,
    other: Line,
    pub clock: Clock,
    /// The server's IDs of reservations, in the order of their creation, for scripts that number them.
    numbered: Vec<Id>,
}

impl Stage {
    /// Connects to a port of the server or a gateway.
    pub fn connect(port: u16) -> Self {
        let connect = || {
            // The tests compare answers and do not simulate power loss, so commits need not wait for the disk.
            let line = Line::connect(port, "public -c synchronous_commit=off").expect("a connection");
            line.unwrap_or_else(|refusal| panic!("{:?}", refusal.error()))
        };
        Self { line: connect(), other: connect(), clock: Clock::start(), numbered: Vec::new() }
    }

    /// Continues on the other one of its two connections, which has another session state.
    pub fn change_line(&mut self) {
        std::mem::swap(&mut self.line, &mut self.other);
    }

    /// Runs several commands as one batch, or a single one directly. Stores the IDs of new reservations in the
    /// commands.
    pub fn answers(&mut self, commands: &mut [Command]) -> Result<Vec<String>, Report> {
        let call = match &*commands {
            [command] => Call::of(command, self.clock),
            batch => Call::batch(batch, self.clock),
        };
        let answer = self.line.query(&call.text());
        if let Some(error) = answer.error() {
            return Err(error);
        }
        assert!(answer.whole, "the connection ended under {}", call.text());
        let rows = answer.rows();
        if matches!(commands, [Command::Sale { .. }]) && rows.is_empty() {
            return Ok(vec!["no row".to_owned()]);
        }
        assert_eq!(rows.len(), commands.len(), "one row per call of {}", call.text());
        for (command, row) in commands.iter_mut().zip(&rows) {
            command.give(&sql::new_reservations(row));
        }
        Ok(rows.iter().map(|row| sql::answer(row)).collect())
    }

    /// Moves all stored times of these items into the past.
    pub fn pass(&mut self, hours: Time, items: &str) {
        // In UTC, because Citus passes only immutable expressions to a node.
        let columns = "select format('update %I.%I set %s where ', n.nspname, c.relname, string_agg(
                format('%1$I = (%1$I at time zone ''UTC'' - interval ''HOURS hours'') at time zone ''UTC''', a.attname), ', '))
            from pg_class c join pg_attribute a on a.attrelid = c.oid and a.atttypid = 'timestamptz'::regtype
                join pg_namespace n on n.oid = c.relnamespace
            where n.nspname like 'hotrow%' and c.relkind = 'r' and c.relname !~ '_[0-9]+$'
                and exists (select from pg_attribute i where i.attrelid = c.oid and i.attname = 'item')
                and not exists (select from pg_trigger g where g.tgrelid = c.oid and g.tgname = 'rows_are_in_shards')
            group by c.oid, n.nspname, c.relname";
        let updates = self.line.query(&columns.replace("HOURS", &hours.to_string())).rows();
        assert!(updates.len() >= 2, "sales and reservations have times");
        for update in updates {
            let update = format!("{}{items}", update[0].as_deref().unwrap_or_default());
            assert_eq!(self.line.query(&update).error(), None, "{update}");
        }
        self.clock.at += hours;
    }

    /// The server's ID of the script's `r1`.
    fn real(&self, id: Id) -> Id {
        let index = usize::try_from(id.0).ok().and_then(|number| number.checked_sub(1));
        index.and_then(|index| self.numbered.get(index)).copied().unwrap_or(id)
    }
}

impl Runner for Stage {
    fn run(&mut self, commands: &[Command]) -> Option<Vec<String>> {
        let mut real = commands.to_vec();
        for ids in real.iter_mut().flat_map(Command::ids) {
            if let Ids::Reservation(id) = ids {
                *id = self.real(*id);
            }
        }
        let mut answers = match self.answers(&mut real) {
            Ok(answers) => answers,
            Err(report) => {
                assert_eq!(report.code, "22023", "{}", report.message);
                return None;
            }
        };
        for id in real.iter().flat_map(Command::new_reservations) {
            if !self.numbered.contains(&id) {
                self.numbered.push(id);
            }
        }
        for answer in &mut answers {
            for (index, id) in self.numbered.iter().enumerate() {
                *answer = answer.replace(&id.uuid(), &format!("r{}", index + 1));
            }
        }
        Some(answers)
    }

    fn pass(&mut self, time: Time) {
        // Names of other tests' items contain a point.
        Stage::pass(self, time, "item not like '%.%'");
    }
}

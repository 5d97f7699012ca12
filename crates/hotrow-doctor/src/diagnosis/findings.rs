//! The main finding: which of the known situations explains what the sessions wait for. Lesser findings are in `side`.

use hotrow_core::normalise::without_values;
use hotrow_core::page;
use hotrow_core::untrusted::{identifier, literal};

use crate::diagnosis::condition;
use crate::diagnosis::load::Class;
use crate::diagnosis::parts::Parts;
use crate::diagnosis::prediction::Prediction;
use crate::diagnosis::rows::{HotRow, Wanted};
use crate::diagnosis::statements::{StatementLoad, verdict};
use crate::recording::RecordedVerdict;

/// Characters of a statement in a finding.
const TEXT_CHARS: usize = 160;
/// Pages with waits, or rows, of a table that counts as small.
const PAGES_OF_SMALL_TABLE: usize = 16;
const ROWS_OF_SMALL_TABLE: i64 = 500;
/// The share of a row beside which no other row counts. Short runs see few rows, so two equal rows can differ by a factor.
const ONE_ROW: f64 = 0.85;
/// Average number of holders at one moment below which all wait for one row.
const ONE_HOLDER: f64 = 1.5;
/// Sessions that have to wait on average before a wait is worth a finding.
const WAITING_MIN: f64 = 0.5;

/// The part of the active sessions that has to wait for a row, if most of the others wait for the lock manager. Each
/// release of a lock sends a crowd there.
const CROWD_MIN: f64 = 0.05;

/// A situation that the doctor recognises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Situation {
    /// One session blocks the others all the time.
    StuckSession,
    /// Many sessions wait for one row.
    HotRow,
    /// Many sessions wait for a few rows.
    HotRows,
    /// Many sessions wait for the rows of one page.
    HotPage,
    /// Many sessions wait for a row whose lock is held by transactions that wait for their clients.
    HotRowInTransactions,
    /// Foreign keys' checks wait for a row that others lock too strongly.
    ForeignKeyLocks,
    /// Sessions wait for many different rows.
    RowLocks,
    /// Sessions wait for a lock that is not a row lock.
    TableLocks,
    /// Workers take rows from a queue with SKIP LOCKED.
    SkipLockedQueue,
    /// Statements read whole tables.
    MissingIndex,
    /// A session or slot keeps vacuum from removing dead rows.
    LongSnapshot,
    /// Commits wait for the WAL.
    Flush,
    /// Statements wait for files.
    Io,
    /// Statements compute, or wait for structures in memory.
    Cpu,
    /// Something beside the sessions' waits.
    Side,
    /// The doctor cannot see enough.
    Blind,
    NothingWrong,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Clients wait because of it.
    Critical,
    /// It can become a problem.
    Warning,
    /// A fact.
    Info,
}

/// Something that is wrong, or a fact to know.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Finding {
    pub kind: Situation,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub text: String,
    /// What to do.
    pub next: String,
}

/// The next step in a situation in which it depends on whether the gateway would help.
fn next_step(kind: Situation, helps: bool) -> Option<&'static str> {
    Some(match (kind, helps) {
        (Situation::HotRowInTransactions, _) => {
            "send BEGIN to COMMIT in one message, or move the update of the row to the end of the transaction, or use autocommit"
        }
        (Situation::HotPage, true) => {
            "send these updates through the gateway; to spread the rows over pages, set a lower fillfactor and run VACUUM FULL"
        }
        (Situation::HotPage, false) => {
            "spread the rows over pages: set a lower fillfactor and run VACUUM FULL"
        }
        (Situation::HotRow | Situation::HotRows | Situation::RowLocks, true) => {
            "send these statements through the gateway: hotrow serve --upstream ..."
        }
        (Situation::HotRow | Situation::HotRows | Situation::RowLocks, false) => {
            "hold the lock for a shorter time: change the row at the end of the transaction. The verdicts below say which statements \
             the gateway would pack"
        }
        (Situation::Flush, true) => {
            "commit several statements together, or send them through the gateway, which does"
        }
        (Situation::Flush, false) => {
            "commit several statements in one transaction, or use a disk with faster flushes"
        }
        _ => return None,
    })
}

/// `3 sessions wait`.
fn wait(sessions: f64) -> String {
    match format!("{:.0}", sessions.max(1.0)).as_str() {
        "1" => "1 session waits".to_owned(),
        number => format!("{number} sessions wait"),
    }
}

impl Parts<'_> {
    /// The main findings, the most important first. At least one.
    pub fn main(&self) -> Vec<Finding> {
        let candidates = [
            self.blind(),
            self.stuck(),
            self.row_locks(),
            self.table_locks(),
            self.skip_locked(),
            self.missing_index(),
            self.long_snapshot(),
            self.resource(),
        ];
        let mut found: Vec<Finding> = candidates.into_iter().flatten().collect();
        // The report says for the first finding whether the gateway would help. No other finding contradicts it.
        let helps = found.first().is_some_and(|first| self.prediction(first.kind).is_help());
        for finding in &mut found {
            if let Some(next) = next_step(finding.kind, helps) {
                next.clone_into(&mut finding.next);
            }
        }
        if found.iter().all(|finding| finding.kind == Situation::Blind) {
            found.push(self.nothing());
        }
        found
    }

    /// What the gateway would give in a situation.
    pub fn prediction(&self, kind: Situation) -> Prediction {
        match kind {
            Situation::StuckSession => {
                Prediction::none("one session blocks the others, and the gateway does not end it")
            }
            Situation::ForeignKeyLocks => Prediction::none(
                "the row is locked more strongly than necessary; the statement has to change",
            ),
            Situation::SkipLockedQueue => Prediction::none(concat!(
                "the statements stay as they are; the hotrow schema's queues are several times as fast (",
                page!("queues.md"),
                ")"
            )),
            Situation::MissingIndex => Prediction::none("a statement that reads a whole table stays slow"),
            Situation::LongSnapshot => Prediction::none("the gateway does not end a snapshot"),
            Situation::Io => Prediction::none("the gateway does not make reading faster"),
            _ => Prediction::of(self.workload, self.hold.map(|hold| hold.per_second)),
        }
    }

    fn blind(&self) -> Option<Finding> {
        let tracks = self.recording.abilities.tracks_activities != "off";
        if tracks && (self.recording.abilities.sees_sessions || self.load.hidden < 0.5) {
            return None;
        }
        let role = &self.recording.abilities.role;
        let (text, next) = if tracks {
            let text = format!(
                "The role {role} cannot see what {:.0} sessions of other roles do.",
                self.load.hidden
            );
            (text, format!("grant pg_monitor to {}", identifier(role)))
        } else {
            let text = "The server does not show what its sessions do: track_activities is off.".to_owned();
            (text, "alter system set track_activities = on; select pg_reload_conf()".to_owned())
        };
        Some(Finding { kind: Situation::Blind, severity: Severity::Warning, text, next })
    }

    fn stuck(&self) -> Option<Finding> {
        let (blocker, blocked) = self.stuck_blocker()?;
        let waiting = blocked.sessions as f64 / blocked.samples.max(1) as f64;
        let Some(pid) = blocker.pid else {
            let prepared = self
                .recording
                .after
                .prepared
                .iter()
                .find(|prepared| Some(&prepared.transaction) == blocker.transaction.as_ref());
            let gid = prepared.map_or_else(|| "?".to_owned(), |prepared| literal(&prepared.gid));
            let age = prepared
                .map_or_else(String::new, |prepared| format!(", which is {:.0} s old", prepared.age_s));
            return Some(Finding {
                kind: Situation::StuckSession,
                severity: Severity::Critical,
                text: format!("{} for the prepared transaction {gid}{age}.", wait(waiting)),
                next: format!("commit prepared {gid}, or rollback prepared {gid}"),
            });
        };
        let last = blocked.last.as_ref();
        let since = |from: Option<i64>| from.map_or(0.0, |from| (blocked.last_us - from).max(0) as f64 / 1e6);
        let age = since(blocker.xact_us);
        let does = match last {
            Some(session) if session.is_idle_in_transaction() => {
                format!("has been idle in its transaction for {:.1} s", since(session.changed_us))
            }
            Some(session) => format!("has run a statement for {:.1} s", since(session.query_us)),
            None => "holds a lock".to_owned(),
        };
        let text = last
            .and_then(|session| session.statement)
            .map(|statement| self.text(statement))
            .unwrap_or_default();
        Some(Finding {
            kind: Situation::StuckSession,
            severity: Severity::Critical,
            text: format!(
                "{} for one session: process {pid} {does}. Its transaction began {age:.1} s ago. Its last statement: {text}",
                wait(waiting)
            ),
            next: format!(
                "select pg_terminate_backend({pid}) ends it and rolls its transaction back; idle_in_transaction_session_timeout prevents it"
            ),
        })
    }

    fn row_locks(&self) -> Option<Finding> {
        let rows = self.rows;
        if self.stuck_blocker().is_some()
            || rows.waiting < WAITING_MIN.max(CROWD_MIN * self.load.active)
            || self.workload.waiting < 0.2 * self.load.active
        {
            return None;
        }
        let foreign = rows.share_of(Wanted::KeyShare);
        if foreign >= 0.5 {
            return Some(self.foreign_keys(foreign));
        }
        let known: Vec<&HotRow> = rows.rows.iter().filter(|row| row.is_known()).collect();
        let strong: Vec<&HotRow> = known.iter().copied().filter(|row| row.share >= 0.15).take(4).collect();
        let together: f64 = strong.iter().map(|row| row.share).sum();
        let small = rows
            .hottest_table()
            .filter(|(table, share, pages)| *share >= 0.5 && self.is_small(*table, *pages));
        let client = self.blocking.doing(Class::Client).unwrap_or(0.0);
        let first = rows.rows.first();
        let one = first.is_some_and(|row| row.share >= ONE_ROW);
        let is_unknown = known.is_empty() && first.is_some();
        let (kind, what) = match (strong.as_slice(), small) {
            // Rows that cannot be told apart have as many holders as there are rows.
            _ if is_unknown && self.blocking.at_once < ONE_HOLDER => {
                (Situation::HotRow, self.row_name(first?))
            }
            _ if is_unknown => (Situation::RowLocks, format!("several rows of {}", first?.table)),
            ([row, ..], _) if one => (Situation::HotRow, self.row_name(row)),
            ([_, _, ..], _) if together >= 0.6 => {
                let names: Vec<String> = strong.iter().map(|row| self.row_name(row)).collect();
                (Situation::HotRows, format!("{} rows: {}", strong.len(), names.join(", ")))
            }
            (_, Some((relation, share, pages))) => {
                let table = self.table_name(relation);
                let rows = known.iter().filter(|row| row.relation == relation).count();
                let rows = if rows == 1 { "one row".to_owned() } else { format!("{rows} rows") };
                let pages = if pages == 1 { "one page".to_owned() } else { format!("{pages} pages") };
                let what =
                    format!("{rows} on {pages} of the table {table} ({:.0} % of the waits)", share * 100.0);
                (Situation::HotPage, what)
            }
            _ => (Situation::RowLocks, format!("rows of which {} were seen", rows.distinct)),
        };
        let is_client = client >= 0.4 && kind != Situation::HotPage;
        let kind = if is_client { Situation::HotRowInTransactions } else { kind };
        let held =
            if is_client { " Transactions hold its lock while they wait for their clients." } else { "" };
        Some(Finding {
            kind,
            severity: Severity::Critical,
            text: format!("{} for {what}.{held}", wait(rows.waiting)),
            next: String::new(),
        })
    }

    fn is_small(&self, table: u32, pages: usize) -> bool {
        let rows = self.recording.after.table(table).and_then(|table| table.live);
        pages <= PAGES_OF_SMALL_TABLE || rows.is_some_and(|rows| rows <= ROWS_OF_SMALL_TABLE)
    }

    fn foreign_keys(&self, share: f64) -> Finding {
        let name = self.rows.rows.first().map_or_else(|| "a row".to_owned(), |row| self.row_name(row));
        Finding {
            kind: Situation::ForeignKeyLocks,
            severity: Severity::Critical,
            text: format!(
                "{} for {name}: {:.0} % of the waits are checks of a foreign key (FOR KEY SHARE), and other transactions lock the \
                 row with FOR UPDATE, delete it or change its key.",
                wait(self.rows.waiting),
                share * 100.0
            ),
            next:
                "lock the row with FOR NO KEY UPDATE instead of FOR UPDATE, and do not assign its key columns"
                    .to_owned(),
        }
    }

    fn table_locks(&self) -> Option<Finding> {
        let waiting = self.load.class(Class::Lock);
        if self.stuck_blocker().is_some() || waiting < WAITING_MIN || waiting < 0.2 * self.load.active {
            return None;
        }
        let waits = self.recording.samples.iter().flat_map(|sample| &sample.locks);
        let relation =
            waits.filter(|lock| !lock.granted && lock.kind == "relation").find_map(|lock| lock.relation);
        let what = relation.map_or_else(
            || "a lock that is not a row's".to_owned(),
            |oid| format!("a lock on the table {}", self.table_name(oid)),
        );
        Some(Finding {
            kind: Situation::TableLocks,
            severity: Severity::Critical,
            text: format!("{} for {what}.", wait(waiting)),
            next: "look at the lock tree below, and run schema changes with a lock_timeout".to_owned(),
        })
    }

    fn skip_locked(&self) -> Option<Finding> {
        let share = self.statements.skip_locked;
        if share < 0.4 || self.load.active < WAITING_MIN {
            return None;
        }
        Some(Finding {
            kind: Situation::SkipLockedQueue,
            severity: Severity::Warning,
            text: format!(
                "{:.0} % of the active sessions take rows from a queue with SKIP LOCKED. Each of them reads past the rows that the \
                 others have locked and past the dead versions of those that are done.",
                share * 100.0
            ),
            next: concat!(
                "take several rows per statement, or use the hotrow schema's queues: hotrow migrate, then ",
                page!("queues.md")
            )
            .to_owned(),
        })
    }

    fn missing_index(&self) -> Option<Finding> {
        let works = self.load.share(Class::Cpu) + self.load.share(Class::Io) + self.load.share(Class::Memory);
        if self.load.active < WAITING_MIN || works < 0.4 {
            return None;
        }
        let seconds = self.throughput.seconds.max(1e-3);
        let per_scan = |table: &&crate::counters::TableCounters| {
            let (scans, scanned) = (table.scans.unwrap_or(0), table.scanned.unwrap_or(0));
            scans > 0 && scanned / scans >= 1_000 && scanned as f64 / seconds >= 100_000.0
        };
        let table = self.throughput.tables.iter().filter(per_scan).max_by_key(|table| table.scanned)?;
        let (scans, scanned) = (table.scans.unwrap_or(0), table.scanned.unwrap_or(0));
        let shape = |load: &StatementLoad| self.recording.statements[load.statement].shape.as_str();
        let is_of_table = |load: &&StatementLoad| {
            shape(load).to_ascii_lowercase().contains(&table.name.to_ascii_lowercase())
        };
        // A statement that the gateway packs finds its row by an index.
        let is_packed =
            |load: &&StatementLoad| verdict(self.recording, load).is_some_and(RecordedVerdict::is_packed);
        let of_table = || self.statements.top.iter().filter(is_of_table);
        let statement = of_table().find(|load| !is_packed(load)).or_else(|| of_table().next());
        let columns: Vec<String> = statement.map(|load| condition::columns(shape(load))).unwrap_or_default();
        let columns = match columns.as_slice() {
            [] => "the columns of the statement's WHERE".to_owned(),
            columns => columns.iter().map(|name| identifier(name)).collect::<Vec<_>>().join(", "),
        };
        let text = statement
            .map_or_else(String::new, |load| format!(" The statement: {}", self.text(load.statement)));
        Some(Finding {
            kind: Situation::MissingIndex,
            severity: Severity::Critical,
            text: format!(
                "Statements read the whole table {}: {:.0} times per second, {} rows each time.{text}",
                table.name,
                scans as f64 / seconds,
                scanned / scans.max(1)
            ),
            next: format!(
                "create index concurrently on {}.{} ({columns})",
                identifier(&table.schema),
                identifier(&table.name)
            ),
        })
    }

    /// A resource that the sessions use or wait for.
    fn resource(&self) -> Option<Finding> {
        if self.load.active < 1.5 {
            return None;
        }
        let (flush, io) = (self.load.share(Class::Flush), self.load.share(Class::Io));
        let finding = |kind, text, next: &str| {
            Some(Finding { kind, severity: Severity::Warning, text, next: next.to_owned() })
        };
        if flush >= 0.4 {
            let text = format!(
                "{:.1} sessions wait until their commits are on disk: {:.0} % of the active ones.{}",
                self.load.class(Class::Flush),
                flush * 100.0,
                if self.rows.waiting < WAITING_MIN { " No row is hot." } else { "" }
            );
            return finding(Situation::Flush, text, "");
        }
        if io >= 0.4 {
            let text = format!(
                "{:.1} sessions wait for files: {:.0} % of the active ones.",
                self.load.class(Class::Io),
                io * 100.0
            );
            return finding(
                Situation::Io,
                text,
                "look at the statements below: raise shared_buffers, or create indexes with which they read less",
            );
        }
        if self.load.share(Class::Cpu) + self.load.share(Class::Memory) >= 0.5 {
            let text = format!(
                "{:.1} sessions compute, or wait for a core or for structures in memory.",
                self.load.class(Class::Cpu) + self.load.class(Class::Memory)
            );
            return finding(
                Situation::Cpu,
                text,
                "look at the statements below: make fewer or faster calls, or add cores",
            );
        }
        None
    }

    fn nothing(&self) -> Finding {
        Finding {
            kind: Situation::NothingWrong,
            severity: Severity::Info,
            text: format!(
                "Nothing is wrong: {:.1} sessions are active on average, and few of them wait.",
                self.load.active
            ),
            next: "run the doctor while the problem is there".to_owned(),
        }
    }

    /// A statement's text for a report.
    pub fn text(&self, statement: usize) -> String {
        let shape = self.recording.statements.get(statement).map_or("", |statement| statement.shape.as_str());
        without_values(shape, TEXT_CHARS)
    }

    /// A table's name for a report.
    pub fn table_name(&self, relation: u32) -> String {
        let table = self.recording.tables.iter().find(|table| table.oid == relation);
        table.map_or_else(|| format!("with OID {relation}"), |table| table.full_name())
    }

    /// A row's name for a report: `item (id = 7)`.
    pub fn row_name(&self, row: &HotRow) -> String {
        let value = |value: &Option<String>| match value {
            Some(value) if self.show_keys => value.clone(),
            _ => "?".to_owned(),
        };
        let key: Vec<String> =
            row.key.iter().map(|(column, known)| format!("{column} = {}", value(known))).collect();
        if row.is_known() {
            return format!("{} ({})", row.table, key.join(", "));
        }
        format!("a row of {} on page {}", row.table, row.page)
    }
}

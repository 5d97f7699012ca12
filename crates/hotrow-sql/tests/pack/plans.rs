//! Counts the rows that calls read, for statistics that are missing, too small, too large or outdated. A call must read only
//! its own rows. Time is not measured. The tests of each area define the calls.

use crate::server::Database;

/// The calls of one area of the hotrow schema, and their set-up.
pub struct Plans<'a> {
    pub area: &'a str,
    /// Calls each function often enough to make its plan the cached one, for rows outside the crowd.
    pub planned_on_nothing: &'a str,
    /// Many rows.
    pub crowd: &'a str,
    /// Calls, and the most rows that each may read: a few for each row that it needs.
    pub calls: &'a [(&'a str, i64)],
    /// A query about the effects of the calls and its result, which proves that the calls did something.
    pub left: (&'a str, &'a str),
}

const STATISTICS: [&str; 4] = [
    "select 'nothing yet'",
    "update pg_class set relpages = 1, reltuples = 1 where relnamespace = 'hotrow'::regnamespace and relkind = 'r'",
    "update pg_class set relpages = 1000, reltuples = 100000000 where relnamespace = 'hotrow'::regnamespace and relkind = 'r'",
    "analyze",
];

impl Plans<'_> {
    pub fn check(&self) {
        let is_called = |name: &str| {
            self.calls
                .iter()
                .any(|(call, _)| call.strip_prefix(name).is_some_and(|rest| rest.starts_with('(')))
        };
        // A function with a batch function is a batch of one.
        let of_area = hotrow_sql::functions().iter().filter(|function| function.area == self.area);
        let names = of_area.map(|function| &function.name);
        let forgotten: Vec<_> = names.filter(|name| !is_called(name)).collect();
        assert!(
            forgotten.is_empty(),
            "no call of these functions is checked: {forgotten:?}; add them to CALLS in \
             crates/hotrow-sql/tests/pack/{}_plans.rs",
            self.area.trim_end_matches('s')
        );
        let mut wrong = Vec::new();
        for statistics in STATISTICS {
            let database = Database::migrated();
            let (asking, other) = (database.session("postgres"), database.session("postgres"));
            if statistics == "analyze" {
                other.run(self.planned_on_nothing);
            }
            other.run(statistics);
            asking.run(self.planned_on_nothing);
            other.run(self.crowd);
            let read = || -> i64 {
                let rows = asking.value(
                    "select sum(seq_tup_read + idx_tup_fetch) from pg_stat_xact_user_tables where schemaname = 'hotrow'",
                );
                rows.parse().unwrap()
            };
            for (call, most) in self.calls {
                // All in one transaction, because within it the server adds up its counts and reports nothing.
                asking.run("begin");
                let before = read();
                asking.run(&format!("select * from hotrow.{call}"));
                let rows = read() - before;
                asking.run("commit");
                if rows > *most {
                    wrong.push(format!("{call} reads {rows} rows after {statistics:?}, {most} at most"));
                }
            }
            let (question, answer) = self.left;
            assert_eq!(asking.value(question), answer, "{question}");
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// If a queue has millions of orders, the planner estimates a cost at which PostgreSQL would compile the call with JIT each
/// time: 60 ms instead of 0.6 ms.
#[test]
fn no_call_is_compiled() {
    let owner = Database::migrated().session("postgres");
    let compiled = "select coalesce(string_agg(p.oid::regprocedure::text, ', '), '') from pg_proc p
        where p.pronamespace = 'hotrow'::regnamespace and p.prosecdef and array_position(p.proconfig, 'jit=off') is null";
    assert_eq!(owner.value(compiled), "", "add `set jit = off` to these functions in crates/hotrow-sql/sql/");
}

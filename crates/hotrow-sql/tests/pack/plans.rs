//! Calls read the rows that they are about and no others, whatever the planner believes of their tables: nothing yet, that
//! they are tiny, that they are huge, what they were when they were short. Rows are counted, time is not. Never which calls
//! there are: that is each part's own test.

use crate::server::Database;

/// Calls of a part of the pack, and what they meet.
pub struct Plans<'a> {
    /// Each function, about none of the crowd, so often that its plans are those which are kept.
    pub planned_on_nothing: &'a str,
    /// Many rows.
    pub crowd: &'a str,
    /// Calls, and how many rows they may read at most: some for each row that they are about.
    pub calls: &'a [(&'a str, i64)],
    /// What the calls have left behind, so that none was an empty one.
    pub left: (&'a str, &'a str),
}

const BELIEFS: [&str; 4] = [
    "select 'nothing yet'",
    "update pg_class set relpages = 1, reltuples = 1 where relnamespace = 'hotrow'::regnamespace and relkind = 'r'",
    "update pg_class set relpages = 1000, reltuples = 100000000 where relnamespace = 'hotrow'::regnamespace and relkind = 'r'",
    "analyze",
];

impl Plans<'_> {
    pub fn check(&self) {
        let mut wrong = Vec::new();
        for believed in BELIEFS {
            let database = Database::migrated();
            let (asking, other) = (database.session("postgres"), database.session("postgres"));
            if believed == "analyze" {
                other.run(self.planned_on_nothing);
            }
            other.run(believed);
            asking.run(self.planned_on_nothing);
            other.run(self.crowd);
            let read = || -> i64 {
                let rows = asking.value(
                    "select sum(seq_tup_read + idx_tup_fetch) from pg_stat_xact_user_tables where schemaname = 'hotrow'",
                );
                rows.parse().unwrap()
            };
            for (call, most) in self.calls {
                // In one transaction, within which the server adds up what it has counted and reports nothing.
                asking.run("begin");
                let before = read();
                asking.run(&format!("select * from hotrow.{call}"));
                let rows = read() - before;
                asking.run("commit");
                if rows > *most {
                    wrong.push(format!("{call} reads {rows} rows after {believed:?}, {most} at most"));
                }
            }
            let (question, answer) = self.left;
            assert_eq!(asking.value(question), answer, "{question}");
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// Where a queue has millions of orders the planner believes of a call what would make PostgreSQL compile it, each time
/// anew: 60 ms instead of 0.6.
#[test]
fn no_call_is_compiled() {
    let owner = Database::migrated().session("postgres");
    let compiled = "select coalesce(string_agg(p.oid::regprocedure::text, ', '), '') from pg_proc p
        where p.pronamespace = 'hotrow'::regnamespace and p.prosecdef and array_position(p.proconfig, 'jit=off') is null";
    assert_eq!(owner.value(compiled), "");
}

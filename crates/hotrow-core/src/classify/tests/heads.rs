//! Tests statements whose rows a query with LIMIT finds: those of queues, as people and libraries write them.

use super::*;
use crate::limits;

/// The queue of one of the examples.
fn jobs() -> TableFacts {
    let columns = [
        ("id", "bigint"),
        ("queue", "text"),
        ("state", "text"),
        ("priority", "integer"),
        ("attempt", "integer"),
        ("run_at", "timestamptz"),
        ("locked_by", "text"),
    ];
    table(500, "jobs", &columns, vec![index("jobs_pkey", true, &["id"])])
}

/// The verdict, and whether a query finds the rows.
fn of(sql: &str) -> String {
    let Analysis::Candidate(candidate) = analyse(sql) else { return verdict(sql) };
    let mut facts = facts_of(&candidate);
    add_jobs(&mut facts, &candidate);
    let decision = decide(&candidate, &facts, &[]);
    let Decision::Packed(packing) = &decision else { return describe(&decision) };
    let limits = packing.parts().filter_map(|part| part.takes.as_deref()).map(source).collect::<Vec<_>>();
    format!("up to {} {}", limits.join(","), describe(&decision))
}

fn add_jobs(facts: &mut Facts, candidate: &Candidate) {
    if candidate.table.as_ref().is_some_and(|table| table.name == "jobs") {
        facts.table = Some(jobs());
    }
    for (facts, common) in facts.with.iter_mut().zip(&candidate.with) {
        add_jobs(facts, &common.statement);
    }
}

fn check(table: &[(&str, &str)]) {
    for (sql, expected) in table {
        assert_eq!(of(sql), *expected, "{sql}");
    }
}

fn check_not(table: &[(&str, &str)]) {
    for (sql, reason) in table {
        let verdict = of(sql);
        assert!(verdict.starts_with("pass: ") && verdict.contains(reason), "{sql}: {verdict}, not {reason}");
    }
}

#[test]
fn a_query_with_limit_finds_the_rows() {
    check(&[
        (
            "update jobs set state = 'running' where id = (select id from jobs where state = 'new' order by id limit 1 for update skip locked) returning *",
            "up to 1 write state=new, rows",
        ),
        (
            "update jobs set state = 'running' where id in (select j.id from jobs j where j.state = $1 and j.run_at <= now() \
             order by j.priority desc, j.id limit 10 for update of j skip locked)",
            "up to 10 write state=$1",
        ),
        (
            "delete from jobs where id = any(select id from jobs order by id limit $1 for update nowait) returning id",
            "up to $1 write , rows",
        ),
        (
            "delete from jobs where id = any(array(select id from jobs where queue = $1 order by id for no key update skip locked limit $2))",
            "up to $2 write queue=$1",
        ),
        (
            "delete from jobs where id = any(array(select id from jobs where queue = $1 order by id limit $2 for no key update skip locked))",
            "up to $2 write queue=$1",
        ),
        (
            "delete from jobs where ctid = (select ctid from jobs where pg_try_advisory_xact_lock(id) order by id limit 1) returning id",
            "up to 1 write , rows",
        ),
        (
            "delete from jobs j where j.ctid in (select q.ctid from jobs as q order by q.id fetch first 3 rows only for update skip locked)",
            "up to 3 write ",
        ),
        (
            "update jobs set attempt = attempt + 1 where queue = $1 and state = 'new' and id = (select id from jobs limit 1 for update skip locked)",
            "up to 1 write ",
        ),
        (
            "delete from jobs where id = (select id from jobs where queue in ('a', 'b') and state = 'new' order by random() limit 1 for update skip locked)",
            "up to 1 write state=new",
        ),
    ]);
}

#[test]
fn the_query_can_stand_in_from_using_and_with() {
    check(&[
        (
            "update jobs set state = 'running', attempt = jobs.attempt + 1 from (select id from jobs where state = 'new' \
             order by id limit 1 for update skip locked) as next where jobs.id = next.id returning jobs.*",
            "up to 1 write state=new, rows",
        ),
        (
            "delete from jobs using (select id, attempt from jobs where queue = $1 order by id limit 5 for share skip locked) n \
             where n.id = jobs.id and n.attempt > 3",
            "up to 5 write queue=$1",
        ),
        (
            "with next as (select id from jobs where state = 'new' order by id limit 1 for update skip locked) \
             update jobs set state = 'running' from next where jobs.id = next.id returning jobs.id, next.id",
            "up to 1 write state=new, rows",
        ),
        (
            "with next as materialized (select * from jobs where queue = $1 limit 1 for update skip locked) \
             update jobs j set attempt = next.attempt + 1 from next where next.ctid = j.ctid",
            "pass: ctid is not a column of the table",
        ),
        (
            "with next as materialized (select * from jobs where queue = $1 limit 1 for update skip locked) \
             update jobs j set attempt = n.attempt + 1 from next n where n.id = j.id",
            "up to 1 write queue=$1",
        ),
        (
            "with next as (select id from jobs limit 1 for update skip locked) \
             delete from jobs where id in (select id from next) returning id",
            "up to 1 write , rows",
        ),
        (
            "with next as (select id from jobs where queue = $1 limit 1 for update skip locked), \
             taken as (update jobs set state = 'running' from next where jobs.id = next.id returning jobs.id, jobs.queue) \
             insert into log select now(), queue from taken",
            "up to 1 write queue=$1 + no key",
        ),
    ]);
    // The last part of an article's statement moves what the first one takes.
    check(&[(
        "with tmp as (delete from jobs where ctid = (select ctid from jobs where pg_try_advisory_xact_lock(id) order by id limit 1) \
         returning queue, run_at) insert into log (message, at) select tmp.queue, now() from tmp",
        "up to 1 write  + no key",
    )]);
}

#[test]
fn every_name_of_the_query_is_judged() {
    check_not(&[
        (
            "delete from jobs where id = (select id from jobs where secret(id) limit 1 for update skip locked)",
            "secret is not known",
        ),
        (
            "delete from jobs where id = (select id from jobs order by secret(id) limit 1 for update skip locked)",
            "secret is not known",
        ),
        (
            "delete from jobs where id = (select id from jobs where id::mood = $1 limit 1 for update skip locked)",
            "cast to mood",
        ),
        (
            "delete from jobs where id = (select id from jobs where id @@@ 1 limit 1 for update skip locked)",
            "",
        ),
        (
            "delete from jobs where id = (select id from jobs where max(id) > 1 limit 1 for update skip locked)",
            "more than one row",
        ),
        (
            "delete from jobs where id = (select id from jobs where xmin = $1 limit 1 for update skip locked)",
            "system column",
        ),
        (
            "delete from jobs where id = (select nowhere from jobs limit 1 for update skip locked)",
            "nowhere is not a column",
        ),
        (
            "delete from jobs where id = (select id from jobs where pg_sleep(1) is null limit 1 for update skip locked)",
            "waits",
        ),
        (
            "delete from jobs where id = (select id from jobs where pg_advisory_xact_lock(1) is null limit 1 for update skip locked)",
            "advisory lock",
        ),
        (
            "update jobs set state = n.secret from (select id from jobs limit 1 for update skip locked) n where n.id = jobs.id",
            "secret is not a column that",
        ),
        (
            "update jobs set state = n.secret from (select * from jobs limit 1 for update skip locked) n where n.id = jobs.id",
            "secret is not a column",
        ),
    ]);
}

/// Statements that are passed through, with a part of the reason.
const OTHERS: &[(&str, &str)] = &[
    ("delete from jobs where id = (select id from jobs)", "a subquery"),
    ("delete from jobs where id in (select id from jobs order by id offset 1)", "a subquery"),
    (
        "delete from jobs where id in (select id from jobs limit 1 offset 1 for update skip locked)",
        "a subquery",
    ),
    (
        "delete from jobs where id in (select id from inv limit 1 for update skip locked)",
        "a subquery on another table",
    ),
    (
        "delete from jobs where id in (select id from public.jobs limit 1 for update skip locked)",
        "a subquery on another table",
    ),
    ("delete from jobs where id not in (select id from jobs limit 1 for update skip locked)", "a subquery"),
    ("delete from jobs where id > (select id from jobs limit 1 for update skip locked)", "a subquery"),
    (
        "delete from jobs where id = (select id from jobs limit 1 for update skip locked) or id = 1",
        "a subquery",
    ),
    (
        "delete from jobs where lower(queue) = (select queue from jobs limit 1 for update skip locked)",
        "a subquery",
    ),
    ("delete from jobs where id = (select id, queue from jobs limit 1 for update skip locked)", "a subquery"),
    ("delete from jobs where id = (select id + 1 from jobs limit 1 for update skip locked)", "a subquery"),
    ("delete from jobs where id = (select distinct id from jobs limit 1 for update skip locked)", "DISTINCT"),
    (
        "delete from jobs where id = (select id from jobs group by id limit 1 for update skip locked)",
        "GROUP BY",
    ),
    (
        "delete from jobs where id = (select id from jobs union select 1 limit 1 for update skip locked)",
        "UNION",
    ),
    (
        "delete from jobs where id = (select a.id from jobs a, jobs b limit 1 for update skip locked)",
        "a subquery",
    ),
    (
        "delete from jobs where id = (select a.id from jobs a join jobs b on true limit 1 for update skip locked)",
        "a join",
    ),
    (
        "delete from jobs where id = (select id from jobs limit 1 for update skip locked) and id = (select id from jobs limit 1 for update skip locked)",
        "a second one",
    ),
    (
        "delete from jobs where queue = (select queue from jobs limit 1 for update skip locked)",
        "no unique index",
    ),
    (
        "delete from jobs where id = (select j.id from jobs where jobs.id = j.id limit 1 for update skip locked)",
        "does not belong",
    ),
    (
        "delete from jobs j where id = (select id from jobs where j.id = id limit 1 for update skip locked)",
        "does not belong",
    ),
    (
        "update jobs set state = (select state from jobs limit 1 for update skip locked) where id = 1",
        "a subquery",
    ),
    (
        "update jobs set state = '' from (select id from jobs limit 1 for update skip locked) n",
        "UPDATE with FROM",
    ),
    (
        "update jobs set state = '' from (select id from jobs limit 1 for update skip locked) n where n.id > 1",
        "UPDATE with FROM",
    ),
    (
        "update jobs set state = '' from (select id from jobs limit 1 for update skip locked) n(x) where x = jobs.id",
        "UPDATE with FROM",
    ),
    (
        "update jobs set state = '' from lateral (select id from jobs limit 1 for update skip locked) n where n.id = jobs.id",
        "UPDATE with FROM",
    ),
    (
        "update jobs set state = '' from (select id from jobs limit 1 for update skip locked) n where n.id = jobs.id returning *",
        "unusual",
    ),
    (
        "update jobs set state = '' from (select id from jobs limit 1 for update skip locked) n where n.id = jobs.id returning n.*",
        "does not belong",
    ),
    ("update jobs set state = '' from inv where inv.id = jobs.id", "UPDATE with FROM"),
    ("delete from jobs using inv where inv.id = jobs.id limit 1", ""),
    // It locks rows and does not change them.
    ("select id from jobs order by id limit 1 for update skip locked", ""),
    ("with next as (select id from jobs limit 1 for update skip locked) select id from next", "row lock"),
    (
        "with next as (select id from jobs limit 1 for update skip locked), x as (delete from inv where id = 1) select id from next",
        "row lock",
    ),
    (
        "with next as (select id from jobs limit 1 for update), a as (update jobs set state = '' from next where next.id = jobs.id) \
             select id from next",
        "no WHERE",
    ),
    (
        "with next(x) as (select id from jobs limit 1 for update) update jobs set state = '' from next where next.x = jobs.id",
        "",
    ),
    // The query reads the rows of a statement in WITH.
    (
        "with jobs as (select 1 as id) delete from jobs where id = (select id from jobs limit 1 for update skip locked)",
        "a subquery",
    ),
    (
        "with a as (update inv set sold = 0 where id = 1 returning id), jobs as (select 1 as id) \
             delete from jobs where id = (select id from jobs limit 1 for update skip locked)",
        "a subquery",
    ),
];

#[test]
fn other_queries_are_passed_through() {
    check_not(OTHERS);
}

#[test]
fn a_query_that_waits_for_locked_rows_is_passed_through() {
    let waits = "waits for locked ones";
    check_not(&[
        ("delete from jobs where id = (select id from jobs order by id limit 1)", waits),
        ("delete from jobs where id = (select id from jobs order by id limit 1 for update)", waits),
        (
            "update jobs set state = '' from (select id from jobs limit 1 for share) n where n.id = jobs.id",
            waits,
        ),
        (
            "delete from jobs where id = (select id from jobs where pg_advisory_xact_lock(id) is null limit 1)",
            waits,
        ),
    ]);
    let remedy = Reason::Unsupported("a query for its rows that waits for locked ones").remedy();
    assert!(remedy.is_some_and(|remedy| remedy.contains("SKIP LOCKED")));
}

#[test]
fn the_number_of_rows_is_bounded() {
    let of = |limit: &str| {
        of(&format!(
            "delete from jobs where id in (select id from jobs limit {limit} for update skip locked)"
        ))
    };
    assert_eq!(of(&limits::UNIT_ROWS_MAX.to_string()), "up to 100 write ");
    assert_eq!(of("0"), "up to 0 write ");
    assert_eq!(of("$1::bigint"), "up to $1 write ");
    assert_eq!(of("101"), "pass: more than 100 rows");
    for other in ["1.5", "-1", "null", "all", "1 + 1"] {
        assert!(of(other).starts_with("pass: "), "{other}");
    }
    // The condition is one of the query's rows, and the statement could change all rows.
    check_not(&[(
        "update jobs set state = '' from (select id, attempt from jobs order by id limit 1 for update skip locked) next \
         where next.id = 1 and jobs.attempt = next.attempt",
        "no unique index",
    )]);
}

#[test]
fn a_list_that_unnest_returns_is_an_array() {
    check_exactly(&[
        ("delete from inv where id in (select unnest($1))", "write id=any $1"),
        ("update inv set stock = 0 where id in (select unnest($1::int[])) and sold > 1", "write id=any $1"),
        ("delete from inv where id = any (select pg_catalog.unnest($1::int[]))", "write id=any $1"),
        ("delete from inv where id in (select unnest(array[1, $2]))", "write id=(1|$2)"),
    ]);
    check_passed(&[
        ("delete from inv where id in (select unnest($1) limit 1 for update skip locked)", "a subquery"),
        ("delete from inv where id in (select my.unnest($1))", "a subquery"),
        ("delete from inv where id in (select unnest($1, $2))", "a subquery"),
        ("delete from inv where id in (select unnest(secret($1))) and id = 1", "secret is not known"),
        ("delete from inv where id = 1 returning unnest(array[1])", "more than one row"),
        ("select * from inv where id in (select unnest($1))", "a subquery"),
    ]);
    let own = namesakes::function("public", "unnest", 'i');
    let verdict =
        verdict_with("delete from inv where id in (select unnest($1))", |facts| facts.functions.push(own));
    assert!(verdict.contains("unnest is user-defined"), "{verdict}");
}

#[test]
fn first_rows_of_views_and_of_distributed_tables_are_passed_through() {
    let sql = "delete from inv where id = (select id from inv order by id limit 1 for update skip locked)";
    assert_eq!(of(sql), "up to 1 write ");
    let view = views::view(700, "shown", &["id"], "select id from inv");
    let verdict = verdict_with(sql, |facts| facts.table.as_mut().unwrap().views.push(view));
    assert!(verdict.contains("shown is a view whose first rows"), "{verdict}");
}

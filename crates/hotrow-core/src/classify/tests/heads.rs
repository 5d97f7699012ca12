//! Tests statements whose rows a query with LIMIT finds: those of queues, as people and libraries write them.

use super::*;

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

/// The verdict, with which rows the statement takes.
fn of(sql: &str) -> String {
    let Analysis::Candidate(candidate) = analyse(sql) else { return verdict(sql) };
    let mut facts = facts_of(&candidate);
    add_jobs(&mut facts, &candidate);
    let decision = decide(&candidate, &facts, &[]);
    let Decision::Packed(packing) = &decision else { return describe(&decision) };
    let takes: Vec<&str> = packing
        .parts()
        .filter_map(|part| part.takes)
        .map(|takes| match takes {
            Takes::First => "first",
            Takes::Unlocked => "unlocked",
        })
        .collect();
    format!("{} {}", takes.join(" "), describe(&decision))
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
            "update jobs set state = 'running' where id = (select id from jobs where state = 'new' order by id limit 1) returning *",
            "first write state=new, rows",
        ),
        (
            "update jobs set state = 'running' where id in (select j.id from jobs j where j.state = $1 and j.run_at <= now() \
             order by j.priority desc, j.id limit 10 for update of j skip locked)",
            "unlocked write state=$1",
        ),
        (
            "delete from jobs where id = any(select id from jobs order by id limit $1 for update nowait) returning id",
            "unlocked write , rows",
        ),
        (
            "delete from jobs where id = any(array(select id from jobs where queue = $1 order by id for no key update skip locked limit $2))",
            "unlocked write queue=$1",
        ),
        (
            "delete from jobs where id = any(array(select id from jobs where queue = $1 order by id limit $2 for no key update skip locked))",
            "unlocked write queue=$1",
        ),
        (
            "delete from jobs where ctid = (select ctid from jobs where pg_try_advisory_xact_lock(id) order by id limit 1) returning id",
            "unlocked write , rows",
        ),
        (
            "delete from jobs j where j.ctid in (select q.ctid from jobs as q order by q.id fetch first 3 rows only)",
            "first write ",
        ),
        (
            "update jobs set attempt = attempt + 1 where queue = $1 and state = 'new' and id = (select id from jobs limit 1)",
            "first write ",
        ),
        (
            "delete from jobs where id = (select id from jobs where queue in ('a', 'b') and state = 'new' order by random() limit 1)",
            "first write state=new",
        ),
    ]);
}

#[test]
fn the_query_can_stand_in_from_using_and_with() {
    check(&[
        (
            "update jobs set state = 'running', attempt = jobs.attempt + 1 from (select id from jobs where state = 'new' \
             order by id limit 1 for update skip locked) as next where jobs.id = next.id returning jobs.*",
            "unlocked write state=new, rows",
        ),
        (
            "delete from jobs using (select id, attempt from jobs where queue = $1 order by id limit 5 for share skip locked) n \
             where n.id = jobs.id and n.attempt > 3",
            "unlocked write queue=$1",
        ),
        (
            "with next as (select id from jobs where state = 'new' order by id limit 1 for update skip locked) \
             update jobs set state = 'running' from next where jobs.id = next.id returning jobs.id, next.id",
            "unlocked write state=new, rows",
        ),
        (
            "with next as materialized (select * from jobs where queue = $1 limit 1) \
             update jobs j set attempt = next.attempt + 1 from next where next.ctid = j.ctid",
            "pass: ctid is not a column of the table",
        ),
        (
            "with next as materialized (select * from jobs where queue = $1 limit 1) \
             update jobs j set attempt = n.attempt + 1 from next n where n.id = j.id",
            "first write queue=$1",
        ),
        (
            "with next as (select id from jobs limit 1 for update skip locked) \
             delete from jobs where id in (select id from next) returning id",
            "unlocked write , rows",
        ),
        (
            "with next as (select id from jobs where queue = $1 limit 1 for update skip locked), \
             taken as (update jobs set state = 'running' from next where jobs.id = next.id returning jobs.id, jobs.queue) \
             insert into log select now(), queue from taken",
            "unlocked write queue=$1 + no key",
        ),
    ]);
    // The last part of an article's statement moves what the first one takes.
    check(&[(
        "with tmp as (delete from jobs where ctid = (select ctid from jobs where pg_try_advisory_xact_lock(id) order by id limit 1) \
         returning queue, run_at) insert into log (message, at) select tmp.queue, now() from tmp",
        "unlocked write  + no key",
    )]);
}

#[test]
fn every_name_of_the_query_is_judged() {
    check_not(&[
        ("delete from jobs where id = (select id from jobs where secret(id) limit 1)", "secret is not known"),
        (
            "delete from jobs where id = (select id from jobs order by secret(id) limit 1)",
            "secret is not known",
        ),
        ("delete from jobs where id = (select id from jobs where id::mood = $1 limit 1)", "cast to mood"),
        ("delete from jobs where id = (select id from jobs where id @@@ 1 limit 1)", ""),
        ("delete from jobs where id = (select id from jobs where max(id) > 1 limit 1)", "more than one row"),
        ("delete from jobs where id = (select id from jobs where xmin = $1 limit 1)", "system column"),
        ("delete from jobs where id = (select nowhere from jobs limit 1)", "nowhere is not a column"),
        ("delete from jobs where id = (select id from jobs where pg_sleep(1) is null limit 1)", "waits"),
        (
            "delete from jobs where id = (select id from jobs where pg_advisory_xact_lock(1) is null limit 1)",
            "advisory lock",
        ),
        (
            "update jobs set state = n.secret from (select id from jobs limit 1) n where n.id = jobs.id",
            "secret is not a column that",
        ),
        (
            "update jobs set state = n.secret from (select * from jobs limit 1) n where n.id = jobs.id",
            "secret is not a column",
        ),
    ]);
}

#[test]
fn other_queries_are_passed_through() {
    check_not(&[
        ("delete from jobs where id = (select id from jobs)", "a subquery"),
        ("delete from jobs where id in (select id from jobs order by id offset 1)", "a subquery"),
        ("delete from jobs where id in (select id from jobs limit 1 offset 1)", "a subquery"),
        ("delete from jobs where id in (select id from inv limit 1)", "a subquery on another table"),
        ("delete from jobs where id in (select id from public.jobs limit 1)", "a subquery on another table"),
        ("delete from jobs where id not in (select id from jobs limit 1)", "a subquery"),
        ("delete from jobs where id > (select id from jobs limit 1)", "a subquery"),
        ("delete from jobs where id = (select id from jobs limit 1) or id = 1", "a subquery"),
        ("delete from jobs where lower(queue) = (select queue from jobs limit 1)", "a subquery"),
        ("delete from jobs where id = (select id, queue from jobs limit 1)", "a subquery"),
        ("delete from jobs where id = (select id + 1 from jobs limit 1)", "a subquery"),
        ("delete from jobs where id = (select distinct id from jobs limit 1)", "DISTINCT"),
        ("delete from jobs where id = (select id from jobs group by id limit 1)", "GROUP BY"),
        ("delete from jobs where id = (select id from jobs union select 1 limit 1)", "UNION"),
        ("delete from jobs where id = (select a.id from jobs a, jobs b limit 1)", "a subquery"),
        ("delete from jobs where id = (select a.id from jobs a join jobs b on true limit 1)", "a join"),
        (
            "delete from jobs where id = (select id from jobs limit 1) and id = (select id from jobs limit 1)",
            "a second one",
        ),
        ("delete from jobs where queue = (select queue from jobs limit 1)", "no unique index"),
        (
            "delete from jobs where id = (select j.id from jobs where jobs.id = j.id limit 1)",
            "does not belong",
        ),
        ("delete from jobs j where id = (select id from jobs where j.id = id limit 1)", "does not belong"),
        ("update jobs set state = (select state from jobs limit 1) where id = 1", "a subquery"),
        ("update jobs set state = '' from (select id from jobs limit 1) n", "UPDATE with FROM"),
        (
            "update jobs set state = '' from (select id from jobs limit 1) n where n.id > 1",
            "UPDATE with FROM",
        ),
        (
            "update jobs set state = '' from (select id from jobs limit 1) n(x) where x = jobs.id",
            "UPDATE with FROM",
        ),
        (
            "update jobs set state = '' from lateral (select id from jobs limit 1) n where n.id = jobs.id",
            "UPDATE with FROM",
        ),
        (
            "update jobs set state = '' from (select id from jobs limit 1) n where n.id = jobs.id returning *",
            "unusual",
        ),
        (
            "update jobs set state = '' from (select id from jobs limit 1) n where n.id = jobs.id returning n.*",
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
            "with jobs as (select 1 as id) delete from jobs where id = (select id from jobs limit 1)",
            "a subquery",
        ),
        (
            "with a as (update inv set sold = 0 where id = 1 returning id), jobs as (select 1 as id) \
             delete from jobs where id = (select id from jobs limit 1)",
            "a subquery",
        ),
    ]);
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
        ("delete from inv where id in (select unnest($1) limit 1)", "a subquery"),
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
    let sql = "delete from inv where id = (select id from inv order by id limit 1)";
    assert_eq!(verdict(sql), "write ");
    let view = views::view(700, "shown", &["id"], "select id from inv");
    let verdict = verdict_with(sql, |facts| facts.table.as_mut().unwrap().views.push(view));
    assert!(verdict.contains("shown is a view whose first rows"), "{verdict}");
}

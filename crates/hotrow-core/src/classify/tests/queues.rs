//! Tests the statements with which job queues of other projects take and complete jobs: packed, or passed through for a reason.
//! They have the form that the libraries send, with the columns that matter here.

use super::*;

/// A table of jobs: its schema, name, primary key and columns.
type Jobs = (&'static str, &'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

/// The tables of the libraries.
const TABLES: &[Jobs] = &[
    (
        "public",
        "river_job",
        &["id"],
        &[
            ("id", "bigint"),
            ("state", "text"),
            ("queue", "text"),
            ("priority", "integer"),
            ("attempt", "integer"),
            ("attempted_by", "text"),
            ("attempted_at", "timestamptz"),
            ("scheduled_at", "timestamptz"),
        ],
    ),
    (
        "pgboss",
        "job",
        &["name", "id"],
        &[
            ("id", "uuid"),
            ("name", "text"),
            ("state", "text"),
            ("priority", "integer"),
            ("retry_count", "integer"),
            ("output", "jsonb"),
            ("created_on", "timestamptz"),
            ("start_after", "timestamptz"),
            ("started_on", "timestamptz"),
            ("completed_on", "timestamptz"),
        ],
    ),
    (
        "public",
        "oban_jobs",
        &["id"],
        &[
            ("id", "bigint"),
            ("state", "text"),
            ("queue", "text"),
            ("priority", "integer"),
            ("attempt", "integer"),
            ("max_attempts", "integer"),
            ("attempted_by", "text"),
            ("attempted_at", "timestamptz"),
            ("scheduled_at", "timestamptz"),
            ("completed_at", "timestamptz"),
        ],
    ),
    (
        "public",
        "task_result",
        &["id"],
        &[
            ("id", "uuid"),
            ("status", "text"),
            ("queue_name", "text"),
            ("priority", "integer"),
            ("run_after", "timestamptz"),
        ],
    ),
    (
        "public",
        "solid_queue_ready_executions",
        &["id"],
        &[("id", "bigint"), ("job_id", "bigint"), ("queue_name", "text"), ("priority", "integer")],
    ),
    (
        "graphile_worker",
        "_private_jobs",
        &["id"],
        &[("id", "bigint"), ("locked_by", "text"), ("attempts", "integer")],
    ),
];

fn tables() -> Vec<TableFacts> {
    let make = |(schema, name, key, columns): &Jobs| TableFacts {
        schema: (*schema).to_owned(),
        ..table(600, name, columns, vec![index("key", true, key)])
    };
    TABLES.iter().map(make).collect()
}

fn verdict_of(sql: &str) -> String {
    let facts = |candidate: &Candidate| {
        let name = candidate.table.as_ref()?;
        tables().into_iter().find(|table| table.name == name.name)
    };
    let decision = match analyse(sql) {
        Analysis::Candidate(candidate) => {
            let with = candidate
                .with
                .iter()
                .map(|common| Facts { table: facts(&common.statement), ..Facts::default() });
            let facts = Facts { table: facts(&candidate), with: with.collect(), ..Facts::default() };
            decide(&candidate, &facts, &[])
        }
        Analysis::Pass(pass) => return format!("pass: {}", pass.reason),
        other => return format!("{other:?}"),
    };
    describe(&decision)
}

#[test]
fn river() {
    let take = "with locked_jobs as (select * from river_job where state = 'available' and queue = $1::text \
        and scheduled_at <= coalesce($2::timestamptz, now()) order by priority asc, scheduled_at asc, id asc limit $3::integer \
        for update skip locked) \
        update river_job set state = 'running', attempt = river_job.attempt + 1, attempted_at = now(), attempted_by = $4::text \
        from locked_jobs where river_job.id = locked_jobs.id returning river_job.id, river_job.state, river_job.attempt";
    assert_eq!(verdict_of(take), "write state=available,queue=$1, rows");
    let complete_many = "with job_input as (select unnest($1::bigint[]) as id), \
        job_to_update as (select river_job.id from river_job join job_input on river_job.id = job_input.id for update), \
        updated_job as (update river_job set state = 'completed' from job_to_update where river_job.id = job_to_update.id \
        returning river_job.*) select * from river_job where id in (select id from job_input) union select * from updated_job";
    assert!(verdict_of(complete_many).starts_with("pass: "), "{}", verdict_of(complete_many));
}

#[test]
fn pg_boss() {
    let take = "with next as (select id from pgboss.job where name = $1 and state < 'active' and start_after < now() \
        order by priority desc, created_on, id limit $2 for update skip locked) \
        update pgboss.job j set state = 'active', started_on = now(), \
        retry_count = case when started_on is not null then retry_count + 1 else retry_count end \
        from next where name = $1 and j.id = next.id returning j.id, name, retry_count";
    assert_eq!(verdict_of(take), "write name=$1, rows");
    let complete = "with results as (update pgboss.job set completed_on = now(), state = 'completed', output = $3::jsonb \
        where name = $1 and id in (select unnest($2::uuid[])) and state = 'active' returning *) select count(*) from results";
    assert_eq!(verdict_of(complete), "write name=$1,id=any $2 + no key, rows");
}

#[test]
fn oban() {
    let take = "with \"subset\" as materialized (select so0.\"id\" as \"id\" from \"public\".\"oban_jobs\" as so0 \
        where (so0.\"state\" = 'available') and (so0.\"queue\" = $1) order by so0.\"priority\", so0.\"scheduled_at\", so0.\"id\" \
        limit $2 for update skip locked) \
        update \"public\".\"oban_jobs\" as o0 set \"state\" = $3, \"attempted_at\" = $4, \"attempt\" = o0.\"attempt\" + $5 \
        from \"subset\" as s1 where (o0.\"id\" = s1.\"id\") and (o0.\"attempt\" < o0.\"max_attempts\") \
        returning o0.\"id\", o0.\"state\"";
    assert_eq!(verdict_of(take), "write state=available,queue=$1, rows");
    let complete = "update \"public\".\"oban_jobs\" as o0 set \"state\" = $1, \"completed_at\" = $2 where (o0.\"id\" = $3)";
    assert_eq!(verdict_of(complete), "write id=$3");
}

/// Their queries use other tables, functions, session locks or transactions.
#[test]
fn statements_of_other_queues_that_are_passed_through() {
    for (sql, reason) in [
        // graphile-worker: the query locks rows of a second table.
        (
            "with j as (select jobs.id from graphile_worker._private_jobs as jobs where jobs.id in \
             (select id from graphile_worker._private_job_queues as q where q.is_available for update skip locked) \
             order by id limit 1 for update skip locked) \
             update graphile_worker._private_jobs as jobs set attempts = jobs.attempts + 1 from j where jobs.id = j.id returning *",
            "a row lock",
        ),
        // PgQueuer: the query joins.
        (
            "with params as (select unnest($2::text[]) as entrypoint), next as (select pgqueuer.id from pgqueuer \
             inner join params on params.entrypoint = pgqueuer.entrypoint order by id for update skip locked limit $1), \
             updated as (update pgqueuer set status = 'picked' where id = any(select id from next) returning *) \
             select * from updated",
            "",
        ),
        // Procrastinate: a function without a merge rule.
        ("select id, status from procrastinate_fetch_job_v2($1::varchar[], $2)", "has no rule"),
        // Que: a lock of the session.
        ("select id from que_jobs where pg_try_advisory_lock(id) order by id limit 1", "no WHERE"),
        // django-tasks and Solid Queue: the first statement of a transaction.
        (
            "select id from task_result where status = 'READY' and queue_name = $1 order by priority desc limit 1 for update skip locked",
            "row lock",
        ),
        (
            "select job_id from solid_queue_ready_executions where queue_name = $1 order by priority, job_id limit $2 for update skip locked",
            "row lock",
        ),
    ] {
        let verdict = verdict_of(sql);
        assert!(verdict.starts_with("pass: ") && verdict.contains(reason), "{sql}: {verdict}, not {reason}");
    }
}

#[test]
fn what_other_queues_complete_by_key_is_packed() {
    for (sql, expected) in [
        ("delete from graphile_worker._private_jobs as jobs where id = $1::bigint", "write id=$1"),
        ("update task_result set status = $1 where task_result.id = $2::uuid", "write id=$2"),
        (
            "delete from solid_queue_ready_executions where solid_queue_ready_executions.id in ($1, $2)",
            "write id=($1|$2)",
        ),
    ] {
        assert_eq!(verdict_of(sql), expected, "{sql}");
    }
}

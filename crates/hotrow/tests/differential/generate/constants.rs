//! Names in constants and COLLATE clauses: sequences, text search configurations and dictionaries, collations. The
//! names get other objects between two runs, and the objects other definitions.

use super::Draft;
use super::stale::ddl;

/// Without the word COPY: after it, the runner could not know how many replies to wait for.
const SETUP: &str = r#"create table t_N (id int primary key, body text, found tsvector, is_less bool);
    insert into t_N values (1, 'running dogs a'), (2, 'Zebra the');
    create sequence two.sq_N; select setval('two.sq_N', 100);
    create text search configuration two.tc_N (parser = pg_catalog."default");
    alter text search configuration two.tc_N add mapping for asciiword with english_stem;
    create text search configuration two.tp_N (parser = pg_catalog."default");
    alter text search configuration two.tp_N add mapping for asciiword with simple;
    create text search dictionary two.td_N (template = pg_catalog.simple);
    create collation two.co_N from "C";
    create collation two.cp_N (provider = icu, locale = 'en-US');
    create function two.f_N(text) returns tsquery immutable language sql as $$ select to_tsquery('tc_N', $1) $$"#;

const CHANGES: &[&str] = &[
    "create sequence one.sq_N start 1000",
    "drop sequence if exists one.sq_N",
    "create table one.sq_N (id int)",
    "drop table if exists one.sq_N",
    "drop text search configuration if exists one.tc_N; create text search configuration one.tc_N (parser = pg_catalog.\"default\"); alter text search configuration one.tc_N add mapping for asciiword with simple",
    "drop text search configuration if exists one.tc_N",
    "alter text search configuration two.tc_N rename to ts_N; alter text search configuration two.tp_N rename to tc_N",
    "alter text search configuration two.tc_N rename to tp_N; alter text search configuration two.ts_N rename to tc_N",
    "alter text search configuration two.tc_N alter mapping for asciiword with simple",
    "alter text search configuration two.tc_N alter mapping for asciiword with english_stem",
    "alter text search configuration two.tc_N alter mapping for asciiword with two.td_N",
    "alter text search dictionary two.td_N (accept = false)",
    "alter text search dictionary two.td_N (accept = true)",
    "create collation one.co_N (provider = icu, locale = 'en-US')",
    "drop collation if exists one.co_N",
    "alter collation two.co_N rename to cs_N; alter collation two.cp_N rename to co_N",
    "alter collation two.co_N rename to cp_N; alter collation two.cs_N rename to co_N",
    "alter collation two.co_N set schema one",
];

pub fn write(draft: &mut Draft) {
    draft.set_up_watch();
    draft.set_up(SETUP);
    (0..draft.random.u8(3..12)).for_each(|_| using(draft));
    for _ in 0..draft.random.u8(1..6) {
        let sql = draft.pick(CHANGES);
        ddl(draft, &mut using, sql);
    }
}

fn using(draft: &mut Draft) {
    // A statement that was prepared earlier may mean either object: docs/differences.md.
    draft.named.clear();
    let (session, id) = (draft.session(), Some(draft.pick(&["1", "2", "3"])));
    match draft.random.u8(..13) {
        0 => draft.run(session, "select nextval('sq_N') > 500", &[]),
        1 => draft.run(
            session,
            "update t_N set is_less = nextval('sq_N') > 500 where id = $1 returning is_less",
            &[id],
        ),
        2 => draft.run(session, "select nextval('two.sq_N') > 500, id from t_N where id = $1", &[id]),
        3 => draft.run(
            session,
            "update t_N set found = to_tsvector('tc_N', body) where id = $1 returning found",
            &[id],
        ),
        4 => draft.run(session, "select to_tsvector('two.tc_N', body) from t_N where id = $1", &[id]),
        5 => draft.run(session, "select to_tsquery('tc_N', 'dogs'), f_N('dogs')", &[]),
        6 => draft.run(
            session,
            "select ts_headline('tc_N', body, plainto_tsquery('tc_N', 'dog')) from t_N where id = $1",
            &[id],
        ),
        7 => draft.run(session, "select body < 'Z' collate co_N from t_N where id = $1", &[id]),
        8 => draft.run(
            session,
            "update t_N set is_less = body < ('Z' collate two.co_N) where id = $1 returning is_less",
            &[id],
        ),
        9 => draft.run(session, "select upper('x' collate co_N) < 'a'", &[]),
        10 => draft.run(
            session,
            "insert into t_N values ($1, 'dogs', to_tsvector('tc_N', 'dogs')) on conflict (id) do update set found = excluded.found returning found",
            &[id],
        ),
        11 => draft.run(session, "select ts_lexize('td_N', 'dogs'), to_tsquery('tc_N', 'dogs')", &[]),
        _ => draft.run(session, "select to_tsvector('running dogs') from t_N where id = $1", &[id]),
    }
}

//! Calls of functions with pack rules: statements that a function builds, errors in some calls of a batch, and functions that
//! leave state although their rule says that they do not.

use super::Draft;
use super::calls::at_once;

/// Functions with pack rules, which take a table's name. Programs do not change them.
pub const DECLARED: &str = "
    create schema declared;
    create function declared.add(tab text, int, by int default 1) returns int language plpgsql as $$
    declare
        result int;
    begin
        execute format('update %I set n = n + $2 where id = $1 returning n', tab) into result using $2, by;
        return 100 / (result - 7);
    end $$;
    create function declared.put(tab text, inout id int, out n int) language plpgsql as $$
    #variable_conflict use_column
    begin
        execute format('insert into %I values ($1, $1) on conflict (id) do update set n = %1$I.n - 1 returning id, n', tab)
            into id, n using $2;
    end $$;
    create function declared.rows(tab text, most int) returns table (id int, n int) language plpgsql as $$
    begin
        return query execute format('select id, n from %I order by id limit $1', tab) using most;
    end $$;
    create function declared.nothing(tab text, int) returns void language plpgsql strict as $$
    begin
        execute format('delete from %I where id = $1', tab) using $2;
    end $$;
    create function declared.over(tab text, int) returns text language plpgsql as $$
        begin return format('%s %s', tab, declared.add(tab, $2)); end $$;
    create function declared.over(tab text, text) returns text language plpgsql as $$ begin return 'text ' || $2; end $$;
    create function declared.sets(tab text, int) returns int language plpgsql as $$
        begin execute 'se' || 't work_mem = 5000'; return declared.add(tab, $2); end $$;
    create function declared.sets_locally(tab text, int) returns int language plpgsql as $$
        begin execute 'se' || 't local search_path = pg_catalog, public'; return declared.add(tab, $2); end $$;
    create function declared.locks(tab text, int) returns int language plpgsql as $$
        begin execute 'select pg_adv' || 'isory_lock($1)' using $2 + 900000; return declared.add(tab, $2); end $$;
    create function declared.listens(tab text, int) returns int language plpgsql as $$
        begin execute 'list' || 'en declared'; return declared.add(tab, $2); end $$;
    select hotrow.add_pack_rule(oid::regprocedure::text, '2') from pg_proc where pronamespace = 'declared'::regnamespace";

/// `$1` is a number.
const CALLS: &[&str] = &[
    "select declared.add('t_N', $1)",
    "select declared.add('t_N', $1, by => 3) as added",
    "select declared.add('none_N', $1)",
    "select * from declared.put('t_N', $1)",
    "select declared.put('t_N', $1::int)",
    "select n from declared.put(tab => 't_N', id => $1)",
    "select * from declared.rows('t_N', $1)",
    "select declared.rows(lower('T_N'), 3 + $1::int)",
    "select declared.nothing('t_N', $1)",
    "select declared.nothing(null, $1)",
    "select declared.over('t_N', $1::int)",
    "select declared.over('t_N', $1::text)",
];

/// Functions whose rule is false.
const FALSE: &[&str] = &[
    "select declared.sets('t_N', $1)",
    "select declared.sets_locally('t_N', $1)",
    "select declared.locks('t_N', $1)",
    "select declared.listens('t_N', $1)",
];

const NUMBERS: &[&str] = &["1", "2", "3", "4", "5"];

pub fn write(draft: &mut Draft) {
    draft.set_up("create table t_N (id int primary key, n int default 0); insert into t_N values (1, 0), (2, 3), (3, 6)");
    for _ in 0..draft.random.u8(6..20) {
        let session = draft.session();
        let call = if draft.once_in(12) { draft.pick(FALSE) } else { draft.pick(CALLS) };
        at_once(draft, session, call, |draft| {
            vec![if draft.once_in(30) { "x" } else { draft.pick(NUMBERS) }]
        });
        if draft.once_in(6) {
            let sql = draft.pick(&[
                "show work_mem",
                "show search_path",
                "select pg_listening_channels()",
                "update t_N set n = n + 1 where id = 2 returning n",
                "begin",
                "commit",
                "rollback",
                "discard all",
            ]);
            draft.query(session, sql);
        }
    }
}

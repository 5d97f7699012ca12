//! Compares the hotrow schema's net effect on the catalog with `tests/golden/schema.txt`. To renew that file after a change, run
//! `HOTROW_GOLDEN=write cargo test -p hotrow-sql golden`, then read the diff.

use std::path::Path;

use crate::server::Database;

/// Returns one line for each object, without the properties that differ between servers.
const DUMP: &str = "
    select line from (
        select format('%s %s%s', case c.relkind when 'v' then 'view' else 'table' end, c.relname, coalesce(' with ' || array_to_string(c.reloptions, ', '), '')) as line
        from pg_class c where c.relnamespace = 'hotrow'::regnamespace and c.relkind in ('r', 'p', 'v')
    union all
        select format('column %s.%s %s%s%s%s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
            case when a.attcollation = 'pg_catalog.\"C\"'::regcollation then ' collate \"C\"' else '' end,
            case when a.attnotnull then ' not null' else '' end, coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), ''))
        from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
            left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
        where c.relnamespace = 'hotrow'::regnamespace and c.relkind in ('r', 'p', 'c', 'v') and not c.relispartition
    union all
        select format('index %s', regexp_replace(pg_get_indexdef(i.indexrelid), '^CREATE ', ''))
        from pg_index i join pg_class c on c.oid = i.indrelid where c.relnamespace = 'hotrow'::regnamespace
    union all
        select format('constraint %s.%s %s', t.conrelid::regclass, t.conname, pg_get_constraintdef(t.oid))
        from pg_constraint t where t.connamespace = 'hotrow'::regnamespace and t.contype <> 'n'
    union all
        select format('function %s(%s) returns %s %s%s%s, executed by %s', p.proname, pg_get_function_arguments(p.oid),
            pg_get_function_result(p.oid), case p.provolatile when 'v' then 'volatile' when 's' then 'stable' else 'immutable' end,
            case when p.prosecdef then ' security definer' else '' end, coalesce(' set ' || array_to_string(p.proconfig, ' set '), ''),
            (select string_agg(coalesce(nullif(x.grantee::regrole::text, '-'), 'public'), ' ' order by x.grantee::regrole::text)
                from aclexplode(p.proacl) x where x.privilege_type = 'EXECUTE'))
        from pg_proc p where p.pronamespace = 'hotrow'::regnamespace
    union all
        select format('grant on %s: %s', c.relname, c.relacl) from pg_class c
        where c.relnamespace = 'hotrow'::regnamespace and c.relacl is not null
    union all
        select format('grant on schema: %s', n.nspacl) from pg_namespace n where n.nspname = 'hotrow'
    union all
        select format('merge rule %s into %s, key %s in %s, at most %s', m.function, m.batch, m.key_argument, m.key_space,
            m.most_calls) from hotrow.merge_rule m
    union all
        select format('pack rule %s', r.function) from hotrow.pack_rule r
    union all
        select format('migration %s', m.name) from hotrow.migration m
    union all
        select format('setting %s = %s', j.key, j.value) from hotrow.setting s, jsonb_each_text(to_jsonb(s) - 'secret') j
    ) dump order by line collate \"C\"";

#[test]
fn the_catalog_matches_the_golden_file() {
    let session = Database::migrated().session("postgres");
    let found = session.ask(DUMP).unwrap().join("\n") + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/schema.txt");
    if std::env::var_os("HOTROW_GOLDEN").is_some_and(|mode| mode == "write") {
        std::fs::write(&path, &found).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let renew = "if the change is intended, run `HOTROW_GOLDEN=write cargo test -p hotrow-sql golden` and read the diff";
    for (place, (found, golden)) in found.lines().zip(golden.lines()).enumerate() {
        assert_eq!(found, golden, "line {} of {} is outdated; {renew}", place + 1, path.display());
    }
    let lengths = (found.lines().count(), golden.lines().count());
    assert_eq!(lengths.0, lengths.1, "{} is longer or shorter than the catalog; {renew}", path.display());
}

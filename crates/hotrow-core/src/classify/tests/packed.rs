//! Tests packed statements and their keys: plain ones, and those that frameworks and drivers send.

use super::*;
use crate::limits;

#[test]
fn updates_by_key() {
    check_exactly(&[
        ("update inv set stock = stock - 1, sold = sold + 1 where id = 1 and stock >= 1", "write id=1"),
        ("update inv set stock = stock - $1, sold = sold + $1 where id = $2 and stock >= $1", "write id=$2"),
        ("update inv set stock = stock - 1 where id = 1 and pg_try_advisory_xact_lock(1)", "write id=1"),
        ("delete from inv where id = $1 and pg_try_advisory_xact_lock_shared($1)", "write id=$1"),
        ("UPDATE inv SET note = $1 WHERE $2 = ID", "write id=$2"),
        ("update public.inv set note = $1 where inv.id = $2::int", "write id=$2"),
        ("update inv as i set note = $1 where (i.id = cast($2 as integer))", "write id=$2"),
        ("update inv i set note = upper(i.note) where ((i.id = $1) and (i.stock > 0))", "write id=$1"),
        ("update only inv set note = 'x' where id = $1", "write id=$1"),
        ("update inv set note = 'x' where sku = 'a''b'", "write sku=a'b"),
        ("update inv set note = 'x' where sku = $1 and id = $2", "write id=$2"),
        ("update \"inv\" set \"note\" = $1 where \"id\" = $2 returning *", "write id=$2, rows"),
        ("update inv set (stock, sold) = (stock - 1, sold + 1) where id = $1", "write id=$1"),
        ("update inv set note = default where id = $1", "write id=$1"),
        (
            "update inv set stock = case when stock > $1 then stock - $1 else 0 end where id = $2",
            "write id=$2",
        ),
        (
            "update inv set note = concat(note, 'x', $1::text) where id = $2 and (stock > 1 or sold < 5)",
            "write id=$2",
        ),
        ("update line set quantity = $3 where order_id = $1 and no = $2", "write order_id=$1,no=$2"),
        (
            "update line set quantity = 1 where no = 7 and order_id = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
            "write order_id=a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,no=7",
        ),
        ("update users set data = jsonb_set(data, '{a,b}', $1) where id = $2", "write id=$2"),
        ("update users set data = data || $1::jsonb, updated_at = now() where id = $2", "write id=$2"),
        ("update users set is_active = not is_active where id = $1 and data->>'k' = $2", "write id=$1"),
        ("update users set updated_at = now() - interval '1 day' where email = $1", "write email=$1"),
        ("update users set updated_at = current_timestamp at time zone 'UTC' where id = $1", "write id=$1"),
        (
            "update users set name = substring(name from 1 for 3), email = trim(both ' ' from email) where id = $1",
            "write id=$1",
        ),
        ("update users set name = $1 where id = $2 and name is distinct from $1", "write id=$2"),
        (
            "update users set name = $1 where id = $2 and name like 'a%' and created_at between $3 and $4",
            "write id=$2",
        ),
        (
            "update users set name = $1 where id = $2 and is_active in (true, false) and name is not null",
            "write id=$2",
        ),
    ]);
}

#[test]
fn deletes_by_key() {
    check_exactly(&[
        ("delete from inv where id = $1", "write id=$1"),
        ("delete from only inv where id = $1 and stock = 0", "write id=$1"),
        ("DELETE FROM \"public\".\"inv\" AS x WHERE x.id = $1 RETURNING x.*", "write id=$1, rows"),
        ("delete from line where order_id = $1 and no = 3", "write order_id=$1,no=3"),
    ]);
}

#[test]
fn point_reads() {
    check_exactly(&[
        ("select * from inv where id = $1", "read id=$1, rows"),
        ("select inv.*, stock + sold as total from inv where id = 5", "read id=5, rows"),
        ("select i.stock from inv as i where i.sku = $1 limit 1", "read sku=$1, rows"),
        ("select stock from inv where id = $1 limit $2 offset 0", "read id=$1, rows"),
        ("select stock from inv where id = $1 fetch first 1 rows only", "read id=$1, rows"),
        ("select stock from inv where id = $1 order by stock limit 1", "read id=$1, rows"),
        (
            "select coalesce(note, 'none'), length(note)::text from inv where id = $1 and stock > 0",
            "read id=$1, rows",
        ),
        ("select 1 as one from users where email = $1 and id = $2 limit 1", "read id=$2, rows"),
        (
            "select extract(epoch from created_at), date_trunc('day', created_at) from users where id = $1",
            "read id=$1, rows",
        ),
        (
            "select data #>> '{a,b}', data -> 'x' ->> 0, data ? 'k' from users where id = $1",
            "read id=$1, rows",
        ),
    ]);
}

#[test]
fn lists_of_keys() {
    check_exactly(&[
        ("update inv set stock = stock - 1 where id in ($1, $2, 3)", "write id=($1|$2|3)"),
        ("update inv set stock = stock - 1 where inv.id in (1)", "write id=(1)"),
        ("update inv set stock = 0 where id in (null, $1::int, null::int)", "write id=($1)"),
        ("update inv set stock = 0 where id in (null)", "write id=()"),
        ("delete from inv where id = any($1) and stock = any($2)", "write id=any $1"),
        ("delete from inv where id = some($1::int[])", "write id=any $1"),
        ("delete from inv where id = any('{1, null, 3}')", "write id=(1|3)"),
        ("delete from inv where (id = any((array[$1, 2])::int[]))", "write id=($1|2)"),
        ("select * from inv where id in (1, 2) order by id desc nulls last, 2", "read id=(1|2), rows"),
        ("select * from inv where sku = any($1) and id <> all($2)", "read sku=any $1, rows"),
        ("select * from inv where id in (1, 2) and id = 1", "read id=(1|2), rows"),
        ("update line set quantity = 0 where order_id = $1 and no in (1, 2)", "write order_id=$1,no=(1|2)"),
        ("delete from line where no = any($2) and order_id in ($1, $3)", "write order_id=($1|$3),no=any $2"),
    ]);
    let list = |count: usize| format!("delete from inv where id in ({})", vec!["1"; count].join(","));
    assert!(verdict(&list(limits::UNIT_ROWS_MAX)).starts_with("write"));
    assert_eq!(verdict(&list(limits::UNIT_ROWS_MAX + 1)), "pass: more than 100 rows");
    let columns = format!("and no in ({})", vec!["1"; limits::UNIT_ROWS_MAX].join(","));
    let product = format!("delete from line where order_id in ($1, $2) {columns}");
    assert_eq!(verdict(&product), "pass: more than 100 rows");
}

/// The statement that locks a row has one type for each column of the key.
#[test]
fn rows_of_lists_are_locked_with_their_declared_types() {
    let lock = |sql: &str, types: &[u32]| {
        let Analysis::Candidate(candidate) = analyse(sql) else { panic!() };
        let facts = Facts { table: candidate.table.as_ref().and_then(find), ..Facts::default() };
        let Decision::Packed(packing) = decide(&candidate, &facts, types) else { panic!() };
        packing.lock_statement.map(|lock| (lock.text, lock.types))
    };
    let text = "select from \"public\".\"inv\" where \"id\" = $1 for no key update";
    for (condition, types, locked_with) in [
        ("id = $1", &[][..], Some(0)),
        ("id = $1", &[20], Some(20)),
        ("id = 5", &[20], Some(0)),
        ("id in ($1, $2)", &[], Some(0)),
        ("id in ($1, $2)", &[23, 23], Some(23)),
        ("id in ($1, $2)", &[23, 20], None),
        ("id in ($1, 2)", &[23], None),
        ("id in (null)", &[], Some(0)),
        ("id = any($1)", &[], Some(0)),
        ("id = any($1)", &[1016], Some(20)),
        ("id = any($1)", &[1041], None),
    ] {
        let sql = format!("update inv set stock = 0 where {condition}");
        assert_eq!(
            lock(&sql, types),
            locked_with.map(|oid| (text.to_owned(), vec![oid])),
            "{condition} {types:?}"
        );
    }
    let (text, types) =
        lock("update line set quantity = 0 where order_id = $1 and no in ($2, $3)", &[]).unwrap();
    let due = "select from \"public\".\"line\" where \"order_id\" = $1 and \"no\" = $2 for no key update";
    assert_eq!((text.as_str(), &types[..]), (due, &[0, 0][..]));
}

#[test]
fn reads_of_no_table() {
    check_exactly(&[
        ("select 1", "read no key, rows"),
        ("SELECT now()", "read no key, rows"),
        ("select current_user, current_database(), version()", "read no key, rows"),
        ("select $1::int + 1 where $2", "read no key, rows"),
        ("select nextval('s')", "write no key, rows, sequence"),
        ("select pg_catalog.gen_random_uuid()", "read no key, rows"),
    ]);
}

#[test]
fn inserts() {
    check_exactly(&[
        ("insert into inv values ($1, $2, 0, 'a', 'b')", "write id=$1"),
        ("insert into inv (sku, id, stock) values ('a', 7, 1)", "write id=7"),
        ("insert into inv (sku) values ($1), ($2)", "write no key"),
        ("insert into inv (id, sku) values (1, 'a'), (2, 'b')", "write id=[1 2]"),
        ("insert into log values (now(), $1)", "write no key"),
        ("insert into log default values", "write no key"),
        ("insert into log (message) values ($1) returning *", "write no key, rows"),
        ("insert into users (email, name) values ($1, $2) returning id", "write no key, rows, sequence"),
        ("insert into users (id, email) values ($1, $2)", "write id=$1"),
        ("insert into users (id, email) values (default, $1)", "write no key, sequence"),
        (
            "insert into users values (default, 'e', 'n', true, '{}', default, now())",
            "write no key, sequence",
        ),
        (
            "insert into inv (id, stock) values ($1, 1) on conflict (id) do update set stock = inv.stock + 1",
            "write id=$1",
        ),
        (
            "insert into inv as i (id, stock) values ($1, $2) on conflict (id) do update \
          set stock = i.stock + excluded.stock where i.stock < 100 returning i.stock",
            "write id=$1, rows",
        ),
        (
            "insert into inv (id, sku, stock) values (1, $1, 1) on conflict (sku) do update set stock = excluded.stock",
            "write sku=$1",
        ),
        (
            "insert into inv (id, sku) values ($1, $2) on conflict on constraint inv_sku_key do update set note = 'x'",
            "write sku=$2",
        ),
        ("insert into inv (id, sku) values ($1, $2) on conflict do nothing", "write id=$1"),
        ("insert into inv (sku) values ($1) on conflict do nothing", "write no key"),
        ("insert into inv (id, sku) values ($1, $2) on conflict (sku) do nothing", "write sku=$2"),
        (
            "insert into line (order_id, no, sku, quantity) values ($1, $2, $3, $4) \
          on conflict (no, order_id) do update set quantity = line.quantity + excluded.quantity",
            "write no=$2,order_id=$1",
        ),
    ]);
}

#[test]
fn statements_of_object_relational_mappers() {
    check_exactly(&[
        // Rails
        ("SELECT \"users\".* FROM \"users\" WHERE \"users\".\"id\" = $1 LIMIT $2", "read id=$1, rows"),
        ("SELECT 1 AS one FROM \"users\" WHERE \"users\".\"email\" = $1 LIMIT $2", "read email=$1, rows"),
        (
            "INSERT INTO \"users\" (\"email\", \"name\", \"created_at\", \"updated_at\") VALUES ($1, $2, $3, $4) \
          RETURNING \"id\"",
            "write no key, rows, sequence",
        ),
        (
            "UPDATE \"users\" SET \"name\" = $1, \"updated_at\" = $2 WHERE \"users\".\"id\" = $3",
            "write id=$3",
        ),
        (
            "UPDATE \"users\" SET \"name\" = COALESCE(\"users\".\"name\", $1) || $2 WHERE \"users\".\"id\" = $3",
            "write id=$3",
        ),
        ("DELETE FROM \"users\" WHERE \"users\".\"id\" = $1", "write id=$1"),
        (
            "INSERT INTO \"inv\" (\"id\",\"stock\") VALUES (1, 2) ON CONFLICT (\"id\") DO UPDATE SET \
          \"stock\"=excluded.\"stock\" RETURNING \"id\"",
            "write id=1, rows",
        ),
        // Django
        (
            "SELECT \"users\".\"id\", \"users\".\"email\" FROM \"users\" WHERE \"users\".\"id\" = 1 LIMIT 21",
            "read id=1, rows",
        ),
        (
            "UPDATE \"users\" SET \"email\" = 'a@b.c', \"is_active\" = true WHERE \"users\".\"id\" = 12",
            "write id=12",
        ),
        (
            "UPDATE \"inv\" SET \"stock\" = (\"inv\".\"stock\" - 1) WHERE (\"inv\".\"id\" = 1 AND \"inv\".\"stock\" >= 1)",
            "write id=1",
        ),
        (
            "INSERT INTO \"users\" (\"email\", \"name\") VALUES ('a@b.c', 'A') RETURNING \"users\".\"id\"",
            "write no key, rows, sequence",
        ),
        // Hibernate
        ("select u1_0.id,u1_0.email,u1_0.name from users u1_0 where u1_0.id=$1", "read id=$1, rows"),
        ("update users set email=$1,name=$2,updated_at=$3 where id=$4", "write id=$4"),
        ("update inv set note=$1,stock=$2 where id=$3 and stock=$4", "write id=$3"),
        ("insert into users (email,name,id) values ($1,$2,$3)", "write id=$3"),
        ("delete from users where id=$1", "write id=$1"),
        ("select nextval('users_seq')", "write no key, rows, sequence"),
        // SQLAlchemy
        (
            "SELECT users.id AS users_id, users.email AS users_email \nFROM users \nWHERE users.id = $1::BIGINT",
            "read id=$1, rows",
        ),
        ("UPDATE users SET name=$1::VARCHAR WHERE users.id = $2::BIGINT", "write id=$2"),
        (
            "INSERT INTO users (email, name) VALUES ($1::VARCHAR, $2::VARCHAR) RETURNING users.id",
            "write no key, rows, sequence",
        ),
        ("DELETE FROM users WHERE users.id = $1::BIGINT", "write id=$1"),
    ]);
}

#[test]
fn statements_of_drivers_and_pgbench() {
    check_exactly(&[
        // pgx, JDBC, sqlx, Prisma, Ecto
        ("select id, email from users where id=$1", "read id=$1, rows"),
        ("update inv set stock=stock-$1 where id=$2 returning stock", "write id=$2, rows"),
        (
            "INSERT INTO \"public\".\"users\" (\"email\",\"name\") VALUES ($1,$2) RETURNING \"public\".\"users\".\"id\"",
            "write no key, rows, sequence",
        ),
        (
            "SELECT \"public\".\"users\".\"id\" FROM \"public\".\"users\" WHERE (\"public\".\"users\".\"id\" = $1 AND 1=1) \
          LIMIT $2 OFFSET $3",
            "read id=$1, rows",
        ),
        ("SELECT u0.\"id\", u0.\"email\" FROM \"users\" AS u0 WHERE (u0.\"id\" = $1)", "read id=$1, rows"),
        ("UPDATE \"users\" AS u0 SET \"name\" = $1 WHERE (u0.\"id\" = $2)", "write id=$2"),
        ("UPDATE \"inv\" SET \"stock\" = \"stock\" + -1 WHERE \"id\" = $1", "write id=$1"),
        ("insert into users (email) values ($1::text)", "write no key, sequence"),
        // pgbench
        ("UPDATE inv SET stock = stock + 5 WHERE id = 3;", "write id=3"),
        ("SELECT stock FROM inv WHERE id = 3;", "read id=3, rows"),
        ("INSERT INTO log (at, message) VALUES (CURRENT_TIMESTAMP, 'x');", "write no key"),
    ]);
}

#[test]
fn a_packing_describes_its_statement() {
    let Analysis::Candidate(candidate) = analyse("update inv set stock = 1 where id = $1") else { panic!() };
    let facts = Facts { table: Some(inv()), ..Facts::default() };
    let Decision::Packed(packing) = decide(&candidate, &facts, &[]) else { panic!() };
    assert_eq!(packing.table, "public.inv");
    assert_eq!(packing.rows_per_commit, 90, "6528 bytes of a page, 32 + 40 bytes a version");
    assert_eq!(candidate.table.as_ref().unwrap().to_regclass(), "\"inv\"");
    let text =
        explain(&analyse("update inv set stock = 1 where id = $1"), Some(&Decision::Packed(packing)), &[]);
    for line in
        ["packed\n", "lane      writes", "table     public.inv", "key       id = $1", "at most   90 units"]
    {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn rows_per_commit_follow_the_width() {
    for (width, rows) in [(8, 128), (100, 48), (2000, 16)] {
        let Analysis::Candidate(candidate) = analyse("update log set at = at where message = 'x'") else {
            panic!()
        };
        let mut table = log();
        table.unique_indexes.push(index("i", false, &["message"]));
        table.columns[0].avg_width = width;
        table.columns[1].avg_width = 0;
        let facts = Facts { table: Some(table), ..Facts::default() };
        let Decision::Packed(packing) = decide(&candidate, &facts, &[]) else { panic!() };
        assert_eq!(packing.rows_per_commit, rows, "{width}");
    }
}

//! Statements, the advice about each, and the form that follows it.

use hotrow_core::classify::Remedy;

/// A statement that is passed through, and another form.
pub struct Form {
    pub remedy: Remedy,
    /// More tables, functions and types.
    pub setup: &'static str,
    /// What the session does before.
    pub first: &'static str,
    /// The statement that gets the advice. SCHEMA stands for the schema's name.
    pub statement: String,
    /// What the application does with it, if that is more than the statement.
    pub whole: &'static str,
    /// A change of the catalog that the advice names.
    pub change: &'static str,
    /// The messages instead. None if there is nothing to do.
    pub instead: Vec<String>,
}

impl Form {
    fn new(remedy: Remedy, statement: &str, instead: &[&str]) -> Self {
        let instead = instead.iter().map(|text| (*text).to_owned()).collect();
        Form { remedy, setup: "", first: "", statement: statement.to_owned(), whole: "", change: "", instead }
    }

    /// The same statement after a change of the catalog.
    fn after(remedy: Remedy, setup: &'static str, change: &'static str, statement: &str) -> Self {
        Form { setup, change, ..Form::new(remedy, statement, &[statement]) }
    }

    fn with(self, setup: &'static str) -> Self {
        Form { setup, ..self }
    }

    fn first(self, first: &'static str) -> Self {
        Form { first, ..self }
    }

    fn in_whole(self, whole: &'static str) -> Self {
        Form { whole, ..self }
    }
}

const PART: &str = "create table part (id int primary key, n int) partition by range (id);
create table part_1 partition of part for values from (0) to (100);
insert into part values (1, 0)";
const TAKE: &str = "update inv set version = 1 where id = (select id from inv where version = 0 order by id limit 1 for update skip locked) returning *";
const WAITING_TAKE: &str = "update inv set version = 1 where id = (select id from inv where version = 0 order by id limit 1) returning *";
const CLAIM: &str = "select id from inv where version = 0 order by id for update skip locked limit 1";
const UPDATE: &str = "update inv set stock = 4 where id = 1";

/// All of them.
pub fn all() -> Vec<Form> {
    [nothing(), changes(), objects(), of_libraries(), of_catalog(), large()].into_iter().flatten().collect()
}

fn nothing() -> Vec<Form> {
    let nothing = |statement| Form::new(Remedy::Nothing, statement, &[]);
    vec![
        nothing("select count(*) from inv"),
        nothing("select * from inv order by id desc limit 10"),
        nothing("select i.id from inv i join users u on u.id = i.id where u.email = 'x'"),
        nothing("select id from inv where stock = 5"),
        nothing("copy inv from stdin"),
        Form::new(Remedy::NothingOrKey, "delete from inv where day < now() - interval '1 day'", &[]),
        Form::new(
            Remedy::NothingOrKey,
            "update inv set stock = stock - 1 where id + 0 = 1",
            &["update inv set stock = stock - 1 where id = 1"],
        ),
        Form::new(Remedy::NothingOrIndex, "update inv set version = 1 where stock = 5", &[]),
        Form::after(
            Remedy::NothingOrIndex,
            "",
            "create unique index on inv (sku)",
            "update inv set stock = 4 where sku = 'a'",
        ),
        Form::new(
            Remedy::NothingOrBuiltInCast,
            "update inv set sku = 'x'::label where id = 1",
            &["update inv set sku = 'x' where id = 1"],
        )
        .with("create domain label as text"),
        Form::new(
            Remedy::NothingOrValues,
            "insert into log (id, note) select id, sku from inv where id = 2",
            &["insert into log (id, note) values (2, 'b')"],
        ),
        Form::new(
            Remedy::NothingOrValues,
            "insert into log (id, note) values (2, (select sku from inv where id = 2))",
            &["insert into log (id, note) values (2, 'b')"],
        ),
    ]
}

fn changes() -> Vec<Form> {
    let checks =
        "begin; select stock from inv where id = 1 for update; update inv set stock = 4 where id = 1; commit";
    let locks = "begin; select pg_advisory_xact_lock(7); update inv set stock = 4 where id = 1; commit";
    let claims = "begin; select id from inv where version = 0 order by id for update skip locked limit 1; \
        update inv set version = 1 where id = 1; commit";
    let twice = ["update inv set stock = 7 where id = 1; update inv set stock = 8 where id = 2"];
    vec![
        Form::new(Remedy::Queue, CLAIM, &[TAKE]).in_whole(claims),
        Form::new(Remedy::SkipLocked, WAITING_TAKE, &[TAKE]),
        Form::new(
            Remedy::CheckedChange,
            "update inv set stock = stock - 1 where id = (select id from inv where sku = 'b' and stock > 0)",
            &["update inv set stock = stock - 1 where id = 2 and sku = 'b' and stock > 0"],
        ),
        Form::new(
            Remedy::OneStatement,
            "select stock from inv where id = 1 for update",
            &["update inv set stock = stock - 1 where id = 1 and stock > 0"],
        )
        .in_whole(checks),
        Form::new(
            Remedy::EachRow,
            "update inv set stock = v.stock from (values (1, 7), (2, 8)) as v (id, stock) where inv.id = v.id",
            &twice,
        ),
        Form::new(
            Remedy::EachRow,
            "with a as (update inv set stock = 7 where id = 1) update inv set stock = 8 where id = 2",
            &twice,
        ),
        Form::new(
            Remedy::Transaction,
            "begin",
            &["begin; update inv set stock = 4 where id = 1; update inv set stock = 4 where id = 2; commit"],
        )
        .in_whole(
            "begin; update inv set stock = 4 where id = 1; update inv set stock = 4 where id = 2; commit",
        ),
        Form::new(
            Remedy::Statements,
            "do $$ begin update inv set stock = 7 where id = 1; update inv set stock = 8 where id = 2; end $$",
            &twice,
        ),
        Form::new(
            Remedy::AdvisoryCondition,
            "select pg_advisory_xact_lock(7)",
            &["update inv set stock = 4 where id = 1 and pg_try_advisory_xact_lock(7)"],
        )
        .in_whole(locks),
        Form::new(
            Remedy::Returning,
            "select currval('users_id_seq')",
            &["insert into users (email) values ('x') returning id"],
        )
        .first("insert into users (email) values ('x')"),
        Form::new(
            Remedy::Explain,
            "update inv set stock = 1 where id = 1; update inv set stock = 1 where stock > 1",
            &[],
        ),
    ]
}

fn objects() -> Vec<Form> {
    vec![
        Form::new(
            Remedy::SettingAsParameter,
            "update inv set sku = current_setting('app.x') where id = 1",
            &["update inv set sku = 'q' where id = 1"],
        )
        .first("set app.x = 'q'"),
        Form::new(
            Remedy::OwnOperator,
            "update inv set stock = 4 where id = 1 and sku @> 'a'",
            &["update inv set stock = 4 where id = 1 and sku = 'a'"],
        )
        .with(
            "create function same(text, text) returns bool language sql as 'select $1 = $2';
             create operator @> (leftarg = text, rightarg = text, function = same)",
        ),
        Form::new(
            Remedy::VersionColumn,
            "update inv set stock = 4 where id = 1 and xmin::text <> '0'",
            &["update inv set stock = 4 where id = 1 and version = 0"],
        ),
        Form::new(Remedy::TableOfView, "update odd set stock = 4 where id = 1", &[UPDATE]).with(
            "create function less(int) returns int language sql as 'select $1 - 1';
             create view odd as select id, stock, less(stock) as less from inv",
        ),
        Form::new(
            Remedy::PartitionedTable,
            "update part_1 set n = 1 where id = 1",
            &["update part set n = 1 where id = 1"],
        )
        .with(PART),
        Form::new(
            Remedy::UnchangedKey,
            "update part set id = 1, n = 1 where id = 1",
            &["update part set n = 1 where id = 1"],
        )
        .with(PART),
        Form::new(
            Remedy::ConflictColumns,
            "insert into users (email) values ('x') on conflict (id) do update set email = 'y'",
            &["insert into users (id, email) values (1, 'x') on conflict (id) do update set email = 'y'"],
        ),
        Form::new(
            Remedy::CurrentTime,
            "update inv set stock = 4 where id = 1 and now() < timestamptz $$tomorrow$$",
            &["update inv set stock = 4 where id = 1 and now() < current_date + 1"],
        ),
        Form::new(
            Remedy::QualifiedByTable,
            "update inv set stock = 4 where SCHEMA.inv.id = 1",
            &["update inv set stock = 4 where inv.id = 1"],
        ),
        Form::new(
            Remedy::MergedCall,
            "select value from hotrow.increment(lower('One'), 5)",
            &["select value from hotrow.increment('two', 5)"],
        ),
    ]
}

/// Functions like those of the libraries, and the rules that the advice adds for them.
fn of_libraries() -> Vec<Form> {
    vec![
        Form::after(
            Remedy::PgmqRules,
            "create schema if not exists pgmq;
             create or replace function pgmq.send(queue_name text, msg jsonb) returns setof bigint language plpgsql as
             $$ begin return query execute format('insert into %I values (1, $1) returning id::bigint', queue_name) using msg; end $$;
             create or replace function pgmq.send(queue_name text, msg jsonb, delay int) returns setof bigint language sql as
             $$ select pgmq.send(queue_name, msg) $$",
            "select hotrow.add_pack_rule(oid::text, 'queue_name') from pg_proc where pronamespace = 'pgmq'::regnamespace
             and proname in ('send', 'send_batch', 'read', 'pop', 'delete', 'archive', 'set_vt')",
            "select * from pgmq.send('log', '{}')",
        ),
        Form::after(
            Remedy::GraphileWorkerRules,
            "create schema if not exists graphile_worker;
             create or replace function graphile_worker.add_job(identifier text, payload json) returns text language plpgsql as
             $$ declare made text; begin execute 'insert into log values (1, $1) returning note' into made using payload; return made; end $$",
            "select hotrow.add_pack_rule(oid::text, 'identifier') from pg_proc
             where oid::regproc::text = 'graphile_worker.add_job'",
            "select * from graphile_worker.add_job('mail', '{}')",
        ),
        Form::after(
            Remedy::PgqueRules,
            "create schema if not exists pgque;
             create or replace function pgque.send(text, text) returns bigint language plpgsql as
             $$ begin execute 'insert into log values (1, $1)' using $2; return 1; end $$",
            "select hotrow.add_pack_rule(oid::text, '1') from pg_proc
             where oid::regproc::text in ('pgque.send', 'pgque.insert_event', 'pgq.insert_event')",
            "select pgque.send('q', 'm')",
        ),
    ]
}

fn of_catalog() -> Vec<Form> {
    vec![
        Form::after(
            Remedy::OwnFunction,
            "create function less(int) returns int language sql as 'select $1 - 1'",
            "alter function less(int) immutable",
            "update inv set stock = less(stock) where id = 1",
        ),
        Form::after(
            Remedy::BuiltInColumn,
            "create type pair as (a int, b int); alter table inv add p pair",
            "alter table inv alter p type text",
            "update inv set p = '(1,2)' where id = 1",
        ),
        Form::after(
            Remedy::PlainInterval,
            "create table waits (id int primary key, pause interval day); insert into waits values (1, '1 day')",
            "alter table waits alter pause type interval",
            "update waits set pause = '2 days' where id = 1",
        ),
        Form::after(
            Remedy::OwnFunctionInTable,
            "create function fits(int) returns bool language sql as 'select $1 >= 0'; alter table inv add check (fits(stock))",
            "alter function fits(int) immutable",
            UPDATE,
        ),
        Form::after(
            Remedy::OwnRowTrigger,
            "create function touch() returns trigger language plpgsql as 'begin perform pg_sleep(0); new.version := 1; return new; end';
             create trigger touch before update on inv for each row execute function touch()",
            "create or replace function touch() returns trigger language plpgsql as 'begin new.version := 1; return new; end'",
            UPDATE,
        ),
        Form::after(
            Remedy::SequenceWithoutCache,
            "create sequence ids cache 10; create table drawn (id int primary key default nextval('ids'), n int)",
            "alter sequence ids cache 1",
            "insert into drawn (n) values (1)",
        ),
        Form::after(
            Remedy::ImmediateConstraint,
            "alter table inv add constraint one unique (sku) deferrable",
            "alter table inv drop constraint one; alter table inv add constraint one unique (sku)",
            UPDATE,
        ),
    ]
}

/// Statements with more parts than a unit can have.
fn large() -> Vec<Form> {
    let list = |from: u32, to: u32| {
        let ids: Vec<String> = (from..=to).map(|id| id.to_string()).collect();
        format!("update inv set stock = 1 where id in ({})", ids.join(", "))
    };
    let statements = |count: usize| vec!["update inv set stock = stock + 1 where id = 1"; count].join("; ");
    vec![
        Form {
            instead: vec![list(1, 60), list(61, 101)],
            ..Form::new(Remedy::FewerRows, &list(1, 101), &[])
        },
        Form {
            instead: vec![statements(60), statements(41)],
            ..Form::new(Remedy::FewerStatements, &statements(101), &[])
        },
    ]
}

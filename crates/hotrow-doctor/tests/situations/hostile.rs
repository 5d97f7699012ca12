//! Users of the server try to run their own code with the rights of the doctor's role: by names, views and indexes.

use hotrow_doctor::diagnosis::findings::Situation;

use crate::planted::{Planted, pause};
use crate::{Duration, ITEMS, UPDATE};

/// `evil` calls `spy`, whose calls the server counts, if it runs in a session of the doctor.
const EVIL: &str = "create function spy() returns int language plpgsql as $$ begin return 1; end $$";
const CALLS_SPY: &str = "create function evil() returns int language plpgsql immutable as
    $$ begin if current_setting('application_name') like 'hotrow%' then perform public.spy(); end if; return 1; end $$";

const WATCHER_OF_NAMES: &str = "do $$ begin
        if to_regrole('watcher_of_names') is null then create role watcher_of_names login in role pg_monitor; end if;
    end $$";

/// A situation in which calls of functions are counted.
fn spied(tables: &str) -> Planted {
    let planted = Planted::new(tables).settings("track_functions = 'all'");
    planted.run(EVIL);
    planted.run(CALLS_SPY);
    planted
}

/// The doctor called no function of a user. The count works: a session that does is counted, and it is the only one.
fn must_not_be_spied_on(planted: &Planted) {
    planted.hold("set application_name = 'hotrow doctor'; select evil()");
    assert_eq!(planted.calls("spy"), 1);
}

#[test]
#[ignore = "long: make test-all"]
fn names_in_a_statement_stay_names() {
    for name in [r#""),9),evil()] as key--""#, r#"{table}{key}'; select evil(); --/*$$\"#] {
        let quoted = name.replace('"', "\"\"");
        let planted = spied("select 1").with_role("watcher_of_names", WATCHER_OF_NAMES);
        planted.run(&format!(
            r#"create table "{quoted}" ("TABLE_NAME" int primary key, "public." int unique, "{{table}}" int unique, "{quoted} " int, n int)
               with (fillfactor = 50)"#
        ));
        planted.run(&format!(
            r#"insert into "{quoted}" values (7, 1, 1, 1, 0); grant select on "{quoted}" to watcher_of_names"#
        ));
        let update = format!(r#"update "{quoted}" set n = n + 1 where "TABLE_NAME" = $1"#);
        let planted = planted.loads(12, update);
        planted.examine(Situation::HotRow, |report| {
            assert!(
                report.row(0).starts_with(name) && report.row(0).contains("TABLE_NAME = 7"),
                "{}",
                report.row(0)
            );
        });
        must_not_be_spied_on(&planted);
    }
}

#[test]
#[ignore = "long: make test-all"]
fn a_view_in_the_place_of_a_table_is_not_read() {
    let planted = spied(ITEMS)
        .with_role("watcher_of_views", "create role watcher_of_views login in role pg_monitor")
        .clients(12, async |_, client| {
            loop {
                if client.batch_execute("update item set stock = stock - 1 where id = 7").await.is_err() {
                    client.batch_execute("update moved set stock = stock - 1 where id = 7").await?;
                }
            }
        });
    planted.run("grant select on item to watcher_of_views");
    let planted = planted.clients(1, async |_, client| {
        let doctor = "select from pg_stat_activity where application_name = 'hotrow doctor'";
        while client.query(doctor, &[]).await?.is_empty() {
            pause(Duration::from_millis(20)).await;
        }
        // Late, so the row itself is seen in most samples: there are few of them on a busy machine.
        pause(Duration::from_secs(2)).await;
        client
            .batch_execute(
                "begin; alter table item rename to moved;
                 create view item as select '(0,1)'::tid as ctid, '1'::xid as xmin, evil() as id;
                 grant select on item to public; commit",
            )
            .await
    });
    planted.examine(Situation::HotRow, |report| {
        assert!(report.row(0).ends_with("(id = 7)"), "{}", report.row(0))
    });
    must_not_be_spied_on(&planted);
}

#[test]
#[ignore = "long: make test-all"]
fn a_superuser_does_not_read_tables_of_users_whose_code_it_could_run() {
    let planted = spied(ITEMS).loads(12, UPDATE.to_owned());
    planted.run("create index on item ((evil() + stock))");
    planted.run("create role carol_of_indexes; alter table item owner to carol_of_indexes");
    planted.examine(Situation::HotRow, |_| {});
    must_not_be_spied_on(&planted);
    planted.examine(Situation::HotRow, |report| {
        let next = "run the doctor as a member of pg_monitor that has SELECT on the table";
        assert!(report.findings.iter().any(|finding| finding.next == next), "{:?}", report.findings);
    });
}

/// A server that describes a statement converts its constants, which can call functions of users.
#[test]
#[ignore = "long: make test-all"]
fn constants_in_statements_are_not_converted() {
    let planted = spied(ITEMS);
    planted.run("create domain part as int check (evil() = value); alter table item add parts part[]");
    let planted = planted.clients(12, async |_, client| {
        loop {
            let text = "with changed as (update item set parts = E'{1}' where id = 7 returning id) select id from changed";
            client.batch_execute(text).await?;
        }
    });
    planted.examine(Situation::HotRow, |report| {
        let statement = &report.statements[0];
        assert_eq!(statement.verdict, "unknown", "{statement:?}");
        assert!(statement.reason.contains("hotrow explain"), "{statement:?}");
    });
    must_not_be_spied_on(&planted);
}

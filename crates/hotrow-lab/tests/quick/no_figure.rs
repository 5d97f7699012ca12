//! Tests that applications that batch give no figure if the rows contradict their answers.

use crate::bench::{Bench, schema_exists};
use hotrow_postgres::PrivateServer;

#[test]
fn a_run_whose_counter_another_session_changed_gives_no_figure() {
    let server = PrivateServer::builder().label("bench-upstream").start().unwrap();
    let bench = Bench::new();
    let spoil = "create function public.spoil() returns trigger language plpgsql as $$
                 begin new.value := new.value + 1; return new; end $$";
    server.query(spoil).unwrap();
    // Every history of the benchmark is damaged as soon as its table exists.
    let hook = "create function public.hook() returns event_trigger language plpgsql as $$
                begin
                    if to_regclass('hotrow_bench.application_ledger') is not null then
                        execute 'create or replace trigger spoil before insert on hotrow_bench.application_ledger
                            for each row when (new.version = 2) execute function public.spoil()';
                    end if;
                end $$";
    server.query(hook).unwrap();
    server
        .query(
            "create event trigger hook on ddl_command_end when tag in ('CREATE VIEW')
                execute function public.hook()",
        )
        .unwrap();
    let outcome =
        bench.run(&["counter", "--techniques", "direct,app-batching", "--upstream", &server.url()]).unwrap();
    assert_eq!(outcome.failures.len(), 1, "{:?}", outcome.failures);
    assert!(outcome.failures[0].contains("app-batching"), "{:?}", outcome.failures);
    assert!(outcome.failures[0].contains("no longer add up"), "{:?}", outcome.failures);
    assert!(!schema_exists(&server), "the benchmark's schema was left behind");
    assert!(server.query("select to_regnamespace('hotrow')::text").unwrap()[0][0].is_none());
}

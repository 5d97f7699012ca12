//! The installer: concurrent runs, repeated runs, runs without rights, and databases older or newer than the program.

use hotrow_sql::{DEFAULT_ROLE, Difference, Error, GroupRole, MIGRATIONS, State, check, differences, plan};

use crate::server::{Database, Session};

#[test]
fn four_installers_at_once_install_once() {
    let database = Database::empty();
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let installers: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| database.session("postgres").migrate(DEFAULT_ROLE).unwrap()))
            .collect();
        installers.into_iter().map(|installer| installer.join().unwrap()).collect()
    });
    let installed: Vec<_> = outcomes.iter().map(|outcome| outcome.migrations.len()).collect();
    assert_eq!(installed.iter().sum::<usize>(), MIGRATIONS.len(), "{installed:?}");
    assert_eq!(database.session("postgres").value("select (hotrow.increment('a')).value"), "1");
}

#[test]
fn missing_migrations_are_reported_and_then_run() {
    let database = Database::empty();
    let mut session = database.session("postgres");
    assert_eq!(session.block_on(check(&session.client)).unwrap(), State::Missing(MIGRATIONS.len()));
    assert_eq!(session.block_on(plan(&session.client)).unwrap(), MIGRATIONS);
    assert_eq!(session.value("select to_regnamespace('hotrow') is null"), "t");

    session.migrate(DEFAULT_ROLE).unwrap();
    assert_eq!(session.block_on(check(&session.client)).unwrap(), State::Fits);
    assert_eq!(session.block_on(plan(&session.client)).unwrap(), []);
    assert_eq!(session.migrate(DEFAULT_ROLE).unwrap().migrations, []);

    session.run("insert into hotrow.migration (number, name) values (9999, 'from the future')");
    assert_eq!(session.block_on(check(&session.client)).unwrap(), State::Newer(9999));
    assert!(matches!(session.migrate(DEFAULT_ROLE), Err(Error::Newer { found: 9999, .. })));
}

#[test]
fn a_role_that_owns_only_its_schema_installs() {
    let database = Database::empty();
    let owner = database.login("owner", false);
    let name = owner.value("select current_user");
    let administrator = database.session("postgres");
    let mut owner = owner;
    assert!(matches!(owner.migrate(DEFAULT_ROLE), Err(Error::Schema)));
    administrator.run(&format!("create schema hotrow authorization {name}"));

    let group = format!("group_of_{name}");
    let outcome = owner.migrate(&group).unwrap();
    let statement = format!("create role {group} nologin");
    assert_eq!(outcome.role, GroupRole::Missing { statement: statement.clone() });
    assert_eq!(owner.value("select (hotrow.increment('a')).value"), "1");

    administrator.run(&statement);
    assert_eq!(owner.migrate(&group).unwrap().role, GroupRole::Granted);
    let may =
        format!("select has_function_privilege('{group}', 'hotrow.increment(text,bigint,uuid)', 'execute')");
    assert_eq!(owner.value(&may), "t");
}

#[test]
fn superusers_keep_the_owner_and_other_roles_must_login_as_the_owner() {
    let database = Database::empty();
    let mut administrator = database.login("administrator", false);
    let name = administrator.value("select current_user");
    let mut superuser = database.session("postgres");
    superuser.run(&format!("alter role {name} superuser"));
    let group = format!("\"Group of {name}\"");
    assert_eq!(administrator.migrate(group.trim_matches('"')).unwrap().role, GroupRole::Created);
    assert_eq!(superuser.migrate(group.trim_matches('"')).unwrap().role, GroupRole::Granted);
    let others = "select count(*) from pg_class where relnamespace = 'hotrow'::regnamespace and relowner <> ";
    assert_eq!(superuser.value(&format!("{others} '{name}'::regrole")), "0");

    // A refused installer's rollback is sent with its session's next statement.
    let is_refused = |session: &mut Session| {
        let refused = matches!(session.migrate(DEFAULT_ROLE), Err(Error::Owner { owner }) if owner == name);
        session.run("select 1");
        refused
    };
    assert!(is_refused(&mut database.login("stranger", false)));
    superuser.run(&format!("alter role {name} nosuperuser"));
    assert!(is_refused(&mut superuser));
    assert_eq!(administrator.migrate(group.trim_matches('"')).unwrap().role, GroupRole::Granted);
}

/// A function that makes mallory a superuser if another role's session executes it.
fn trap(name: &str, arguments: &str, returns: &str, mallory: &str) -> String {
    let answer = if returns == "trigger" { "new" } else { "null" };
    format!(
        "create function {name}({arguments}) returns {returns} language plpgsql as $$
        begin
            if session_user <> '{mallory}' then
                reset role;
                alter role {mallory} superuser;
                set local role {mallory};
            end if;
            return {answer};
        end $$;"
    )
}

/// Installs and compares as a superuser. Returns the errors, after it has checked that no role became a superuser.
fn is_harmless(administrator: &mut Session, mallory: &str) -> Vec<Error> {
    let found = [
        administrator.block_on(check(&administrator.client)).err(),
        administrator.block_on(plan(&administrator.client)).err(),
        administrator.migrate(DEFAULT_ROLE).err(),
    ];
    let rights = format!("select rolsuper from pg_roles where rolname = '{mallory}'");
    assert_eq!(administrator.value(&rights), "f");
    found.into_iter().flatten().collect()
}

#[test]
fn a_schema_that_another_role_has_prepared_is_not_used() {
    let trigger = "create table hotrow.migration (number int primary key, name text not null,
            installed_at timestamptz not null default clock_timestamp());
        create trigger gift before insert on hotrow.migration for each row execute function hotrow.gift();";
    let view = "create view hotrow.migration as select hotrow.gift() as number, 'x'::text as name;";
    for (returns, traps) in [("trigger", trigger), ("int", view)] {
        let database = Database::empty();
        let mut administrator = database.session("postgres");
        let mallory = database.login("mallory", false);
        let name = mallory.value("select current_user");
        administrator.run(&format!("create schema hotrow authorization {name}"));
        mallory.run(&trap("hotrow.gift", "", returns, &name));
        mallory.run(traps);
        let errors = is_harmless(&mut administrator, &name);
        assert!(
            errors.len() == 3
                && errors.iter().all(|error| matches!(error, Error::Owner { owner } if *owner == name)),
            "{errors:?}"
        );
    }
}

#[test]
fn objects_and_rights_of_other_roles_in_the_schema_are_named() {
    let database = Database::migrated();
    let mut administrator = database.session("postgres");
    let mallory = database.login("mallory", false);
    let name = mallory.value("select current_user");
    let mut refused = |what: &str| {
        let errors = is_harmless(&mut administrator, &name);
        let named = |error: &Error| matches!(error, Error::Foreign { thing, .. } if thing.contains(what));
        assert!(errors.len() == 3 && errors.iter().all(named), "{what}: {errors:?}");
    };
    let owner = database.session("postgres");
    owner.run(&format!("grant create on schema hotrow to {name}"));
    refused(&format!("{name} may create objects in it"));
    mallory.run(
        &trap("hotrow.add_merge_rule", "text, text, text, text, int", "void", &name)
            .replace("return null;", ""),
    );
    owner.run(&format!("revoke create on schema hotrow from {name}"));
    refused(&format!("hotrow.add_merge_rule(text,text,text,text,integer) belongs to {name}"));
    owner.run("drop function hotrow.add_merge_rule(text, text, text, text, int)");
    owner.run(&format!(
        "grant trigger on hotrow.migration to {name}; create schema lair authorization {name}"
    ));
    refused(&format!("{name} may create triggers on hotrow.migration"));
    mallory.run(&trap("lair.gift", "", "trigger", &name));
    mallory.run(
        "create trigger gift before insert on hotrow.migration for each row execute function lair.gift()",
    );
    owner.run(&format!("revoke trigger on hotrow.migration from {name}"));
    refused("the trigger gift on hotrow.migration");
    owner.run("drop trigger gift on hotrow.migration");
    assert!(administrator.migrate(DEFAULT_ROLE).is_ok());
}

#[test]
fn a_database_whose_owner_chooses_the_search_path_and_the_role_changes_nothing() {
    let database = Database::empty();
    let mallory = database.login("mallory", false);
    let name = mallory.value("select current_user");
    let owner = database.session("postgres");
    owner.run(&format!("create schema lair authorization {name}; create schema hotrow authorization {name}"));
    for (function, arguments, returns) in [
        ("current_setting", "text", "text"),
        ("to_regclass", "text", "regclass"),
        ("pg_advisory_xact_lock", "bigint", "void"),
        ("stolen", "oid, oid", "boolean"),
    ] {
        let body = trap(&format!("lair.{function}"), arguments, returns, &name);
        mallory.run(&if returns == "void" { body.replace("return null;", "") } else { body });
    }
    mallory.run(
        "create operator lair.= (leftarg = oid, rightarg = oid, function = lair.stolen);
        create operator lair.<> (leftarg = oid, rightarg = oid, function = lair.stolen)",
    );
    let here = owner.value("select current_database()");
    owner.run(&format!("alter database {here} set search_path = lair, pg_catalog"));
    let errors = is_harmless(&mut database.session("postgres"), &name);
    assert!(
        errors.len() == 3 && errors.iter().all(|error| matches!(error, Error::Owner { .. })),
        "{errors:?}"
    );

    owner.run(&format!("alter database {here} set role = {name}"));
    let errors = is_harmless(&mut database.session("postgres"), &name);
    assert!(matches!(&errors[2], Error::ActsAs { role } if *role == name), "{errors:?}");
}

#[test]
fn differences_from_an_installation_are_named() {
    let database = Database::migrated();
    let mut session = database.session("postgres");
    let group = "group_of_differences";
    let found = |session: &Session, role: &str| session.block_on(differences(&session.client, role)).unwrap();
    assert_eq!(found(&session, DEFAULT_ROLE), []);
    assert_eq!(found(&session, group), [Difference::NoRole(group.to_owned())]);
    session.run(&format!("create role {group}"));
    let grants = found(&session, group);
    assert!(grants.len() > 50, "{grants:?}");
    for function in
        ["hotrow.create_counter(text, text, bigint, bigint)", "hotrow.drain_batch(text[], uuid[])"]
    {
        assert!(grants.contains(&Difference::NoGrant(function.to_owned())), "{function}: {grants:?}");
    }
    session.migrate(group).unwrap();
    assert_eq!(found(&session, group), []);

    let reversed = session.value(
        "select replace(pg_get_functiondef(oid), 'desc nulls last', 'nulls last') from pg_proc where proname = 'ranked_numbers'",
    );
    let function = |name: &str| Difference::Function(format!("hotrow.{name}"));
    let reads = "hotrow.unread(bigint)";
    for (change, difference) in [
        (reversed.as_str(), function("ranked_numbers")),
        ("drop function hotrow.past(bigint, bigint, int)", function("past")),
        ("alter function hotrow.unread(bigint) security invoker", function("unread")),
        ("alter function hotrow.unread(bigint) reset search_path", function("unread")),
        ("alter function hotrow.unread(bigint) set search_path = public", function("unread")),
        ("alter function hotrow.unread(bigint) set work_mem = '1GB'", function("unread")),
        ("alter function hotrow.unread(bigint) immutable", function("unread")),
        ("alter function hotrow.unread(bigint) owner to group_of_differences", function("unread")),
        (
            "grant execute on function hotrow.unread(bigint) to public",
            Difference::ForEverybody("hotrow.unread".to_owned()),
        ),
        (
            "revoke usage on schema hotrow from public, group_of_differences",
            Difference::NoGrant("the schema hotrow".to_owned()),
        ),
        (
            "revoke execute on function hotrow.unread(bigint) from group_of_differences",
            Difference::NoGrant(reads.to_owned()),
        ),
    ] {
        session.run(&format!("begin; {change}"));
        let differences = found(&session, group);
        assert_eq!(differences.first(), Some(&difference), "{change}: {differences:?}");
        session.run("rollback");
    }
    // The next `migrate` repairs grants.
    session.run("grant execute on all functions in schema hotrow to public; revoke usage on schema hotrow from group_of_differences");
    session.migrate(group).unwrap();
    assert_eq!(found(&session, group), []);
}

//! The installer: several at once, again, without rights, behind and ahead of the database.

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
fn what_is_missing_is_told_and_then_run() {
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
fn whoever_migrates_later_leaves_the_owner_as_it_is() {
    let database = Database::empty();
    let mut owner = database.login("owner", false);
    let name = owner.value("select current_user");
    let mut administrator = database.session("postgres");
    administrator.run(&format!("create schema hotrow authorization {name}"));
    let group = format!("\"Group of {name}\"");
    assert_eq!(administrator.migrate(group.trim_matches('"')).unwrap().role, GroupRole::Created);
    let others = "select count(*) from pg_class where relnamespace = 'hotrow'::regnamespace and relowner <> ";
    assert_eq!(administrator.value(&format!("{others} '{name}'::regrole")), "0");
    assert_eq!(owner.migrate(group.trim_matches('"')).unwrap().role, GroupRole::Granted);

    let mut stranger = database.login("stranger", false);
    assert!(matches!(stranger.migrate(DEFAULT_ROLE), Err(Error::Owner { owner }) if owner == name));
}

#[test]
fn what_is_not_as_it_was_installed_is_named() {
    let database = Database::migrated();
    let mut session = database.session("postgres");
    let group = "group_of_differences";
    let found = |session: &Session, role: &str| session.block_on(differences(&session.client, role)).unwrap();
    assert_eq!(found(&session, DEFAULT_ROLE), []);
    assert_eq!(found(&session, group), [Difference::NoRole(group.to_owned())]);
    session.run(&format!("create role {group}"));
    let grants = found(&session, group);
    assert!(grants.len() > 50, "{grants:?}");
    assert_eq!(
        grants[0],
        Difference::NoGrant("hotrow.create_counter(text, text, bigint, bigint)".to_owned())
    );
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
    // What is only granted is put right by the next `migrate`.
    session.run("grant execute on all functions in schema hotrow to public; revoke usage on schema hotrow from group_of_differences");
    session.migrate(group).unwrap();
    assert_eq!(found(&session, group), []);
}

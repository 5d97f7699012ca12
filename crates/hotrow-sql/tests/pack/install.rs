//! The installer: several at once, again, without rights, behind and ahead of the database.

use hotrow_sql::{DEFAULT_ROLE, Error, GroupRole, MIGRATIONS, State, check, plan};

use crate::server::Database;

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

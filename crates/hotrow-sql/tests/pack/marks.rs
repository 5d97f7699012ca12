//! Marks of lanes: who gets which mark, how many there are, and who can read and set them.

use hotrow_sql::DEFAULT_ROLE;

use crate::server::{Database, Session};

#[test]
fn a_mark_belongs_to_one_connection_and_gets_a_new_owner_after_ten_minutes_without_one() {
    let database = Database::migrated();
    let owner = database.session("postgres");
    let (member, other) = (database.login("member", true), database.login("other", true));
    let take = |session: &Session, mark: &str| session.ask(&format!("select hotrow.claim_mark('{mark}')"));
    let mark = member.value("select hotrow.open_mark()");
    let (sequence, generation) = mark.split_once('/').unwrap();
    assert_eq!(generation, "1");
    assert_eq!(take(&member, &mark), Ok(vec!["0".to_owned()]));
    member.run(&format!("select setval('{sequence}', 7)"));
    assert_eq!(other.ask(&format!("select setval('{sequence}', 8)")), Err("42501".to_owned()));
    assert_eq!(take(&other, &mark), Ok(vec![]), "the mark belongs to another role");
    let name = member.value("select session_user");
    let second = database.session(&name);
    assert_eq!(take(&second, &mark), Ok(vec!["-".to_owned()]), "another connection has the mark");
    let opened = || second.value("select hotrow.open_mark()");
    // A mark in use keeps its owner, however long ago it was found unused.
    let later = || owner.run("update hotrow.mark set unused_since = unused_since - interval '1 hour'");
    owner.run("update hotrow.mark set unused_since = now() - interval '1 hour'");
    assert_ne!(opened().split_once('/').unwrap().0, sequence);
    drop(member);
    // The locks of this database: other tests use the same server.
    let free = || {
        owner.until(
            "not exists (select from pg_locks where locktype = 'advisory'
                and database = (select oid from pg_database where datname = current_database()))",
        );
    };
    free();
    // The mark is now found unused, so ten minutes begin.
    owner.run(&format!("delete from hotrow.mark where 'hotrow.mark_' || key <> '{sequence}'"));
    assert_ne!(opened().split_once('/').unwrap().0, sequence);
    later();
    let again = database.session(&name);
    assert_eq!(take(&again, &mark), Ok(vec!["7".to_owned()]), "the lane reconnects in time");
    drop(again);
    free();
    owner.run(&format!("delete from hotrow.mark where 'hotrow.mark_' || key <> '{sequence}'"));
    assert_ne!(opened().split_once('/').unwrap().0, sequence);
    later();
    assert_eq!(opened(), format!("{sequence}/2"));
    assert_eq!(take(&second, &mark), Ok(vec![]), "the mark has another owner");
    assert_eq!(take(&second, &format!("{sequence}/2")), Ok(vec!["7".to_owned()]));
    assert_eq!(take(&second, "nonsense"), Ok(vec![]));
}

#[test]
fn a_session_that_acts_as_another_role_gets_no_mark() {
    let database = Database::migrated();
    let owner = database.session("postgres");
    let other = database.login("third", true);
    let name = other.value("select session_user");
    owner.run(&format!(
        "create role {name}_acting; grant {name}_acting to {name}; grant hotrow_caller to {name}_acting"
    ));
    assert_eq!(other.value(&format!("set role {name}_acting; select hotrow.open_mark() is null")), "t");
}

#[test]
fn a_role_that_was_dropped_and_created_again_can_set_the_marks_that_it_gets() {
    let database = Database::migrated();
    let owner = database.session("postgres");
    let first = database.login("again", true);
    let name = first.value("select session_user");
    let mark = first.value("select hotrow.open_mark()");
    assert_eq!(first.ask(&format!("select hotrow.claim_mark('{mark}')")), Ok(vec!["0".to_owned()]));
    drop(first);
    owner.until(&format!("not exists (select from pg_stat_activity where usename = '{name}')"));
    owner.run(&format!(
        "drop owned by {name}; drop role {name}; create role {name} login in role {DEFAULT_ROLE}"
    ));
    owner.run("update hotrow.mark set unused_since = now() - interval '1 hour'");
    let second = database.session(&name);
    let (sequence, _) = mark.split_once('/').unwrap();
    assert_eq!(second.ask(&format!("select setval('{sequence}', 7)")), Err("42501".to_owned()));
    let again = second.value("select hotrow.open_mark()");
    assert_eq!(again, format!("{sequence}/2"));
    assert_eq!(second.ask(&format!("select hotrow.claim_mark('{again}')")), Ok(vec!["0".to_owned()]));
    second.run(&format!("select setval('{sequence}', 7)"));
}

#[test]
fn marks_of_roles_that_no_longer_exist_go_to_other_roles() {
    let database = Database::migrated();
    let owner = database.session("postgres");
    let first = database.login("gone", true);
    let name = first.value("select session_user");
    let mark = first.value("select hotrow.open_mark()");
    drop(first);
    owner.until(&format!("not exists (select from pg_stat_activity where usename = '{name}')"));
    owner.run("update hotrow.mark set unused_since = now() - interval '1 hour'");
    let second = database.login("next", true);
    let (sequence, _) = mark.split_once('/').unwrap();
    assert_ne!(second.value("select hotrow.open_mark()").split_once('/').unwrap().0, sequence);
    owner.run(&format!("drop owned by {name}; drop role {name}"));
    let given = second.value("select hotrow.open_mark()");
    assert_eq!(given, format!("{sequence}/2"));
    assert_eq!(second.ask(&format!("select hotrow.claim_mark('{given}')")), Ok(vec!["0".to_owned()]));
}

#[test]
fn a_role_opens_a_bounded_number_of_marks() {
    let database = Database::migrated();
    let owner = database.session("postgres");
    let (greedy, other) = (database.login("greedy", true), database.login("modest", true));
    let opened = greedy.value("select count(hotrow.open_mark()) from generate_series(1, 210)");
    let sequences = "select count(*) from pg_class where relkind = 'S' and relname like 'mark\\_%'";
    assert_eq!((opened.as_str(), owner.value(sequences).as_str()), ("200", "200"));
    assert_eq!(other.value("select hotrow.open_mark() is not null"), "t");
    // They are reused after ten minutes without a connection.
    owner.run("update hotrow.mark set unused_since = now() - interval '1 hour'");
    assert_eq!(greedy.value("select hotrow.open_mark() is not null"), "t");
    assert_eq!(owner.value(sequences), "201");
}

#[test]
fn a_mark_whose_sequence_is_missing_is_not_given_away() {
    let database = Database::migrated();
    let owner = database.session("postgres");
    let member = database.login("partial", true);
    let mark = member.value("select hotrow.open_mark()");
    let (sequence, _) = mark.split_once('/').unwrap();
    owner.run(&format!(
        "drop sequence {sequence}; update hotrow.mark set unused_since = now() - interval '1 hour'"
    ));
    assert_ne!(member.value("select hotrow.open_mark()").split_once('/').unwrap().0, sequence);
    assert_eq!(owner.value("select count(*) from hotrow.mark"), "1");
}

/// A value of a mark shows the secret number of the connection that has set it.
#[test]
fn a_role_can_set_its_marks_but_not_read_them() {
    let database = Database::migrated();
    let member = database.login("reader", true);
    let mark = member.value("select hotrow.open_mark()");
    let (sequence, _) = mark.split_once('/').unwrap();
    let setter = database.session(&member.value("select session_user"));
    setter.run(&format!("select setval('{sequence}', 2305843009213694000)"));
    for (query, code) in [
        (format!("select nextval('{sequence}')"), "2200H"),
        (format!("select currval('{sequence}')"), "42501"),
        (format!("select last_value from {sequence}"), "42501"),
        ("select lastval()".to_owned(), "55000"),
    ] {
        assert_eq!(member.ask(&query), Err(code.to_owned()), "{query}");
    }
    let listed = "select count(last_value) from pg_sequences where schemaname = 'hotrow'";
    assert_eq!(member.value(listed), "0");
}

/// A gateway of the first form must not read the values of this form, and the other way round.
#[test]
fn marks_of_the_first_form_are_removed() {
    let database = Database::migrated();
    let mut owner = database.session("postgres");
    owner.run(
        "delete from hotrow.migration where number = 32; insert into hotrow.migration values (28, '0028_marks');
        drop function hotrow.claim_mark(text);
        create function hotrow.take_mark(mark text) returns setof bigint language sql as 'select 1000000::bigint';
        insert into hotrow.mark (key, role) values (7, 'postgres'); create sequence hotrow.mark_7",
    );
    owner.migrate(DEFAULT_ROLE).unwrap();
    assert_eq!(owner.value("select to_regprocedure('hotrow.take_mark(text)') is null"), "t");
    assert_eq!(owner.value("select to_regclass('hotrow.mark_7') is null"), "t");
    let mark = owner.value("select hotrow.open_mark()");
    assert_eq!(owner.value(&format!("select hotrow.claim_mark('{mark}')")), "0");
}

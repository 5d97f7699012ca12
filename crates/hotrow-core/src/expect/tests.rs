//! The state of a session's expectations after each reply, case by case.

use super::Message::*;
use super::*;

type Sent = Message<u32>;

fn bytes(name: &str) -> Bytes {
    Bytes::copy_from_slice(name.as_bytes())
}

fn names(name: &str, statement: u32) -> Sent {
    Parse(bytes(name), Box::new(statement), Some(Preparation::named(statement.into(), 1)))
}

fn closes(name: &str) -> Sent {
    Close(Some(bytes(name)))
}

fn bind() -> Sent {
    Bind(Bytes::new(), None)
}

fn execute() -> Sent {
    Execute(RunEffects::default())
}

fn query() -> Sent {
    Query(RunEffects::default())
}

fn copies() -> RunEffects {
    RunEffects { may_copy: true, ..RunEffects::default() }
}

/// A connection and its session's expectations.
#[derive(Default)]
struct Connection {
    expected: Expected<u32>,
    names: Names<u32>,
    prepared: PreparedStatements,
}

impl Connection {
    fn with(sent: impl IntoIterator<Item = Sent>) -> Self {
        let mut connection = Connection::default();
        connection.send(sent);
        connection
    }

    fn send(&mut self, sent: impl IntoIterator<Item = Sent>) {
        sent.into_iter().for_each(|message| self.expected.sent(message));
    }

    fn meaning(&self, name: &[u8]) -> Option<&u32> {
        self.expected.meaning(&self.names, name)
    }

    fn reply(&mut self, tag: u8, body: &[u8]) -> Reply {
        self.expected.received(&mut self.names, &mut self.prepared, tag, body)
    }

    /// Processes replies that are all for the client.
    fn forward(&mut self, tags: &[u8]) {
        for tag in tags {
            assert_eq!(self.reply(*tag, b""), Reply::Forward, "{}", char::from(*tag));
        }
    }

    fn is_prepared(&self, statement: u64, parsed: u64) -> bool {
        self.expected
            .preparation(&self.prepared, StatementName::Named(statement))
            .is_some_and(|there| there.parsed >= parsed)
    }
}

#[test]
fn the_gateways_replies_are_swallowed_between_the_clients() {
    let own = OwnParse(Some(Preparation::named(7, 3)));
    let mut c =
        Connection::with([OwnClose(Some(StatementName::Named(7))), own, bind(), Describe, execute(), Sync]);
    assert_eq!([c.reply(b'3', b""), c.reply(b'1', b"")], [Reply::Swallow; 2]);
    c.forward(b"2TDDCZ");
    assert!(c.expected.is_settled());
    assert!(c.is_prepared(7, 3) && !c.is_prepared(7, 4), "a later Parse of the client needs newer types");
}

#[test]
fn an_error_skips_to_the_next_sync_only() {
    let mut c = Connection::with([bind(), execute(), bind(), execute(), Sync, bind(), execute(), Sync]);
    c.forward(b"2EZ2CZ");
    assert!(c.expected.is_settled());
}

#[test]
fn skipped_messages_have_no_effect() {
    let mut c = Connection::with([names("a", 1), Sync]);
    c.forward(b"1Z");
    c.send([bind(), closes("a"), names("b", 2), OwnParse(Some(Preparation::named(3, 2))), Sync]);
    assert!(c.expected.is_in_doubt(b"a") && c.expected.is_in_doubt(b"b"));
    c.forward(b"EZ");
    assert_eq!(c.meaning(b"a"), Some(&1));
    assert_eq!(c.meaning(b"b"), None);
    assert!(c.is_prepared(1, 1) && !c.is_prepared(2, 1) && !c.is_prepared(3, 1));
}

#[test]
fn a_message_of_the_same_group_implies_that_earlier_ones_succeeded() {
    let mut c = Connection::with([names("a", 1)]);
    assert_eq!(c.meaning(b"a"), Some(&1));
    assert!(c.is_prepared(1, 1));
    c.send([closes("a")]);
    assert!(!c.expected.is_in_doubt(b"a") && c.meaning(b"a").is_none());
    c.send([names("a", 2), Sync]);
    assert!(c.expected.is_in_doubt(b"a"));
    assert!(!c.is_prepared(2, 1), "it may have failed; only another Parse makes it certain");
    c.forward(b"131Z");
    assert_eq!(c.meaning(b"a"), Some(&2));
}

#[test]
fn only_a_sync_is_sent_to_a_server_that_skips() {
    let mut c = Connection::with([bind(), execute()]);
    c.forward(b"E");
    assert!(c.expected.skips() && !c.expected.is_settled());
    c.send([Sync]);
    assert!(!c.expected.skips());
    c.forward(b"Z");
    assert!(c.expected.is_settled());
}

#[test]
fn a_query_after_an_error_is_skipped_and_a_failing_query_skips_nothing() {
    let mut c = Connection::with([bind(), query(), Sync, query(), query(), FunctionCall, FunctionCall]);
    c.forward(b"EZEZCZEZVZ");
    assert!(c.expected.is_settled());
    assert_eq!(c.reply(b'Z', b"I"), Reply::Unexpected);
}

#[test]
fn a_query_or_a_failing_parse_drops_the_unnamed_statement() {
    let unnamed = |statement: u32| {
        Parse(Bytes::new(), Box::new(statement), Some(Preparation::unnamed(statement.into(), 1)))
    };
    let is_there = |c: &Connection, statement: u64| {
        let there = c.expected.preparation(&c.prepared, StatementName::Unnamed);
        there == Some(Preparation::unnamed(statement, 1))
    };
    let mut c = Connection::with([unnamed(1), Sync]);
    c.forward(b"1Z");
    assert!(is_there(&c, 1) && c.meaning(b"") == Some(&1));
    c.send([bind(), unnamed(2), Sync]);
    c.forward(b"EZ");
    assert!(is_there(&c, 1) && c.meaning(b"") == Some(&1), "it was skipped");
    c.send([unnamed(2), Sync]);
    c.forward(b"EZ");
    assert!(!is_there(&c, 1) && c.meaning(b"").is_none());
    c.send([unnamed(3), query()]);
    assert!(!c.expected.is_in_doubt(b"") && c.meaning(b"").is_none());
    c.forward(b"1CZ");
    assert!(!is_there(&c, 3) && c.meaning(b"").is_none());
}

#[test]
fn deallocate_removes_a_name_only_if_the_server_confirms_it() {
    let takes = || RunEffects { deallocates: Some(bytes("a")), ..RunEffects::default() };
    let mut c = Connection::with([names("a", 1), Sync, Query(takes())]);
    c.forward(b"1Z");
    assert!(c.expected.is_in_doubt(b"a"), "messages after a Query run even if the Query fails");
    c.forward(b"EZ");
    assert_eq!(c.meaning(b"a"), Some(&1));
    c.send([Placeholder(bytes("a")), Execute(takes())]);
    assert!(c.expected.must_wait() && c.expected.needs_flush());
    assert_eq!(c.reply(b'1', b""), Reply::Swallow);
    assert_eq!(c.reply(b'C', b"DEALLOCATE\0"), Reply::Forward);
    assert!(!c.expected.must_wait() && c.meaning(b"a").is_none());
    assert!(c.expected.take_placeholders().is_empty(), "it has removed the created name");
}

#[test]
fn deallocate_all_keeps_the_unnamed_statement_and_removes_all_prepared_ones() {
    let all = RunEffects { deallocates_all: true, ..RunEffects::default() };
    let mut c = Connection::with([names("a", 1), names("", 2), bind(), Execute(all), Sync]);
    assert!(c.expected.is_in_doubt(b"a") && c.expected.is_in_doubt(b"other"));
    c.forward(b"112");
    assert_eq!(c.reply(b'C', b"DEALLOCATE ALL\0"), Reply::Forward);
    assert!(c.names.keys().eq([""]));
    assert!(!c.is_prepared(1, 1));
}

#[test]
fn a_created_name_is_closed_where_the_server_does_not_skip_the_close() {
    let mut c =
        Connection::with([names("a", 1), Placeholder(bytes("a")), Parse(bytes("a"), Box::new(2), None)]);
    assert!(c.expected.must_wait());
    assert_eq!([c.reply(b'1', b""), c.reply(b'1', b"")], [Reply::Forward, Reply::Swallow]);
    c.forward(b"E");
    assert!(c.expected.skips() && !c.expected.must_wait());
    c.send([Sync]);
    assert_eq!(c.expected.take_placeholders(), ["a"]);
    assert_eq!(c.meaning(b"a"), Some(&1));
    // A created name whose Parse was skipped does not exist.
    let mut c = Connection::with([bind(), Placeholder(bytes("a")), Parse(bytes("a"), Box::new(2), None)]);
    c.forward(b"E");
    assert!(c.expected.take_placeholders().is_empty());
}

#[test]
fn old_statements_are_closed_for_new_ones() {
    let mut c = Connection::default();
    let most = u64::try_from(crate::limits::PREPARED_MAX).unwrap();
    (1..=most).for_each(|statement| assert_eq!(c.prepared.add(statement), None));
    assert_eq!(c.expected.oldest(&c.prepared).next(), Some(1));
    c.send([OwnClose(Some(StatementName::Named(1)))]);
    assert_eq!(c.expected.oldest(&c.prepared).next(), Some(2), "the first is being closed");
    assert_eq!(c.reply(b'3', b""), Reply::Swallow);
    assert_eq!(c.expected.oldest(&c.prepared).next(), None);
    assert_eq!(c.prepared.add(1), None);
    assert_eq!(c.prepared.add(0), Some(2));
}

#[test]
fn no_message_follows_a_possible_copy_before_its_result_is_known() {
    let mut c = Connection::with([bind(), Execute(copies())]);
    assert!(c.expected.must_wait() && c.expected.needs_flush() && !c.expected.needs_flush());
    c.forward(b"2C");
    assert!(!c.expected.must_wait(), "it was not a COPY");
    c.send([Execute(copies())]);
    c.forward(b"E");
    assert!(!c.expected.must_wait() && c.expected.skips(), "it has failed");
}

#[test]
fn syncs_among_copy_data_are_ignored() {
    let mut c = Connection::with([bind(), Execute(copies())]);
    c.forward(b"2G");
    assert!(c.expected.is_reading_copy() && !c.expected.must_wait());
    c.send([Sync, Sync]);
    c.expected.sent_copy_end();
    assert!(c.expected.must_wait() && c.expected.needs_flush());
    c.forward(b"C");
    assert!(!c.expected.must_wait() && !c.expected.is_settled());
    c.send([Sync]);
    c.forward(b"Z");
    assert!(c.expected.is_settled());
}

#[test]
fn a_copy_that_fails_before_its_sync_is_read_answers_the_sync() {
    for (readies, skips) in [(1, true), (2, false), (3, false)] {
        let mut c = Connection::with([bind(), Execute(copies())]);
        c.forward(b"2G");
        c.send([Sync, Sync]);
        assert_eq!(c.reply(b'E', b""), Reply::ForwardAndAsk);
        assert!(c.expected.must_wait());
        assert_eq!(c.reply(b'Z', b"I"), Reply::Swallow);
        (1..readies).for_each(|_| c.forward(b"Z"));
        assert_eq!(c.reply(b'3', b""), Reply::Swallow);
        assert!(!c.expected.must_wait());
        assert_eq!((c.expected.skips(), c.expected.is_settled()), (skips, !skips));
    }
}

#[test]
fn one_query_can_have_several_copies() {
    let mut c = Connection::with([Query(copies())]);
    for _ in 0..2 {
        c.forward(b"G");
        c.expected.sent_copy_end();
        assert!(c.expected.must_wait());
        c.forward(b"C");
        assert!(c.expected.must_wait(), "there can be another COPY");
    }
    c.forward(b"Z");
    assert!(!c.expected.must_wait() && c.expected.is_settled());
    c.send([Query(copies())]);
    c.forward(b"G");
    c.send([Sync]);
    assert_eq!(c.reply(b'E', b""), Reply::ForwardAndAsk);
    c.forward(b"Z");
    assert_eq!([c.reply(b'Z', b"I"), c.reply(b'3', b"")], [Reply::Swallow; 2]);
    assert!(c.expected.is_settled());
}

/// The server ignores the statement behind a BEGIN that it refuses, so the session ends.
#[test]
fn a_refused_begin_of_the_gateway_is_not_the_clients_error() {
    let mut c = Connection::with([OwnBegin, query()]);
    assert_eq!(c.reply(b'1', b""), Reply::Swallow);
    assert_eq!(c.reply(b'E', b""), Reply::NotBegun);
    let mut c = Connection::with([OwnBegin, OwnClose(None), query()]);
    for tag in *b"12C3" {
        assert_eq!(c.reply(tag, b""), Reply::Swallow, "{}", char::from(tag));
    }
    c.forward(b"CZ");
}

/// The gateway fails a transaction with a message and a Sync of its own. The client's next message runs after it.
#[test]
fn a_failure_of_the_gateway_is_not_the_clients_error() {
    let mut c = Connection::with([OwnBegin, OwnUnit]);
    for tag in *b"12CEZ" {
        assert_eq!(c.reply(tag, b"E"), Reply::Swallow, "{}", char::from(tag));
    }
    assert!(c.expected.is_settled());
    c.send([names("a", 1), Sync]);
    c.forward(b"EZ");
    assert_eq!(c.meaning(b"a"), None);
}

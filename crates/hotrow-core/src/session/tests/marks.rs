//! For each fact that decides whether another session may get a connection: what becomes of a connection where it was seen.
//! A new mark or a new effect without a line here does not compile.

use bytes::BytesMut;
use hotrow_wire::backend::tag;
use hotrow_wire::put_frame;

use super::client::Client;
use super::connection::SimConnection;
use super::environment::{Shared, SimEnvironment, SimStatement};
use crate::classify::Effect;
use crate::expect::{Expected, Message, RunEffects, StatementName};
use crate::session::marks::Mark;
use crate::session::{Environment, Need, StateLeft, StatementOf};
use crate::settings::{Parsing, Settings};

type SimMark = Mark<SimStatement>;

/// A mark as it is written, the mark, and what becomes of a connection where nothing else was seen.
type Line = (&'static str, fn() -> SimMark, &'static str);

/// What the server says if nothing is left.
fn nothing_left() -> StateLeft {
    StateLeft {
        effect: Effect::NONE,
        channels: Some([].into()),
        speaks_utf8: true,
        settings: Some(Settings::default()),
        prepared: Some(0),
    }
}

/// A session with a connection.
fn holder() -> Client {
    let mut client = Client::new(Shared::new(fastrand::Rng::with_seed(1)), 0, BytesMut::new());
    client.session.connected(SimConnection::default());
    client
}

/// A statement that calls a function.
fn call() -> StatementOf<SimEnvironment> {
    holder().session.env.extended(b"select f()", b"")
}

/// What becomes of the session's connection after a unit in which these marks were seen, in words. The server says that this
/// state is left.
fn end(client: &mut Client, marks: impl IntoIterator<Item = SimMark>, found: StateLeft) -> &'static str {
    let session = &mut client.session;
    marks.into_iter().for_each(|mark| session.held().marks.note(mark));
    session.unit_over(true);
    session.held().unit_ended = true;
    let (mut found, mut is_asked) = (Some(found), false);
    loop {
        match client.step().expect("the session goes on").expect("a need") {
            Need::StateLeft => {
                client.session.state_found(found.take().expect("the server is asked once"));
                is_asked = true;
            }
            Need::Restore => client.session.restored(),
            Need::Event => return if is_asked { "asked, kept" } else { "kept" },
            Need::Release { reusable: true, .. } => return if is_asked { "asked, reused" } else { "reused" },
            Need::Release { reusable: false, .. } => {
                return if is_asked { "asked, closed" } else { "closed" };
            }
            _ => panic!("an unexpected need"),
        }
    }
}

fn end_after(marks: impl IntoIterator<Item = SimMark>) -> &'static str {
    end(&mut holder(), marks, nothing_left())
}

/// A list of marks, each with what becomes of the connection. Each variant has a line.
macro_rules! marks {
    ($($pattern:pat = $mark:expr => $end:literal,)*) => {{
        let _ = |mark: SimMark| match mark { $($pattern => {})* };
        vec![$((stringify!($mark), (|| $mark) as fn() -> SimMark, $end)),*]
    }};
}

fn each_mark() -> Vec<Line> {
    marks! {
        Mark::Left(_) = Mark::Left(Effect::UNKNOWN) => "kept",
        Mark::Unproven = Mark::Unproven => "asked, reused",
        Mark::Doubt = Mark::Doubt => "asked, reused",
        Mark::Channels = Mark::Channels => "asked, reused",
        Mark::Unjudged(_) = Mark::Unjudged(call()) => "asked, kept",
        Mark::Redefinition = Mark::Redefinition => "reused",
        Mark::Parses(_) = Mark::Parses(Parsing::Otherwise) => "reused",
        Mark::Names(_) = Mark::Names(Parsing::Otherwise) => "reused",
        Mark::Used(_) = Mark::Used(1) => "reused",
        Mark::Executed { .. } = Mark::Executed { statement: call(), sets: 0, is_clean: true } => "reused",
        Mark::Failure = Mark::Failure => "reused",
        Mark::FunctionCall = Mark::FunctionCall => "asked, reused",
        Mark::Missing = Mark::Missing => "closed",
        Mark::Closing = Mark::Closing => "closed",
    }
}

#[test]
fn each_mark_keeps_cleans_or_closes_its_connection() {
    assert_eq!(end_after([]), "reused");
    for (name, mark, expected) in each_mark() {
        assert_eq!(end_after([mark()]), expected, "{name}");
    }
}

#[test]
fn no_second_mark_gives_back_a_connection_that_a_first_one_does_not() {
    for (first, mark, alone) in each_mark() {
        for (second, other, _) in each_mark() {
            for marks in [[mark(), other()], [other(), mark()]] {
                let both = end_after(marks);
                let is_safe = match alone {
                    "reused" => true,
                    "asked, reused" => both != "reused",
                    _ => !both.ends_with("reused"),
                };
                assert!(is_safe, "{first}: {alone}, with {second}: {both}");
            }
        }
    }
}

#[test]
fn a_connection_that_closes_is_kept_if_state_may_be_lost_with_it() {
    for mark in [Mark::Unproven, Mark::Doubt, Mark::Unjudged(call()), Mark::FunctionCall] {
        assert_eq!(end_after([mark, Mark::Closing]), "kept");
    }
}

/// What a session reads behind its answer if the server ends the backend at that moment, and whether the client gets it.
fn is_told(mark: Option<SimMark>) -> bool {
    const FATAL: &[u8] = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0";
    let mut client = holder();
    let session = &mut client.session;
    session.held().expected.sent(Message::Query(RunEffects::default()));
    mark.into_iter().for_each(|mark| session.held().marks.note(mark));
    let mut input = BytesMut::new();
    put_frame(&mut input, tag::READY, |out| out.extend_from_slice(b"I"));
    put_frame(&mut input, tag::ERROR, |out| out.extend_from_slice(FATAL));
    session.replies(&input, &mut 0).unwrap();
    let answers = client.answers.borrow();
    answers.out.windows(FATAL.len()).any(|window| window == FATAL)
}

#[test]
fn an_error_behind_the_answer_is_told_only_to_a_session_that_ends_with_its_connection() {
    assert!(!is_told(None), "the next statement runs on another connection");
    assert!(is_told(Some(Mark::Left(Effect { temporary: true, ..Effect::NONE }))));
    assert!(is_told(Some(Mark::Doubt)));
}

/// A list of effects, each with what becomes of a connection where the effect is all that is left. Each effect has a line.
macro_rules! effects {
    ($($effect:ident => $end:literal,)*) => {{
        let Effect { $($effect: _),* } = Effect::NONE;
        [$((stringify!($effect), Effect { $effect: true, ..Effect::NONE }, $end)),*]
    }};
}

#[test]
fn each_effect_that_is_left_keeps_its_connection_or_is_nothing_to_others() {
    for (name, effect, expected) in effects! {
        settings => "kept",
        local_settings => "reused",
        unlisted_settings => "kept",
        seed => "kept",
        role => "kept",
        temporary => "kept",
        prepared => "kept",
        listen => "kept",
        holdable_cursor => "kept",
        advisory_lock => "kept",
        touches_sequence => "reused",
        needs_sequence_state => "reused",
        name => "reused",
        dynamic_sql => "kept",
        other_language => "kept",
        unknown => "kept",
        read_here => "reused", // the session has no statement that was prepared there
    } {
        assert_eq!(end_after([Mark::Left(effect)]), expected, "{name}");
        assert_eq!(effect.pins(), expected == "kept" || effect.read_here, "{name}");
    }
}

#[test]
fn the_answer_of_the_server_keeps_cleans_or_closes_the_connection() {
    let role = Effect { role: true, ..Effect::NONE };
    for (effect, prepared, expected) in [
        (Effect::NONE, Some(0), "asked, reused"),
        (role, Some(0), "asked, kept"),
        (Effect::NONE, Some(1), "asked, closed"),
        (Effect::NONE, None, "asked, closed"),
    ] {
        let found = StateLeft { effect, prepared, ..nothing_left() };
        assert_eq!(end(&mut holder(), [Mark::Doubt], found), expected, "{effect:?} {prepared:?}");
    }
}

#[test]
fn state_that_the_server_does_not_show_keeps_the_connection_whatever_the_server_says() {
    for hidden in [
        Effect { unlisted_settings: true, ..Effect::NONE },
        Effect { seed: true, ..Effect::NONE },
        Effect { dynamic_sql: true, ..Effect::NONE },
        Effect { other_language: true, ..Effect::NONE },
        Effect { unknown: true, ..Effect::NONE },
    ] {
        assert_eq!(end_after([Mark::Left(hidden), Mark::Doubt]), "kept", "{hidden:?}");
        assert_eq!(end_after([Mark::Left(hidden), Mark::Channels]), "asked, kept", "{hidden:?}");
    }
}

#[test]
fn functions_that_are_judged_keep_the_connection_only_if_they_leave_state() {
    let judged = |hidden: Effect| {
        let mut client = holder();
        client.session.held().marks.note(Mark::Unjudged(call()));
        assert_eq!(client.session.unjudged().len(), 1);
        client.session.judged(hidden);
        end(&mut client, [], nothing_left())
    };
    assert_eq!(judged(Effect::NONE), "asked, reused");
    assert_eq!(judged(Effect { dynamic_sql: true, ..Effect::NONE }), "kept");
    // It is not known which functions the statements have called.
    assert_eq!(end_after([Mark::Unjudged(call()), Mark::Redefinition]), "kept");
}

#[test]
fn discard_all_removes_state_but_not_the_variables_of_functions() {
    for (mark, expected) in [
        (Mark::Left(Effect { temporary: true, ..Effect::NONE }), "reused"),
        (Mark::Left(Effect { unknown: true, ..Effect::NONE }), "reused"),
        (Mark::Left(Effect { seed: true, ..Effect::NONE }), "kept"),
        (Mark::Left(Effect { other_language: true, ..Effect::NONE }), "closed"),
        (Mark::Unjudged(call()), "asked, closed"), // its functions may be in such a language
    ] {
        let mut client = holder();
        client.session.held().clears = Effect::DISCARDED;
        assert_eq!(end(&mut client, [mark], nothing_left()), expected);
    }
}

#[test]
fn statements_that_were_read_otherwise_are_prepared_again_by_other_sessions() {
    for (marks, is_outdated) in [
        (vec![Mark::Parses(Parsing::Otherwise), Mark::Used(1)], true),
        (vec![Mark::Used(1), Mark::Parses(Parsing::Otherwise)], false),
    ] {
        let mut client = holder();
        client.session.held().connection.prepared.parsed(1, 5);
        marks.into_iter().for_each(|mark| client.session.held().marks.note(mark));
        client.session.held().unit_ended = true;
        let Ok(Some(Need::Release { connection, reusable: true })) = client.step() else {
            panic!("not released")
        };
        let owes_nothing = Expected::<u32>::default();
        let there = owes_nothing.preparation(&connection.prepared, StatementName::Named(1));
        assert_eq!(there.map(|there| there.parsed), Some(if is_outdated { 0 } else { 5 }));
    }
}

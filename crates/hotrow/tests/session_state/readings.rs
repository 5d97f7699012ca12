//! Constants in prepared statements keep the meaning that they had at the client's Parse, whatever settings the session, or
//! another one that shares its connection, has had since.

use hotrow_testkit::raw::{Message, bind, close, execute, parse, query, sync};
use hotrow_testkit::{Gateway, PATIENT_LANES, config_in, connect, until};

use crate::settings::{comparable, databases, own_server, session};

const UPDATE: &str = "update t set at = '2020-01-01 10:00' where id = 1 returning extract(epoch from at)";
const SET: &str = "set timezone = 'Asia/Tokyo'";
const SET_LOCAL: &str = "set local timezone = 'Asia/Tokyo'";

/// What one of two sessions does next.
enum Step {
    /// Its messages, up to a ReadyForQuery.
    Sends(usize, Vec<u8>),
    /// It leaves.
    Leaves(usize),
    /// Another client changes the table, so the server analyses statements on it again.
    Changed,
}
use Step::{Changed, Leaves, Sends};

fn ask(session: usize, text: &str) -> Step {
    Sends(session, query(text))
}

fn prepare(session: usize, name: &str, text: &str) -> Step {
    Sends(session, [parse(name, text), sync()].concat())
}

fn run(session: usize, name: &str) -> Step {
    Sends(session, [bind("", name, &[]), execute("", 0), sync()].concat())
}

/// The answers to the steps of two sessions, at this port.
async fn answers(server: u16, port: u16, database: &str, steps: &[Step]) -> Vec<Message> {
    let mut sessions = [Some(session(port, database).await), Some(session(port, database).await)];
    let outside = connect(config_in(server, "public").dbname(database)).await;
    let mut all = Vec::new();
    for step in steps {
        match step {
            Sends(number, messages) => {
                let session = sessions[*number].as_mut().expect("it has not left");
                session.send(messages).await;
                all.extend(session.until_ready(1).await);
            }
            Leaves(number) => {
                let mut session = sessions[*number].take().expect("it has not left");
                session.send(b"X\0\0\0\x04").await;
                session.until_closed().await;
            }
            Changed => {
                until("the table is not in use", async || {
                    let change = "set lock_timeout = '1s'; alter table t set (fillfactor = 90); analyze t";
                    outside.batch_execute(change).await.is_ok()
                })
                .await;
            }
        }
    }
    comparable(all)
}

/// Runs the programs directly and through a gateway.
async fn are_as_directly(programs: Vec<(String, Vec<Step>)>) {
    let (server, [direct, through]) = own_server().await;
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    for (name, steps) in programs {
        let directly = answers(server.port(), server.port(), direct, &steps).await;
        let got = answers(server.port(), gateway.port(), through, &steps).await;
        assert_eq!(got, directly, "{name}");
    }
}

/// A text of its own for each program: the gateway knows texts.
fn text(number: usize) -> String {
    format!("{UPDATE}, {number}")
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn another_session_does_not_change_what_a_statement_means() {
    let mut programs = Vec::new();
    for (own, other) in [("a", "b"), ("", "b"), ("a", ""), ("", "")] {
        for (set, end) in [(SET_LOCAL, "commit"), (SET, "rollback"), (SET_LOCAL, "rollback")] {
            for leaves in ["close", "deallocate all", "disconnect"] {
                let text = text(programs.len());
                let mut steps = vec![prepare(0, own, &text), run(0, own), ask(1, "begin"), ask(1, set)];
                steps.extend([prepare(1, other, &text), run(1, other)]);
                if leaves == "close" {
                    steps.push(Sends(1, [close(b'S', other), sync()].concat()));
                }
                steps.push(ask(1, end));
                match leaves {
                    "close" => {}
                    "disconnect" => steps.push(Leaves(1)),
                    command => steps.push(ask(1, command)),
                }
                for _ in 0..2 {
                    steps.extend([ask(0, "begin"), run(0, own), ask(0, "rollback"), run(0, own)]);
                }
                programs.push((format!("{own:?} {other:?} {set} {end} {leaves}"), steps));
            }
        }
    }
    are_as_directly(programs).await;
}

/// The server analyses the statement again while the other session has another time zone.
#[tokio::test]
async fn a_statement_that_is_analysed_again_under_other_settings_is_not_shared() {
    let mut programs = Vec::new();
    for end in ["commit", "rollback"] {
        let text = text(programs.len());
        let steps = vec![
            prepare(0, "a", &text),
            run(0, "a"),
            prepare(1, "b", &text),
            ask(1, "begin"),
            ask(1, SET_LOCAL),
            Changed,
            run(1, "b"),
            ask(1, end),
            ask(0, "begin"),
            run(0, "a"),
            ask(0, "commit"),
        ];
        programs.push((end.to_owned(), steps));
    }
    are_as_directly(programs).await;
}

#[tokio::test]
async fn a_sessions_own_names_keep_their_meaning() {
    let twice = |name| [run(0, name), run(0, name)];
    let mut programs: Vec<(&str, Vec<Step>)> = Vec::new();
    for (number, name) in ["p", ""].into_iter().enumerate() {
        // The gateway does not know what a new text leaves behind, so it asks the server after the transaction.
        let text = text(100 + number);
        let mut local = vec![ask(0, "begin"), ask(0, SET_LOCAL), prepare(0, name, &text), run(0, name)];
        local.extend([prepare(0, "commit", "commit"), run(0, "commit")]);
        local.extend(twice(name));
        programs.push(("prepared under SET LOCAL", local));
    }
    let text = text(100);
    let mut two = vec![prepare(0, "p", &text), ask(0, SET), prepare(0, "q", &text)];
    two.extend([run(0, "p"), run(0, "q"), ask(0, "set timezone = 'America/New_York'"), run(0, "p")]);
    two.extend([run(0, "q"), ask(0, "reset timezone"), run(0, "p"), run(0, "q")]);
    programs.push(("two names with one text", two));
    let mut many = vec![prepare(0, "p", &text), ask(0, SET), prepare(0, "q", &text)];
    many.extend(
        (0..520).map(|number| prepare(0, &format!("q{number}"), &format!("select $1::int + {number}"))),
    );
    many.extend([run(0, "p"), run(0, "q")]);
    programs.push(("more statements than the connection keeps", many));
    let unnamed =
        vec![prepare(0, "s", SET), prepare(0, "", &text), run(0, "s"), run(0, ""), ask(0, "reset timezone")];
    programs.push(("unnamed, before a SET by name", unnamed));
    let mut back = vec![prepare(0, "p", &text), ask(0, "begin"), ask(0, SET_LOCAL), ask(0, "savepoint a")];
    back.extend([ask(0, "set local timezone = 'Europe/Paris'"), prepare(0, "q", &text)]);
    back.extend([ask(0, "rollback to a"), prepare(0, "r", &text)]);
    back.extend(["p", "q", "r"].map(|name| run(0, name)));
    back.push(ask(0, "commit"));
    back.extend(["p", "q", "r"].map(|name| run(0, name)));
    programs.push(("savepoint", back));
    let mut discarded =
        vec![ask(0, SET), prepare(0, "p", &text), ask(0, "set timezone = 'UTC'"), run(0, "p")];
    discarded.extend([ask(0, "discard all"), prepare(0, "p", &text), run(0, "p")]);
    programs.push(("DISCARD ALL", discarded));
    are_as_directly(programs.into_iter().map(|(name, steps)| (name.to_owned(), steps)).collect()).await;
}

/// While a transaction has another time zone, the session prepares its unnamed statement. A Query would remove it.
fn unnamed_under_set_local(number: usize) -> Vec<Step> {
    let by_name = |name| prepare(0, name, name);
    let names = ["listen a", "unlisten a", "discard sequences", "select lastval()", "commit"];
    let mut steps = Vec::from(names.map(by_name));
    steps.extend([ask(0, "begin"), ask(0, SET_LOCAL), prepare(0, "", &text(number)), run(0, "")]);
    steps
}

/// A listening connection takes over the channels.
#[tokio::test]
async fn a_session_that_listens_keeps_its_unnamed_statement() {
    let mut programs = Vec::new();
    for (number, (first, in_transaction, later)) in [
        ("select 1", "listen a", "unlisten a"),
        ("select 1", "discard sequences", "listen a"),
        ("listen b", "listen a", "unlisten a"),
        ("listen a", "unlisten a", "listen a"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut steps = vec![ask(0, first)];
        steps.extend(unnamed_under_set_local(300 + number));
        for name in [in_transaction, "commit", "", later, ""] {
            steps.push(run(0, name));
        }
        programs.push((format!("{first}, {in_transaction}, {later}"), steps));
    }
    are_as_directly(programs).await;
}

/// The gateway sends another statement in the place of a read of `lastval` that has no right answer.
#[tokio::test]
async fn a_refused_read_of_a_sequence_leaves_the_unnamed_statement() {
    let (server, [direct, through]) = own_server().await;
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    let mut steps = vec![ask(0, "create sequence numbers"), ask(0, "select nextval('numbers')")];
    // The gateway knows that the statement moves no sequence.
    steps.extend([prepare(1, "p", &text(400)), run(1, "p"), run(1, "p")]);
    steps.extend(unnamed_under_set_local(400));
    steps.extend(["select lastval()", "commit", ""].map(|name| run(0, name)));
    let directly = answers(server.port(), server.port(), direct, &steps).await;
    let got = answers(server.port(), gateway.port(), through, &steps).await;
    let refused = "the sequence values of this session are on another connection of the gateway";
    assert!(got.iter().any(|message| message.field(b'M').as_deref() == Some(refused)), "{got:?}");
    let last = |messages: &[Message]| messages[messages.len() - 4..].to_vec();
    assert_eq!(last(&got), last(&directly));
}

/// A session has its connection for as long as a name lives that only this connection knows, and is packed afterwards.
#[tokio::test]
async fn a_session_is_packed_again_when_its_names_mean_the_same_everywhere() {
    let (_client, [_, through]) = databases().await;
    let gateway = Gateway::start(&PATIENT_LANES);
    let mut session = session(gateway.port(), &through).await;
    let update = "update t set n = n + 1 where id = 1";
    let packs = async |session: &mut hotrow_testkit::raw::Raw| {
        let before = gateway.metric("packed_units_total");
        for _ in 0..3 {
            session.query(update).await;
        }
        gateway.metric("packed_units_total") > before
    };
    assert!(packs(&mut session).await);
    let in_transaction = [
        query("begin"),
        query("set local statement_timeout = '5s'"),
        [parse("p", "select 'x' || $1::text"), sync()].concat(),
        query("commit"),
    ];
    session.send(&in_transaction.concat()).await;
    session.until_ready(4).await;
    assert!(packs(&mut session).await, "a timeout does not decide what a constant means");
    let in_transaction = [
        query("begin"),
        query(SET_LOCAL),
        [parse("q", &text(200)), sync(), parse("r", "select $1::int"), sync()].concat(),
        query("commit"),
    ];
    session.send(&in_transaction.concat()).await;
    session.until_ready(5).await;
    assert!(!packs(&mut session).await, "the name q belongs to the connection");
    session.send(&[close(b'S', "q"), sync()].concat()).await;
    session.until_ready(1).await;
    assert!(packs(&mut session).await);
}

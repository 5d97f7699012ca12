//! Scripts of several clients, run directly and through the gateway: each client gets the same replies, and the same
//! notifications before the same ReadyForQuery.

use hotrow_testkit::raw::{Message, Raw, bind, execute, parse, query, sync};
use hotrow_testkit::server;

use crate::{Stage, notification};

/// The clients, and what they send: several messages in one write are separated by `|`, and `@` marks an extended query.
type Script = &'static [(usize, &'static str)];

const LONG: &str =
    "listen a_name_that_is_much_longer_than_the_sixty_three_bytes_that_a_name_can_have_at_most";

const SCRIPTS: &[Script] = &[
    &[(0, "listen a"), (0, "notify a"), (0, "notify a, 'x'"), (0, "select 1"), (0, "notify b")],
    &[
        (0, "listen a"),
        (1, "notify a, '1'"),
        (0, "select 1"),
        (1, "notify a, '2'"),
        (0, "begin"),
        (0, "commit"),
    ],
    // A statement that is packed.
    &[
        (0, "listen a"),
        (1, "notify a"),
        (0, "update t set n = n + 1 where id = 1"),
        (1, "notify a, '2'"),
        (0, "select n from t where id = 1"),
    ],
    &[
        (0, "listen a"),
        (1, "notify a"),
        (0, "@update t set n = n + 1 where id = 1"),
        (1, "notify a, '2'"),
        (0, "@select 2"),
    ],
    &[(0, "listen a"), (1, "notify a"), (0, "begin; update t set n = n + 1 where id = 1; commit")],
    // Transactions.
    &[
        (0, "begin"),
        (0, "listen a"),
        (1, "notify a, 'before the commit'"),
        (0, "select 1"),
        (0, "commit"),
        (1, "notify a, 'after'"),
        (0, "select 1"),
    ],
    &[(0, "begin"), (0, "listen a"), (0, "rollback"), (1, "notify a"), (0, "select 1"), (0, "notify a")],
    &[(0, "begin; listen a; notify a, 'own'; commit"), (1, "notify a"), (0, "select 1")],
    &[
        (0, "begin"),
        (0, "listen a"),
        (0, "savepoint s"),
        (0, "listen b"),
        (0, "rollback to s"),
        (0, "commit"),
        (1, "notify a"),
        (1, "notify b"),
        (0, "select 1"),
    ],
    &[
        (0, "listen a"),
        (0, "begin"),
        (1, "notify a, '1'"),
        (0, "select 1"),
        (1, "notify a, '2'"),
        (0, "select 1 / 0"),
        (0, "select 1"),
        (0, "rollback"),
        (0, "select 1"),
    ],
    &[(0, "listen a"), (0, "begin"), (0, "notify a, 'lost'"), (0, "rollback"), (0, "notify a, 'kept'")],
    &[
        (0, "listen a"),
        (0, "begin; notify a; notify a; notify a, 'x'; notify a; notify a, 'y'; commit"),
        (0, "select 1"),
    ],
    &[
        (0, "listen a"),
        (0, "begin"),
        (0, "unlisten a"),
        (1, "notify a, '1'"),
        (0, "rollback"),
        (1, "notify a, '2'"),
        (0, "select 1"),
    ],
    &[
        (0, "listen a"),
        (0, "begin"),
        (0, "unlisten a"),
        (1, "notify a, '1'"),
        (0, "notify a, 'own'"),
        (0, "commit"),
        (1, "notify a, '2'"),
        (0, "select 1"),
    ],
    // The end of listening.
    &[
        (0, "listen a"),
        (0, "listen b"),
        (0, "unlisten a"),
        (1, "notify a"),
        (1, "notify b"),
        (0, "select 1"),
        (0, "unlisten *"),
        (1, "notify b"),
        (0, "select 1"),
    ],
    &[(0, "listen a"), (0, "select 1; unlisten a"), (1, "notify a"), (0, "select 1")],
    &[
        (0, "listen a"),
        (0, "discard all"),
        (1, "notify a"),
        (0, "select 1"),
        (0, "listen b"),
        (1, "notify b"),
        (0, "select 1"),
    ],
    &[
        (0, "listen a"),
        (0, "unlisten a"),
        (1, "notify a, '1'"),
        (0, "listen a"),
        (1, "notify a, '2'"),
        (0, "select 1"),
    ],
    // What the session sees of it.
    &[
        (0, "listen b"),
        (0, "listen a"),
        (0, "listen a"),
        (0, "select * from pg_listening_channels() order by 1"),
        (1, "select * from pg_listening_channels()"),
        (0, "begin; select * from pg_listening_channels() order by 1; unlisten a; commit"),
        (0, "select * from pg_listening_channels()"),
    ],
    &[
        (0, "begin"),
        (0, "listen a"),
        (0, "select * from pg_listening_channels()"),
        (0, "commit"),
        (0, "select * from pg_listening_channels()"),
    ],
    // Names.
    &[
        (0, "listen \"Mixed Case\""),
        (0, "listen Folded"),
        (1, "notify \"Mixed Case\""),
        (1, "notify folded"),
        (1, "notify \"mixed case\""),
        (0, "select 1"),
    ],
    &[
        (0, LONG),
        (0, "select * from pg_listening_channels()"),
        (
            1,
            "select pg_notify(c, 'x') from (select 'a_name_that_is_much_longer_than_the_sixty_three_bytes_that_a_na') x (c)",
        ),
        (0, "select 1"),
    ],
    &[
        (0, "listen \"a \"\"quoted\"\" one; -- '\""),
        (1, "notify \"a \"\"quoted\"\" one; -- '\""),
        (0, "select 1"),
    ],
    &[
        (0, "listen größe"),
        (1, "notify größe, 'é'"),
        (0, "select 1"),
        (0, "select * from pg_listening_channels()"),
    ],
    // Other ways to listen.
    &[
        (0, "do $$ begin execute 'listen a'; end $$"),
        (1, "notify a"),
        (0, "select 1"),
        (0, "do $$ begin execute 'unlisten a'; end $$"),
        (1, "notify a"),
        (0, "select 1"),
    ],
    &[
        (0, "@listen a"),
        (1, "@notify a"),
        (0, "@select 1"),
        (0, "@notify a, 'own'"),
        (0, "@unlisten a"),
        (0, "@notify a"),
    ],
    &[(0, "listen a; listen b"), (1, "begin; notify b; notify a; commit"), (0, "select 1")],
    // Together with other state.
    &[
        (0, "create temp table x ()"),
        (0, "listen a"),
        (1, "notify a"),
        (0, "select 1"),
        (0, "notify a, 'own'"),
        (0, "drop table x"),
        (1, "notify a"),
        (0, "select 1"),
    ],
    &[
        (0, "listen a"),
        (0, "create temp table x ()"),
        (1, "notify a"),
        (0, "select 1"),
        (0, "notify a, 'own'"),
        (0, "listen b"),
        (1, "notify b"),
        (0, "discard temp"),
        (0, "select * from pg_listening_channels() order by 1"),
    ],
    &[
        (0, "listen a"),
        (0, "set work_mem = '1MB'"),
        (1, "notify a"),
        (0, "show work_mem"),
        (0, "update t set n = n + 1 where id = 1"),
        (0, "listen b"),
        (1, "notify b"),
        (0, "reset all"),
        (1, "notify a"),
        (0, "select 1"),
    ],
    &[
        (0, "set hotrow.pack = off"),
        (0, "listen a"),
        (0, "notify a, 'own'"),
        (1, "notify a"),
        (0, "set hotrow.pack = on"),
        (1, "notify a"),
        (0, "select 1"),
    ],
    // Several messages at once.
    &[(0, "listen a"), (0, "notify a, '1'|notify a, '2'|select 1|notify a, '3'|notify a, '3'")],
    &[(0, "listen a|notify a, '1'|unlisten a|notify a, '2'|listen a|notify a, '3'"), (0, "select 1")],
    &[
        (0, "listen a"),
        (0, "listen b"),
        (0, "unlisten a|notify a, '1'|listen a|notify a, '2'|notify b, '3'|unlisten b|notify b, '4'"),
        (0, "notify a, '5'"),
        (0, "select * from pg_listening_channels()"),
    ],
    &[
        (0, "listen a"),
        (
            0,
            "listen b|notify b, '1'|notify a, '2'|begin; listen c; notify b, '3'; notify c, '4'; notify a, '5'; commit|select 1",
        ),
        (1, "notify c"),
        (0, "select 1"),
    ],
    &[
        (0, "listen a"),
        (0, "begin|notify a, '1'|select 1|commit|update t set n = n + 1 where id = 1|notify a, '2'"),
    ],
    &[
        (0, "listen a"),
        (
            0,
            "update t set n = n + 1 where id = 1|notify a, '1'|update t set n = n + 1 where id = 1|@notify a, '2'",
        ),
    ],
    &[
        (0, "listen a"),
        (1, "listen a"),
        (0, "notify a, 'from 0'"),
        (1, "notify a, 'from 1'"),
        (0, "select 1"),
        (1, "select 1"),
    ],
    &[
        (0, "listen a"),
        (0, "select pg_notify('a', repeat('x', 7999))"),
        (0, "select pg_notify('a', repeat('x', 8000))"),
        (0, "select 1"),
    ],
    // Another encoding.
    &[(0, "set client_encoding = latin1"), (0, "listen a"), (1, "notify a, 'é'"), (0, "select 1")],
    &[
        (0, "listen a"),
        (1, "notify a, 'é'"),
        (0, "set client_encoding = latin1"),
        (1, "notify a, 'é'"),
        (0, "select 1"),
        (0, "notify a, 'own'"),
        (0, "reset client_encoding"),
        (1, "notify a, 'é'"),
        (0, "select 1"),
    ],
];

/// The replies up to one ReadyForQuery: the notifications with the sender, and the others.
#[derive(PartialEq, Eq, Debug, Default)]
struct Window {
    notifications: Vec<(bool, Vec<u8>)>,
    replies: Vec<Message>,
}

struct Client {
    raw: Raw,
    /// The process ID that it was told.
    process_id: Vec<u8>,
    windows: Vec<Window>,
}

impl Client {
    async fn login(port: u16, database: &str) -> Self {
        let (raw, hello) = Raw::login_with(port, &[("database", database)]).await;
        let key = hello.iter().find(|message| message.tag == b'K').unwrap();
        Client { raw, process_id: key.body[..4].to_vec(), windows: Vec::new() }
    }

    async fn run(&mut self, text: &str) {
        let messages: Vec<&str> = text.split('|').collect();
        let bytes: Vec<Vec<u8>> = messages
            .iter()
            .map(|text| match text.strip_prefix('@') {
                Some(text) => [parse("", text), bind("", "", &[]), execute("", 0), sync()].concat(),
                None => query(text),
            })
            .collect();
        self.raw.send(&bytes.concat()).await;
        for _ in messages {
            let mut window = Window::default();
            for message in self.raw.until_ready(1).await {
                match notification(&message) {
                    Some(_) => {
                        let is_own = message.body[..4] == self.process_id[..];
                        window.notifications.push((is_own, message.body[4..].to_vec()));
                    }
                    None => window.replies.push(message),
                }
            }
            self.windows.push(window);
        }
    }
}

async fn play(port: u16, database: &str, script: Script) -> Vec<Vec<Window>> {
    let mut clients = Vec::new();
    for _ in 0..2 {
        clients.push(Client::login(port, database).await);
    }
    for (client, text) in script {
        clients[*client].run(text).await;
    }
    clients.into_iter().map(|client| client.windows).collect()
}

#[tokio::test]
async fn clients_get_the_notifications_of_a_direct_connection_before_the_same_ready_for_query() {
    let stage = Stage::new(&[]).await;
    for script in SCRIPTS {
        let directly = play(server().port(), &stage.database, script).await;
        stage.direct.batch_execute("update t set n = 0").await.unwrap();
        for round in 0..3 {
            let through = play(stage.gateway.port(), &stage.database, script).await;
            stage.direct.batch_execute("update t set n = 0").await.unwrap();
            for (client, (directly, through)) in directly.iter().zip(&through).enumerate() {
                let texts =
                    script.iter().filter(|(of, _)| *of == client).flat_map(|(_, text)| text.split('|'));
                for (text, (directly, through)) in texts.zip(directly.iter().zip(through)) {
                    assert_eq!(directly, through, "round {round}: client {client}: {text}: {script:?}");
                }
            }
        }
    }
    assert!(!stage.gateway.log().contains("panicked"), "{}", stage.gateway.log());
}

//! Every setting that a session can change, in transactions that are committed or rolled back, in two spellings, by the
//! superuser and by an ordinary role: the answers are those of a direct connection.

use hotrow_testkit::raw::Raw;
use hotrow_testkit::{Gateway, connect, rows, server};
use tokio_postgres::Client;

use crate::settings::{OTHER_VALUE, UPDATE, comparable, databases, session_of};

/// The number of settings that one session changes.
const AT_ONCE: usize = 8;

/// The settings of these contexts with another value than the present one, in two spellings. The settings of the
/// transaction itself cannot be changed after its first query.
const TWO_SPELLINGS: &str = "
    with other as (
        select name, vartype, coalesce(unit, '') as unit, OTHER_VALUE as value
        from pg_settings
        where context = any (array[CONTEXTS]) and name not like '%.%'
            and name not in ('transaction_isolation', 'transaction_read_only', 'transaction_deferrable', 'search_path'))
    select name, quote_literal(value), case
            when vartype = 'bool' then case value when 'on' then 'TRUE' else '0' end
            when vartype = 'enum' then quote_literal(upper(value))
            when vartype = 'integer' and unit = '8kB' then quote_literal(value::numeric * 8 || ' kB')
            when vartype in ('integer', 'real') and unit <> '' then quote_literal(value || ' ' || unit)
            when vartype in ('integer', 'real') then value
            else quote_literal(value)
        end
    from other order by name";

/// The statements of a session that changes these settings, with the spellings of their values.
fn program(settings: &[[String; 3]]) -> Vec<String> {
    let all = |text: &dyn Fn(&[String; 3]) -> String| settings.iter().map(text).collect::<Vec<_>>();
    let set = all(&|[name, value, _]| format!("set {name} = {value}"));
    let respelled = all(&|[name, _, value]| format!("SET SESSION {name} TO {value}"));
    let local = all(&|[name, value, _]| format!("select set_config('{name}', {value}, true)"));
    let reset = all(&|[name, ..]| format!("reset {name}"));
    let shown = all(&|[name, ..]| format!("current_setting('{name}')"));
    let show = vec![format!("select {}", shown.join(", "))];
    let text = |text: &str| vec![text.to_owned()];
    [
        [text("begin"), set.clone(), show.clone(), text("rollback"), show.clone(), text(UPDATE)].concat(),
        [text("begin"), local, show.clone(), text("commit"), show.clone(), text(UPDATE)].concat(),
        [text("begin"), text("savepoint s"), set, text("rollback to s"), show.clone()].concat(),
        [respelled, text("savepoint s"), reset, show.clone(), text("rollback to s"), show.clone()].concat(),
        [text("commit"), show.clone(), text(UPDATE), text("discard all"), show, text(UPDATE)].concat(),
    ]
    .concat()
}

/// The settings that this role can set, with the spellings of their values.
async fn settings(client: &Client, contexts: &str, direct: &mut Raw) -> Vec<[String; 3]> {
    let mut accepted = Vec::new();
    let all = rows(client, &TWO_SPELLINGS.replace("OTHER_VALUE", OTHER_VALUE).replace("CONTEXTS", contexts))
        .await
        .unwrap();
    let count = all.len();
    for row in all {
        let [Some(name), Some(value), Some(other)] = <[_; 3]>::try_from(row).unwrap() else {
            panic!("a NULL")
        };
        let set = direct.query(&format!("set {name} = {value}")).await;
        direct.query(&format!("reset {name}")).await;
        if set.iter().all(|message| message.tag != b'E') {
            accepted.push([name, value, other]);
        }
    }
    assert!(10 * accepted.len() > 9 * count, "only {} of {count} settings can be set", accepted.len());
    accepted
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn every_setting_follows_transactions_as_directly() {
    let (client, [direct, through]) = databases().await;
    let role = format!("{direct}_role");
    client.batch_execute(&format!("create role {role} login")).await.unwrap();
    for database in [&direct, &through] {
        let inside = connect(hotrow_testkit::config_in(server().port(), "public").dbname(database)).await;
        inside.batch_execute(&format!("grant all on t to {role}")).await.unwrap();
    }
    let gateway = Gateway::start(&[]);
    for (role, contexts) in [("postgres", "'user', 'superuser'"), (&role, "'user'")] {
        let mut probe = session_of(server().port(), &direct, role).await;
        let settings = settings(&client, contexts, &mut probe).await;
        for some in settings.chunks(AT_ONCE) {
            let mut direct = session_of(server().port(), &direct, role).await;
            let mut session = session_of(gateway.port(), &through, role).await;
            for text in program(some) {
                let [directly, through] = [&mut direct, &mut session].map(|raw| raw.query(&text));
                let (directly, through) = (comparable(directly.await), comparable(through.await));
                assert_eq!(through, directly, "{role}, {some:?}: {text}");
            }
        }
        println!("{} settings of {role}", settings.len());
    }
}

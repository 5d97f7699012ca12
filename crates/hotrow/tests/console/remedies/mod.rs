//! Tries each piece of advice that `hotrow explain`, the console and the doctor give about a statement: the other form is
//! packed, and has the same effect. Advice without a tried example fails.

mod forms;
mod sessions;

use std::collections::BTreeSet;

use hotrow_connect::config::UpstreamConfig;
use hotrow_core::classify::{Analysis, Remedy, analyse};
use hotrow_postgres::PrivateServer;
use hotrow_testkit::{config, connect, migrate, rows};
use tokio_postgres::Client;

use forms::Form;

/// The tables of each form.
const TABLES: &str =
    "create table inv (id int primary key, sku text not null, stock int not null, data jsonb default '{}',
    day date, version int not null default 0);
insert into inv (id, sku, stock) values (1, 'a', 5), (2, 'b', 5), (3, 'c', 0);
create table log (id int, note text);
create table users (id serial primary key, email text unique)";

/// A private server, and the way to its explanations.
struct Tryout {
    direct: Client,
    url: String,
    _server: PrivateServer,
}

impl Tryout {
    async fn new() -> Self {
        let server = PrivateServer::builder().label("remedies").start().unwrap();
        let url = format!("postgres://postgres@127.0.0.1:{}/postgres", server.port());
        migrate(&url);
        Tryout { direct: connect(&config(server.port())).await, url, _server: server }
    }

    async fn run(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        rows(&self.direct, sql)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {}", hotrow_testkit::describe(&error)))
    }

    /// A new schema with the tables of the form, in which all sessions then work.
    async fn enter(&self, schema: &str, form: &Form) {
        self.run(&format!("create schema {schema}")).await;
        self.run(&format!("alter role postgres set search_path = {schema}")).await;
        self.run(&format!("set search_path = {schema}")).await;
        self.run(TABLES).await;
        self.run(form.setup).await;
    }

    /// What `hotrow explain` prints.
    async fn explain(&self, sql: &str) -> String {
        let upstream: UpstreamConfig = self.url.parse().unwrap();
        hotrow_doctor::explain(upstream, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The contents of all tables of a schema.
    async fn contents(&self, schema: &str) -> Vec<String> {
        let tables = format!(
            "select relname from pg_class where relnamespace = '{schema}'::regnamespace and relkind in ('r', 'p') order by 1"
        );
        let mut all = Vec::new();
        for row in self.run(&tables).await {
            let table = row[0].clone().unwrap();
            let sql = format!("select string_agg(t::text, ' ' order by t::text) from {schema}.{table} t");
            all.push(format!("{table}: {:?}", self.run(&sql).await[0][0]));
        }
        all
    }
}

/// The advice about a statement, or about a text of several.
fn gives(explained: &str, sql: &str, remedy: Remedy) -> bool {
    let of_text = match analyse(sql) {
        Analysis::Pass(pass) => pass.reason.remedy(),
        _ => None,
    };
    explained.contains(&format!("  instead   {}", remedy.text())) || of_text == Some(remedy.text())
}

#[tokio::test]
async fn every_remedy_was_tried() {
    let tried: BTreeSet<String> = forms::all()
        .iter()
        .map(|form| form.remedy)
        .chain(sessions::all().iter().map(|session| session.remedy))
        .map(|remedy| format!("{remedy:?}"))
        .collect();
    let known: BTreeSet<String> = Remedy::ALL.iter().map(|remedy| format!("{remedy:?}")).collect();
    assert_eq!(tried, known);
}

#[tokio::test]
#[ignore = "long: make test-all"]
async fn the_form_that_each_remedy_names_is_packed_and_has_the_same_effect() {
    let tryout = Tryout::new().await;
    for (number, form) in forms::all().iter().enumerate() {
        let [before, after] = [format!("before_{number}"), format!("after_{number}")];
        let named = |sql: &str, schema: &str| sql.replace("SCHEMA", schema);
        tryout.enter(&before, form).await;
        let statement = named(&form.statement, &before);
        let explained = tryout.explain(&statement).await;
        assert!(explained.contains("passed through") || explained.contains("answered by"), "{explained}");
        assert!(gives(&explained, &statement, form.remedy), "{:?}: {explained}", form.remedy);
        if form.instead.is_empty() {
            assert!(
                form.remedy.text().starts_with("nothing") || form.remedy == Remedy::Explain,
                "{:?}",
                form.remedy
            );
            continue;
        }
        tryout.run(form.first).await;
        let original = if form.whole.is_empty() { &statement } else { form.whole };
        let returned = tryout.run(original).await;

        tryout.enter(&after, form).await;
        tryout.run(form.change).await;
        let mut instead = Vec::new();
        for message in &form.instead {
            let message = named(message, &after);
            let explained = tryout.explain(&message).await;
            let is_packed =
                ["packed\n", "merged\n", "packed as one unit"].iter().any(|word| explained.contains(word));
            assert!(is_packed && !explained.contains("passed through"), "{:?}: {explained}", form.remedy);
            instead = tryout.run(&message).await;
        }
        assert_eq!(
            tryout.contents(&before).await,
            tryout.contents(&after).await,
            "{:?}: {statement}",
            form.remedy
        );
        if form.whole.is_empty() {
            assert_eq!(returned, instead, "{:?}: {statement}", form.remedy);
        }
    }
}

#[tokio::test]
async fn explain_names_the_statement_of_a_text_that_cannot_be_packed() {
    let tryout = Tryout::new().await;
    tryout.run(TABLES).await;
    let text = tryout
        .explain("update inv set stock = 1 where id = 1; update inv set stock = 1 where stock > 1")
        .await;
    assert!(text.starts_with("passed through as one unit"), "{text}");
    let (first, second) = text.split_once("where stock > $2").or(text.split_once("where stock >")).unwrap();
    assert!(!first.contains("reason") && second.contains("reason    no WHERE"), "{text}");
}

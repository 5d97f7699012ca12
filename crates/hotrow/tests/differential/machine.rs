//! Runs programs on the server and through a gateway, and analyses a difference: whether it occurs again with a new
//! gateway, how many of the earlier programs it needs, and how small the program can be.

use std::time::{Duration, Instant};

use hotrow_testkit::{Gateway, config, connect, migrate, rows, server, until, value};
use tokio_postgres::Client;

use crate::compare::{Comparison, Difference, Verdict};
use crate::generate;
use crate::minimise::minimise;
use crate::program::{Frame, NUMBER, Program, Step};
use crate::run::{Patience, Target, play};

/// Sets both databases up with the same objects and settings.
const DATABASE: &[&str] = &[
    "create schema one",
    "create schema two",
    "create extension pg_trgm schema public",
    "do $$ begin execute format('alter database %I set search_path = one, two, public', current_database());
        execute format('alter database %I set synchronous_commit = off', current_database()); -- no server crashes in this test
        execute format('alter database %I set lock_timeout = ''150ms''', current_database());
        execute format('alter database %I set timezone = ''UTC''', current_database()); end $$",
];

/// Used as long as no difference is found.
const BRISK: Patience = Patience { quiet: Duration::from_millis(20), answer: Duration::from_secs(10) };
/// Used to confirm a difference.
const CAREFUL: Patience = Patience { quiet: Duration::from_millis(150), answer: Duration::from_secs(15) };
/// Used to make a program smaller.
const SMALLER: Patience = Patience { quiet: Duration::from_millis(40), answer: Duration::from_secs(4) };
const MINIMISES_FOR: Duration = Duration::from_secs(60);

/// The server and the gateway that are compared.
pub struct Machine {
    gateway: Option<Gateway>,
    /// The console of the gateway.
    console: Option<Client>,
    direct: Side,
    through: Side,
    number: u32,
    /// `verdict_wait_ms` of its gateways.
    verdict_wait: String,
    /// The programs that this gateway has run.
    played: Vec<Program>,
}

/// A database and a direct connection to it.
struct Side {
    database: String,
    client: Client,
}

/// A difference that occurred again.
pub struct Found {
    pub program: Program,
    pub difference: Difference,
}

impl Machine {
    /// Creates databases whose names end in `name`, and a gateway with this `verdict_wait_ms`.
    pub async fn new(name: &str, verdict_wait: String) -> Self {
        let admin = connect(&config(server().port())).await;
        // Another test of this file may have created the role.
        let _ = admin.batch_execute("create role other login superuser").await;
        let direct = Side::new(&admin, format!("direct_{name}")).await;
        let through = Side::new(&admin, format!("through_{name}")).await;
        let mut machine = Self {
            gateway: None,
            console: None,
            direct,
            through,
            number: 0,
            verdict_wait,
            played: Vec::new(),
        };
        machine.refresh().await;
        machine
    }

    /// Starts a new gateway, and empties the schemas.
    pub async fn refresh(&mut self) {
        self.gateway = None;
        self.played.clear();
        for side in [&self.direct, &self.through] {
            let others = "select count(*) from pg_stat_activity where datname = current_database()
                and pid <> pg_backend_pid() and backend_type = 'client backend'";
            until("all connections are closed", async || value(&side.client, others).await == "0").await;
            let empty = "set client_min_messages = warning;
                drop schema one cascade; drop schema two cascade; create schema one; create schema two";
            side.client.batch_execute(empty).await.expect("no session uses them");
        }
        let gateway = Gateway::start(&["--verdict-wait-ms", &self.verdict_wait]);
        self.console = Some(connect(gateway.config().dbname("hotrow")).await);
        self.gateway = Some(gateway);
    }

    /// Starts a new gateway with another `verdict_wait_ms`.
    pub async fn refresh_with(&mut self, verdict_wait: String) {
        self.verdict_wait = verdict_wait;
        self.refresh().await;
    }

    /// Makes the gateway's database differ: `sets` applies to all sessions that connect there later.
    pub async fn plant(&self, sets: &str) {
        let side = &self.through;
        let plants = format!("alter database {} {sets}", side.database);
        side.client.batch_execute(&plants).await.expect("a setting of the database");
    }

    /// `verdict_wait_ms` of the gateway.
    pub fn verdict_wait(&self) -> &str {
        &self.verdict_wait
    }

    /// How many programs this gateway has run.
    pub fn played(&self) -> usize {
        self.played.len()
    }

    /// Runs a program on both sides. Returns the first difference.
    pub async fn play(&mut self, program: &Program) -> Option<Difference> {
        self.played.push(program.clone());
        self.compare(program, BRISK).await
    }

    async fn compare(&mut self, program: &Program, patience: Patience) -> Option<Difference> {
        self.number += 1;
        let number = format!("_{:05}", self.number);
        let [direct, through] = [
            (server().port(), &self.direct, None),
            (self.gateway.as_ref().expect("the gateway runs").port(), &self.through, self.console.as_ref()),
        ]
        .map(|(port, side, console)| Target {
            port,
            database: &side.database,
            direct: &side.client,
            console,
        });
        let guide = play(&direct, program, &number, None, patience, |_, _| true).await;
        let mut comparison = Comparison::default();
        let mut verdict = Verdict::Same;
        play(&through, program, &number, Some(&guide), patience, |index, received| {
            verdict = comparison.step(index, program, &guide[index], received);
            matches!(verdict, Verdict::Same)
        })
        .await;
        if let Verdict::Same = verdict {
            verdict = comparison.notifications(guide.len());
        }
        if let Verdict::Same = verdict {
            verdict = self.contents(guide.len(), &number).await;
        }
        match verdict {
            Verdict::Differs(difference) => Some(difference),
            Verdict::Same | Verdict::Incomparable => None,
        }
    }

    /// Compares the final contents of the tables of a run.
    async fn contents(&self, index: usize, number: &str) -> Verdict {
        let [mut direct, mut through] = [String::new(), String::new()];
        for (side, all) in [(&self.direct.client, &mut direct), (&self.through.client, &mut through)] {
            let tables = format!(
                "select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = relnamespace
                where c.relkind in ('r', 'p') and relpersistence = 'p' and c.relname like '%\\{number}%' order by 1"
            );
            for table in rows(side, &tables).await.expect("the catalog can be read") {
                let table = table[0].clone().unwrap_or_default();
                let all_rows =
                    format!("select coalesce(string_agg(t::text, ' ' order by t::text), '') from {table} t");
                all.push_str(&format!("{table}: {}\n", value(side, &all_rows).await.replace(number, NUMBER)));
            }
        }
        if direct == through {
            return Verdict::Same;
        }
        Verdict::Differs(Difference { step: index, kind: "the tables' contents".to_owned(), direct, through })
    }

    /// Whether a program differs in this way with a new gateway.
    async fn differs_afresh(
        &mut self,
        program: &Program,
        kind: Option<&str>,
        patience: Patience,
    ) -> Option<Difference> {
        self.refresh().await;
        let difference = self.compare(program, patience).await?;
        kind.is_none_or(|kind| kind == difference.kind).then_some(difference)
    }

    /// The smallest program that has the last program's difference, or none if the difference does not occur again.
    /// Leaves a new gateway.
    pub async fn explain(&mut self) -> Option<Found> {
        let played = self.played.clone();
        let mut found = None;
        for count in [1, 4, 16, played.len()] {
            let program = joined(&played[played.len().saturating_sub(count)..]);
            if let Some(difference) = self.differs_afresh(&program, None, CAREFUL).await {
                found = Some((program, difference));
                break;
            }
        }
        let Some((program, difference)) = found else {
            self.refresh().await;
            return None;
        };
        let end = Instant::now() + MINIMISES_FOR;
        let kind = Some(difference.kind.as_str());
        let least = minimise(&program, end, async |program| {
            self.differs_afresh(program, kind, SMALLER).await.is_some()
        });
        let least = least.await;
        let again = self.differs_afresh(&least, kind, CAREFUL).await;
        self.refresh().await;
        Some(match again {
            Some(difference) => Found { program: least, difference },
            None => Found { program, difference },
        })
    }
}

impl Side {
    async fn new(admin: &Client, database: String) -> Self {
        admin.batch_execute(&format!("create database {database}")).await.expect("a database");
        let config = config(server().port()).dbname(&database).to_owned();
        let client = connect(&config).await;
        for statement in DATABASE {
            client.batch_execute(statement).await.expect("the database can be set up");
        }
        migrate(&format!("{}/{database}", server().url().trim_end_matches("/postgres")));
        client.batch_execute(generate::ECHO).await.expect("the hotrow schema is installed");
        client.batch_execute(generate::DECLARED).await.expect("the functions can be declared");
        // These settings apply to later connections.
        let client = connect(&config).await;
        Self { database, client }
    }
}

/// Joins programs into one. Each keeps its own objects, and its sessions disconnect at its end.
fn joined(programs: &[Program]) -> Program {
    let mut steps: Vec<Step> = Vec::new();
    for (index, program) in programs.iter().enumerate() {
        let last = index + 1 == programs.len();
        let own = if last { NUMBER.to_owned() } else { format!("{NUMBER}{}", letters(index)) };
        for step in &program.steps {
            let frames = step.frames.iter().map(|frame| frame.renamed(NUMBER, &own)).collect();
            steps.push(Step { frames, ..step.clone() });
        }
        if !last {
            steps
                .extend(program.sessions().into_iter().map(|session| Step::new(session, vec![Frame::Leave])));
        }
    }
    Program { steps }
}

fn letters(index: usize) -> String {
    let letter = |n: usize| char::from(b'a' + u8::try_from(n % 26).expect("below 26"));
    [letter(index / 26), letter(index)].iter().collect()
}

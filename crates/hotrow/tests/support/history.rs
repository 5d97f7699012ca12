//! Random units for the comparison with a direct connection, what their clients saw, and which version of which row
//! that was. Never says which order is right: that is `replay.rs`.
//!
//! Every write returns the version `v` that it made, so that its place among the writes of its row can be read off.
//! What returns no version either depends on nothing that changes, or on something that stays true once it is (a
//! stock that only falls, a row that is there or gone for good).

use std::fmt;

use super::line::{Answer, Line};

pub const TABLES: &str = "
    create table account (id int primary key, stock bigint not null check (stock >= 0), v bigint not null default 1,
        note varchar(20));
    create function count_version() returns trigger language plpgsql as
        'begin new.v := old.v + 1; return new; end';
    create trigger count_version before update on account for each row execute function count_version();
    create table event (id bigserial primary key, account int not null references account, who int not null,
        amount numeric(8,2) not null check (amount > 0), note varchar(8));
    create table parent (id int primary key);
    create table late (id int primary key, parent int references parent deferrable initially deferred)";

/// Empties the tables and fills them as at the beginning; what they are called in the catalogue stays the same.
pub const RESET: &str = "
    truncate account, event, parent, late restart identity;
    insert into account (id, stock) select id, 40 from generate_series(1, 2) id;
    insert into account (id, stock) select id, 50 from generate_series(11, 14) id;
    insert into account (id, stock) select id, 1 from generate_series(201, 212) id;
    insert into account (id, stock) select id, 0 from generate_series(301, 320) id;
    insert into parent values (1)";

/// The statements, which every session prepares under the names `s0`, `s1`, ...
pub const STATEMENTS: [&str; 15] = [
    "update account set stock = stock - $2 where id = $1 and stock >= $2 returning v, stock, id",
    "update account set stock = stock + $2, note = $3 where id = $1 returning v, id, stock, note, v * 2 as double",
    "update account set stock = stock - $2 where id = $1 returning v, stock",
    "select v, id, stock, note from account where id = $1",
    "insert into account (id, stock, note) values ($1, $2, $3) on conflict (id) do update
        set stock = account.stock + excluded.stock, note = excluded.note returning v, stock, note",
    "insert into account (id, stock) values ($1, $2) on conflict (id) do nothing returning v",
    "insert into account (id, stock) values ($1, $2) returning v, id",
    "delete from account where id = $1 returning v, note",
    "update account set note = $2 where id = $1 returning v",
    "insert into event (account, who, amount, note) values ($1, $2, $3, $4) returning id, amount, note",
    "update account set stock = stock / $2 where id = $1 returning v, stock",
    "update account set stock = $2::text::bigint where id = $1 returning v, stock",
    "insert into late (id, parent) values ($1, $2)",
    "select $1::int + 1 as next, $2::text || '!' as text",
    "update account set stock = stock + $2 where id = $1",
];
const EVENT: usize = 9;

#[derive(Clone, Debug)]
pub enum Value {
    Number(i64),
    Text(&'static str),
}

impl Value {
    fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => (*text).to_owned(),
        }
    }

    fn literal(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => format!("'{}'", text.replace('\'', "''")),
        }
    }
}

/// What a statement's answer tells of its row's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sees {
    /// Its place does not matter to anybody else.
    Nothing,
    /// The version it made.
    Made(i64),
    /// The version it read; where there is no row the version is 0.
    Read(i64),
    /// The version it read; a row that is not there is gone for good.
    ReadMortal(i64),
}

/// One statement with its values.
#[derive(Clone, Debug)]
pub struct Step {
    pub statement: usize,
    values: Vec<Value>,
    sees: Sees,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Prepared,
    Unnamed,
    Simple,
}

/// What is one transaction to its client.
#[derive(Clone, Debug)]
pub struct Unit {
    pub style: Style,
    pub steps: Vec<Step>,
}

/// A unit and its answer, with the moments when it was sent and when it was answered.
#[derive(Clone)]
pub struct Record {
    pub unit: Unit,
    pub answer: Answer,
    pub sent: u64,
    pub answered: u64,
}

/// A row's version before and after a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    pub row: i64,
    pub before: u64,
    pub after: u64,
}

/// What an answer tells of its place in the order.
#[derive(Debug)]
pub enum Place {
    /// Exactly when these rows had these versions.
    Exact(Vec<Observation>),
    /// Anywhere behind some moment that the answer does not tell; it changed nothing.
    Late,
}

impl Unit {
    /// Something that client number `client` might ask for.
    pub fn random(random: &mut fastrand::Rng, client: i64) -> Self {
        let style = [Style::Prepared, Style::Unnamed, Style::Simple][random.usize(0..3)];
        if random.u8(0..20) > 0 {
            return Self { style, steps: vec![Step::random(random, client)] };
        }
        let mut rows = [11, 12, 13, 14];
        random.shuffle(&mut rows);
        rows[..2].sort_unstable(); // two such units must not deadlock
        Self { style, steps: rows[..2].iter().map(|row| Step::on_stock(random, *row)).collect() }
    }

    /// Puts it on the line, as its client sends it.
    pub fn put(&self, line: &mut Line) {
        if self.style == Style::Simple {
            let texts: Vec<String> = self.steps.iter().map(Step::text).collect();
            return line.put_query(&texts.join("; "));
        }
        for step in &self.steps {
            let values: Vec<String> = step.values.iter().map(Value::text).collect();
            let values: Vec<_> = values.iter().map(|value| Some(value.as_str())).collect();
            match self.style {
                Style::Prepared => line.put_call(&format!("s{}", step.statement), &values),
                _ => line.put_unnamed_call(STATEMENTS[step.statement], &values),
            }
        }
        line.put_sync();
    }
}

impl Step {
    fn random(random: &mut fastrand::Rng, client: i64) -> Self {
        use Value::{Number, Text};
        let statement = random.usize(0..STATEMENTS.len());
        let amount = Number(random.i64(1..5));
        let sale = random.i64(1..=2);
        let shared = random.i64(101..=106);
        let mortal = random.i64(201..=212);
        let note = Text(
            ["plain", "it's", "grüße 🦀", "", "a note that is much longer than its column"]
                [random.usize(0..5)],
        );
        let (values, sees) = match statement {
            0 => (vec![Number(sale), amount], Sees::Made(sale)),
            3 => {
                let row = [sale, random.i64(11..=14), shared, mortal][random.usize(0..4)];
                (vec![Number(row)], if row > 200 { Sees::ReadMortal(row) } else { Sees::Read(row) })
            }
            4 => (vec![Number(shared), amount, note], Sees::Made(shared)),
            5 | 6 => (vec![Number(shared), amount], Sees::Made(shared)),
            7 => (vec![Number(mortal)], Sees::Made(mortal)),
            // Fits its column: whether a value that doesn't is noticed where there is no row depends on the server's plan.
            8 => (vec![Number(mortal), Text(["", "new"][random.usize(0..2)])], Sees::Made(mortal)),
            9 => {
                let account = Number([11, 12, 13, 999][random.usize(0..4)]);
                let amount = Text(["1.005", "0", "12", "-3.5", "1234567.8"][random.usize(0..5)]);
                (vec![account, Number(client), amount, note], Sees::Nothing)
            }
            12 => (vec![Number(random.i64(1..1 << 30)), Number([1, 999][random.usize(0..2)])], Sees::Nothing),
            13 => (vec![Number([1, 2_147_483_647][random.usize(0..2)]), note], Sees::Nothing),
            14 => (vec![Number(300 + client), amount], Sees::Nothing),
            _ => return Self::on_stock_by(random, statement),
        };
        Self { statement, values, sees }
    }

    /// A write of a row that is always there.
    fn on_stock(random: &mut fastrand::Rng, row: i64) -> Self {
        let statement = [1, 2, 10, 11][random.usize(0..4)];
        Self { values: Self::stock_values(random, statement, row), statement, sees: Sees::Made(row) }
    }

    fn on_stock_by(random: &mut fastrand::Rng, statement: usize) -> Self {
        let row = random.i64(11..=14);
        Self { values: Self::stock_values(random, statement, row), statement, sees: Sees::Made(row) }
    }

    fn stock_values(random: &mut fastrand::Rng, statement: usize, row: i64) -> Vec<Value> {
        let mut values = vec![Value::Number(row)];
        match statement {
            1 => values.extend([Value::Number(random.i64(0..30)), Value::Text("added")]),
            2 => values.push(Value::Number(random.i64(0..60))),
            10 => values.push(Value::Number(random.i64(0..2))),
            _ => values.push(Value::Text(["77", "abc", "99999999999999999999", "-5"][random.usize(0..4)])),
        }
        values
    }

    /// With its values written into it.
    fn text(&self) -> String {
        let values = self.values.iter().enumerate();
        values.fold(STATEMENTS[self.statement].to_owned(), |text, (at, value)| {
            text.replace(&format!("${}", at + 1), &value.literal())
        })
    }
}

impl Record {
    /// What the answer tells of its place.
    pub fn place(&self) -> Place {
        let failed = self.answer.error().is_some();
        let mut observations = Vec::new();
        for (step, part) in self.unit.steps.iter().zip(self.parts()) {
            let version = part.rows().first().map(|row| number(row[0].as_deref().unwrap_or_default()));
            let refused = part.error().and_then(|_| failing_row(&part)).map(|row| number(row[2]));
            let (row, before, after) = match (step.sees, version, refused) {
                (Sees::Nothing, ..) => continue,
                (Sees::Made(row), Some(version), _) => (row, version - 1, version),
                (Sees::Made(row), None, Some(version)) => (row, version - 1, version - 1),
                (Sees::Read(row) | Sees::ReadMortal(row), Some(version), _) => (row, version, version),
                (Sees::Read(row), None, _) => (row, 0, 0),
                (Sees::ReadMortal(_), None, _) => return Place::Late,
                (Sees::Made(_), None, None) => match part.error() {
                    Some(report) if report.code != "23505" => continue, // whatever the row holds
                    _ => return Place::Late,
                },
            };
            // A deleted row's version counts on, so that nothing comes behind it.
            let after = if step.statement == 7 { before + 2 } else { after };
            let before = if step.statement == 7 { before + 1 } else { before };
            observations.push(Observation { row, before, after });
        }
        if failed {
            observations.iter_mut().for_each(|observation| observation.after = observation.before);
        }
        Place::Exact(observations)
    }

    /// The answers to the single statements, as far as they came.
    fn parts(&self) -> Vec<Answer> {
        let mut parts = vec![Answer::default()];
        for (tag, body) in self.answer.frames() {
            let part = parts.last_mut().expect("there is always one");
            part.bytes.push(tag as u8);
            part.bytes
                .extend_from_slice(&(u32::try_from(body.len()).expect("it is short") + 4).to_be_bytes());
            part.bytes.extend_from_slice(body);
            if tag == 'C' {
                parts.push(Answer::default());
            }
        }
        parts
    }

    /// The number that a sequence gave to an event. Which one does not belong to the promise: sequences have gaps.
    pub fn event_id(&self) -> Option<u64> {
        self.unit.steps.iter().find(|step| step.statement == EVENT)?;
        let returned = self.answer.rows().first().and_then(|row| row[0].clone());
        returned.map(|id| number(&id)).or_else(|| failing_row(&self.answer).map(|row| number(row[0])))
    }
}

/// The row that violates a check constraint, as the error's detail shows it.
fn failing_row(answer: &Answer) -> Option<Vec<&str>> {
    let (_, body) = answer.frames().into_iter().find(|(tag, _)| *tag == 'E')?;
    let detail = body.split(|byte| *byte == 0).find(|field| field.first() == Some(&b'D'))?;
    let values = str::from_utf8(&detail[1..]).ok()?.strip_prefix("Failing row contains (")?;
    Some(values.split(", ").collect())
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is a number"))
}

impl fmt::Debug for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.unit.steps.iter().map(Step::text).collect();
        write!(formatter, "{:?} {}..{} {} -> ", self.unit.style, self.sent, self.answered, texts.join("; "))?;
        write_answer(&self.answer, formatter)
    }
}

fn write_answer(answer: &Answer, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (tag, body) in answer.frames() {
        write!(formatter, "{tag}{:?} ", String::from_utf8_lossy(body))?;
    }
    Ok(())
}

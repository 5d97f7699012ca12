//! Random units for the comparison with a direct connection, and how they are sent. Never reads an answer.  Every write
//! returns the version `v` that it made, which shows its place among the writes of its row. A statement that returns no
//! version depends either on nothing that changes, or on a condition that stays true once it is true: a stock that only
//! falls, a row that exists or is gone for good.

use hotrow_testkit::line::Line;

pub const TABLES: &str = "
    create table account (id int primary key, stock bigint not null check (stock >= 0), v bigint not null default 1,
        note varchar(20));
    create function count_version() returns trigger language plpgsql as
        'begin new.v := old.v + 1; return new; end';
    create trigger count_version before update on account for each row execute function count_version();
    create table event (id bigserial primary key, account int not null references account, who int not null,
        amount numeric(8,2) not null check (amount > 0), note varchar(8));
    create table tally (id int primary key, total bigint not null default 0);
    create table parent (id int primary key);
    create table late (id int primary key, parent int references parent deferrable initially deferred)";

/// Empties the tables and fills them with the initial rows. Their catalog entries stay the same.
pub const RESET: &str = "
    truncate account, event, parent, late, tally restart identity;
    insert into tally (id) select id from generate_series(11, 14) id;
    insert into account (id, stock) select id, 40 from generate_series(1, 2) id;
    insert into account (id, stock) select id, 50 from generate_series(11, 14) id;
    insert into account (id, stock) select id, 1 from generate_series(201, 212) id;
    insert into account (id, stock) select id, 0 from generate_series(301, 320) id;
    insert into parent values (1)";

/// The statements, which every session prepares under the names `s0`, `s1`, ...
pub const STATEMENTS: [&str; 17] = [
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
    // The total depends on the order of the units, which the versions show.
    "with t as (update tally set total = (total * 3 + $2) % 1000003 where id = $1)
        update account set stock = stock + $2 where id = $1 returning v, stock",
    "with sold as (update account set stock = stock - $2 where id = $1 and stock >= $2 returning v, stock, id)
        select v, id, stock * 2 as double from sold",
];
/// The statement whose row gets a number from a sequence.
pub const EVENT: usize = 9;
/// The statement that deletes.
pub const DELETE: usize = 7;

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

/// What a statement's answer shows about its row's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sees {
    /// No version: the order of this statement and others does not matter.
    Nothing,
    /// The version it made.
    Made(i64),
    /// The version that it read, 0 if the row does not exist.
    Read(i64),
    /// The version that it read. A row that does not exist is gone for good.
    ReadMortal(i64),
}

/// One statement with its values.
#[derive(Clone, Debug)]
pub struct Step {
    pub statement: usize,
    values: Vec<Value>,
    pub sees: Sees,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Prepared,
    Unnamed,
    Simple,
}

/// The statements that are one transaction for the client.
#[derive(Clone, Debug)]
pub struct Unit {
    pub style: Style,
    pub steps: Vec<Step>,
}

impl Unit {
    /// A unit that client number `client` might send.
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

    /// Appends the unit to the line, as its client sends it.
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

/// One of the usual values, rarely one of the others: a statement that fails often is no longer packed.
fn mostly<T: Copy>(random: &mut fastrand::Rng, usual: &[T], others: &[T]) -> T {
    let values = if random.u8(0..16) > 0 { usual } else { others };
    values[random.usize(0..values.len())]
}

impl Step {
    fn random(random: &mut fastrand::Rng, client: i64) -> Self {
        use Value::{Number, Text};
        let statement = random.usize(0..STATEMENTS.len());
        let amount = Number(random.i64(1..5));
        let sale = random.i64(1..=2);
        let shared = random.i64(101..=150);
        let mortal = random.i64(201..=212);
        let note = Text(
            ["plain", "it's", "grüße 🦀", "", "a note that is much longer than its column"]
                [random.usize(0..5)],
        );
        let (values, sees) = match statement {
            0 | 16 => (vec![Number(sale), amount], Sees::Made(sale)),
            3 => {
                let row = [sale, random.i64(11..=14), shared, mortal][random.usize(0..4)];
                (vec![Number(row)], if row > 200 { Sees::ReadMortal(row) } else { Sees::Read(row) })
            }
            4 => (vec![Number(shared), amount, note], Sees::Made(shared)),
            5 | 6 => (vec![Number(shared), amount], Sees::Made(shared)),
            DELETE => (vec![Number(mortal)], Sees::Made(mortal)),
            // Fits its column: whether the server notices a value that does not, without a row, depends on its plan.
            8 => (vec![Number(mortal), Text(["", "new"][random.usize(0..2)])], Sees::Made(mortal)),
            EVENT => {
                let account = Number(mostly(random, &[11, 12, 13], &[999]));
                let amount = Text(mostly(random, &["1.005", "12", "999999.99"], &["0", "-3.5", "1234567.8"]));
                let note = Text(mostly(random, &["plain", "it's", "", "grüße 🦀"], &["longer than 8"]));
                (vec![account, Number(client), amount, note], Sees::Nothing)
            }
            12 => (vec![Number(random.i64(1..1 << 30)), Number(mostly(random, &[1], &[999]))], Sees::Nothing),
            13 => (vec![Number(mostly(random, &[1, -1], &[2_147_483_647])), note], Sees::Nothing),
            14 => (vec![Number(300 + client), amount], Sees::Nothing),
            _ => return Self::on_stock_by(random, statement),
        };
        Self { statement, values, sees }
    }

    /// A write of a row that always exists.
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
            15 => values.push(Value::Number(random.i64(0..30))),
            1 => values.extend([Value::Number(random.i64(0..30)), Value::Text("added")]),
            2 => values.push(Value::Number(mostly(random, &[0, 1, 5], &[300]))),
            10 => values.push(Value::Number(mostly(random, &[1, 2], &[0]))),
            _ => values.push(Value::Text(mostly(
                random,
                &["77", "50"],
                &["abc", "99999999999999999999", "-5"],
            ))),
        }
        values
    }

    /// The statement's text with its values.
    pub fn text(&self) -> String {
        let values = self.values.iter().enumerate();
        values.fold(STATEMENTS[self.statement].to_owned(), |text, (at, value)| {
            text.replace(&format!("${}", at + 1), &value.literal())
        })
    }
}

//! One hot row with Diesel.

use std::thread;

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::r2d2::{ConnectionManager, Pool};
use frameworks::{Arguments, Load, Outcome};

diesel::table! {
    items (id) {
        id -> BigInt,
        sold -> Integer,
    }
}

fn setup(connection: &mut PgConnection) -> QueryResult<()> {
    connection.batch_execute(
        "CREATE TABLE items (id BIGINT PRIMARY KEY, sold INTEGER NOT NULL); INSERT INTO items VALUES (1, 0)",
    )
}

fn autocommit(connection: &mut PgConnection) -> QueryResult<()> {
    diesel::update(items::table.find(1)).set(items::sold.eq(items::sold + 1)).execute(connection)?;
    Ok(())
}

fn transaction(connection: &mut PgConnection) -> QueryResult<()> {
    connection.transaction(|connection| {
        let sold: i32 = items::table.find(1).select(items::sold).for_update().first(connection)?;
        diesel::update(items::table.find(1)).set(items::sold.eq(sold + 1)).execute(connection)?;
        Ok(())
    })
}

fn main() -> Outcome<()> {
    let Arguments { variant, url, workers, seconds } = Arguments::parse();
    let pool = Pool::builder().max_size(workers).build(ConnectionManager::<PgConnection>::new(url))?;
    if variant == "setup" {
        return Ok(setup(&mut *pool.get()?)?);
    }
    let update = if variant == "transaction" { transaction } else { autocommit };
    let load = Load::default();
    let work = || {
        while load.goes_on() {
            update(&mut *pool.get()?)?;
            load.count();
        }
        Outcome::Ok(())
    };
    let per_second = thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let per_second = load.measure(seconds);
        for worker in running {
            worker.join().expect("a worker does not panic")?;
        }
        Outcome::Ok(per_second)
    })?;
    load.print(per_second);
    Ok(())
}

//! The load of the page's test: hot rows, a blocked row, a pinned client, statements that are passed through, and some data of
//! the hotrow schema.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use hotrow_postgres::PrivateServer;
use hotrow_testkit::{Gateway, config, connect};
use tokio_postgres::Config;

/// A table, and a slot of a standby that is away.
const TABLES: &str = "
    select pg_create_physical_replication_slot('standby_of_the_shop', true);
    create table purchase (id bigint generated always as identity primary key, item int not null);
    create table item (id int primary key, name text unique, stock int not null);
    insert into item select n, 'secret-' || n, 1000000000 from generate_series(1, 200) n;";

/// Queues with waiting, dead and paused orders, sales, counters and feeds.
const PACK: &str = "
    select hotrow.create_queue('emails', max_attempts => 1), hotrow.create_queue('invoices'), hotrow.pause('invoices');
    select hotrow.enqueue('emails', ('00000000-0000-0000-0000-00000000000' || n)::uuid, '{\"price\": 12.50}', 'ann')
        from generate_series(1, 4) n;
    do $$ declare taken record; begin
        for attempt in 1 .. 3 loop
            for taken in select * from hotrow.take('emails', 1, '1 minute') loop
                perform hotrow.fail('emails', taken.receipt, 'SMTP 550: mailbox unavailable');
            end loop;
        end loop;
    end $$;
    select hotrow.create_sale('poster', 40), hotrow.create_sale('phone', 5000, hold => '1 hour'),
        hotrow.create_sale('sneaker', 2000, per_buyer => 2, ends_at => now() + '3 hours', hold => '15 minutes'),
        hotrow.create_sale('concert', 800, per_buyer => 4, starts_at => now() + '1 day', hold => '10 minutes'),
        hotrow.create_sale('vinyl', 120, starts_at => now() - '2 days'::interval, hold => '15 minutes');
    do $$ declare of_buyer record; begin
        for buyer in 1 .. 1300 loop
            select * into of_buyer from hotrow.reserve('sneaker', 'buyer ' || buyer);
            if buyer % 8 <> 0 then perform hotrow.confirm(of_buyer.reservation_id); end if;
        end loop;
        for buyer in 1 .. 120 loop
            select * into of_buyer from hotrow.reserve('vinyl', 'buyer ' || buyer);
            perform hotrow.confirm(of_buyer.reservation_id);
        end loop;
    end $$;
    select hotrow.reserve('poster', 'buyer ' || n) from generate_series(1, 40) n;
    select hotrow.reserve('phone', 'buyer ' || n) from generate_series(1, 900) n;
    select hotrow.increment('visits', 9007199254740993), hotrow.create_counter('credits', min => 0, max => 100);
    select hotrow.follow(2, 1); select hotrow.post(1, 'hello');";

/// Clients that work until this is dropped.
pub struct Load {
    stop: Arc<AtomicBool>,
    _runtime: tokio::runtime::Runtime,
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
    }
}

impl Load {
    /// Writes the data and starts the clients.
    pub fn start(gateway: &Gateway, server: &PrivateServer) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        runtime.block_on(prepare(gateway, server));
        for number in 0..16 {
            let updates = "update item set stock = stock - 1 where id = $1";
            runtime.spawn(work(named(gateway, "shop"), updates, hot_row(number), stop.clone()));
        }
        for number in 0..4 {
            let reads = "select stock from item where id = $1";
            runtime.spawn(work(named(gateway, "catalog"), reads, 20 + number, stop.clone()));
        }
        for (application, statement, value) in [
            ("shop", "insert into purchase (item) values ($1)", 1),
            ("catalog", "select id, stock from item where id between $1 and $1 + 9 order by id", 30),
            ("reports", "select count(*) from item where stock < $1", 5),
        ] {
            runtime.spawn(work(named(gateway, application), statement, value, stop.clone()));
        }
        Load { stop, _runtime: runtime }
    }
}

/// A few rows get most of the updates.
fn hot_row(number: i32) -> i32 {
    match number {
        0..8 => 1,
        8..12 => 2,
        12..14 => 3,
        number => number,
    }
}

fn named(gateway: &Gateway, application: &str) -> Config {
    let mut config = gateway.config();
    config.application_name(application);
    config
}

async fn prepare(gateway: &Gateway, server: &PrivateServer) {
    let direct = connect(&config(server.port())).await;
    direct.batch_execute(TABLES).await.unwrap();
    direct.batch_execute(PACK).await.unwrap();
    direct.batch_execute("begin; update item set stock = stock where id = 7").await.unwrap();
    let pinned = connect(&named(gateway, "import")).await;
    pinned.batch_execute("create temporary table draft (id int)").await.unwrap();
    // The connections of both stay open for as long as the load runs. The others wait for the row that the first one holds.
    tokio::spawn(async move {
        let _kept = (direct, pinned);
        std::future::pending::<()>().await;
    });
    for _ in 0..3 {
        let waiting = connect(&named(gateway, "campaign")).await;
        tokio::spawn(
            async move { waiting.batch_execute("update item set stock = stock - 1 where id = 7").await },
        );
    }
}

/// Runs a statement again and again, with a short pause.
async fn work(config: Config, sql: &str, parameter: i32, stop: Arc<AtomicBool>) {
    let client = connect(&config).await;
    let statement = client.prepare(sql).await.unwrap();
    while !stop.load(Relaxed) {
        if client.query(&statement, &[&parameter]).await.is_err() {
            return; // the gateway is gone: the test has ended
        }
        tokio::time::sleep(Duration::from_millis(4)).await; // the load's shape
    }
}

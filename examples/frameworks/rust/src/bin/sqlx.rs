//! One hot row with sqlx.

use std::sync::Arc;

use frameworks::{Arguments, Load, Outcome};
use sqlx::postgres::{PgPool, PgPoolOptions};

async fn setup(pool: &PgPool) -> sqlx::Result<()> {
    sqlx::query("CREATE TABLE items (id BIGINT PRIMARY KEY, sold INTEGER NOT NULL)").execute(pool).await?;
    sqlx::query("INSERT INTO items VALUES (1, 0)").execute(pool).await?;
    Ok(())
}

async fn autocommit(pool: &PgPool) -> sqlx::Result<()> {
    sqlx::query("UPDATE items SET sold = sold + 1 WHERE id = $1").bind(1_i64).execute(pool).await?;
    Ok(())
}

async fn transaction(pool: &PgPool) -> sqlx::Result<()> {
    let mut tx = pool.begin().await?;
    let sold: i32 = sqlx::query_scalar("SELECT sold FROM items WHERE id = $1 FOR UPDATE")
        .bind(1_i64)
        .fetch_one(&mut *tx)
        .await?;
    sqlx::query("UPDATE items SET sold = $1 WHERE id = $2").bind(sold + 1).bind(1_i64).execute(&mut *tx).await?;
    tx.commit().await
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let Arguments { variant, url, workers, seconds } = Arguments::parse();
    let pool = PgPoolOptions::new().max_connections(workers).connect(&url).await?;
    if variant == "setup" {
        return Ok(setup(&pool).await?);
    }
    let in_transaction = variant == "transaction";
    let load = Arc::new(Load::default());
    let work = |load: Arc<Load>, pool: PgPool| async move {
        while load.goes_on() {
            if in_transaction { transaction(&pool).await? } else { autocommit(&pool).await? }
            load.count();
        }
        Outcome::Ok(())
    };
    let running: Vec<_> = (0..workers).map(|_| tokio::spawn(work(load.clone(), pool.clone()))).collect();
    let measuring = load.clone();
    let per_second = tokio::task::spawn_blocking(move || measuring.measure(seconds)).await?;
    for worker in running {
        worker.await??;
    }
    load.print(per_second);
    Ok(())
}

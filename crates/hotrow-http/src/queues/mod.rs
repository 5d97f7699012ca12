//! `/v1/queues`: enqueues and shows orders (`orders`), takes them (`takes`), and completes and releases them (`receipts`).

mod orders;
mod receipts;
pub mod takes;

use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;

use crate::limits;
use crate::routes::Routes;

/// The routes that need a handler.
pub fn routes(routes: Routes) -> Routes {
    let large = DefaultBodyLimit::max(limits::HTTP_BATCH_BYTES_MAX);
    routes
        .add("enqueue", orders::enqueue)
        .add("enqueue_all", orders::enqueue_all.layer(large))
        .add("list_orders", orders::list)
        .add("find_order", orders::find)
        .add("take", takes::take)
        .add("complete_all", receipts::complete_all)
        .add("release", receipts::release)
}

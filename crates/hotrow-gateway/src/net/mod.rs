//! Parts of a client's connection: its other end, TLS, the budget for its messages, notifications of its task.

pub mod budget;
pub mod peer;
pub mod task_notify;
pub mod tls;

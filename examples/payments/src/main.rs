//! The payment service and its workers: `payments service`, `payments worker`.

use payments::program;
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    program::run("payments", program::payments(&arguments)).await
}

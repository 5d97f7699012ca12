//! The payment service and its workers: `payments service`, `payments worker`.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    payments::program::log();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match payments::program::payments(&arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("payments: {error}");
            ExitCode::FAILURE
        }
    }
}

//! Three simulated payment gateways with books of their own, over HTTP.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    payments::program::log();
    match payments::simulated::run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("payment-gateways: {error}");
            ExitCode::FAILURE
        }
    }
}

//! Three simulated payment gateways with books of their own, over HTTP.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    payments::program::run("payment-gateways", payments::simulated::run()).await
}

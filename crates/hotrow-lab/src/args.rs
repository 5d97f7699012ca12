//! The command line of `hotrow-lab bench`.

use crate::scenarios::MENU;
use hotrow_bench::Options;
use hotrow_bench::menu::Choice;
use std::path::PathBuf;

/// Compares Hotrow with techniques of other projects, on a private server.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Scenario, or group of scenarios
    #[arg(value_parser = MENU.parser())]
    pub scenario: Choice,

    /// Script that runs Debezium and Kafka to read the payment service's change stream (examples/payments/cdc/cdc.sh)
    #[arg(long, value_name = "SCRIPT")]
    pub change_stream: Option<PathBuf>,

    /// Folder with River, graphile-worker and pg-boss, which `make peers` installs (crates/hotrow-lab/peers), to measure them
    /// in `queue-lease` and `queue-batch`
    #[arg(long, value_name = "DIR")]
    pub peers: Option<PathBuf>,

    /// How it is measured
    #[command(flatten)]
    pub options: Options,
}

//! The laboratory: the program `hotrow-lab` makes figures that the project publishes and that no user of Hotrow needs. It is
//! not part of Hotrow.
//!
//! | file | contents |
//! |---|---|
//! | `args.rs` | the command line of `hotrow-lab bench` |
//! | `scenarios.rs`, `scenarios/`, `sql/` | more scenarios than those of `hotrow bench`, and techniques of other projects |
//! | `loads.rs`, `loads/`, `peers/` | the loads that they need: other poolers, Redis, queues of other projects, applications that batch, the payment service |
//! | `billion.rs`, `billion/`, `sql/billion/` | a long run with kills in which every answer is checked |
//! | `soak.rs`, `soak/`, `sql/soak/` | a long run of the same load without kills, which shows whether anything grows |
//! | `histories.rs`, `histories/` | random transactions through gateways that fail, and the checker of their isolation |
//! | `model.rs`, `model/` | a simulation of gateways and servers, calibrated with measured runs |

mod args;
pub mod billion;
pub mod histories;
mod loads;
pub mod model;
mod scenarios;
pub mod soak;

pub use args::Args;
use hotrow_bench::{Error, Outcome};
use loads::Loads;
pub use scenarios::ALL;

/// Runs a benchmark and writes its report. Blocks, and must be called outside of an asynchronous runtime.
pub fn run(args: Args) -> Result<Outcome, Error> {
    let loads = Loads::find(args.peers.as_deref(), args.change_stream);
    let mut options = args.options;
    if options.gateway_program.is_none() {
        let this = std::env::current_exe().map_err(Error::system("name this program"))?;
        options.gateway_program = Some(this.with_file_name("hotrow"));
    }
    hotrow_bench::run_choice(args.scenario, options, Some(Box::new(loads)))
}

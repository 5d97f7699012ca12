//! A simulation of gateways and servers beyond the machines of the project. It is pure: seeded, without a clock and without I/O.
//!
//! | file | contents |
//! |---|---|
//! | `world.rs`, `costs.rs` | what is simulated and observed, and the constants of a machine |
//! | `simulation.rs`, `simulation/` | events in the order of their times: clients, gateways, servers |
//! | `processors.rs`, `rows.rs`, `keys.rs` | cores and threads, the locks of rows, and the rows that requests name |
//! | `calibration.rs`, `calibration.json` | measured runs beside simulated ones, and the search for constants |
//! | `scale.rs` | the questions: nodes, gateways and requests per second |
//! | `page.rs` | tables and pictures |

mod calibration;
mod costs;
mod keys;
mod page;
mod processors;
mod rows;
mod scale;
mod simulation;
mod world;

#[cfg(test)]
mod tests;

use crate::args::Args;
use crate::benchmark::Outcome;
use crate::error::Error;
use calibration::Calibration;
use std::path::PathBuf;

/// Writes the tables and pictures, or with `--fit` new constants for the measured runs, into the folder of `--out`.
pub fn run(args: Args) -> Result<Outcome, Error> {
    let folder = args.out.unwrap_or_else(|| PathBuf::from("bench-results/model"));
    std::fs::create_dir_all(&folder).map_err(Error::file("create", &folder))?;
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(Error::file("write", &path))
    };
    let mut calibration = Calibration::own();
    if args.fit {
        calibration.machines.iter_mut().for_each(calibration::Machine::fit);
        let text = serde_json::to_string_pretty(&calibration).expect("the constants are numbers");
        write("calibration.json", &text)?;
        let markdown = page::calibration_table(&calibration, &calibration.compare());
        return Ok(Outcome { folder, markdown, failures: Vec::new() });
    }
    let page = page::page(&calibration, |next| eprintln!("simulating: {next}"));
    write("tables.md", &format!("# Tables of the simulation\n\n{}", page.tables))?;
    page.pictures.iter().try_for_each(|(name, picture)| write(name, picture))?;
    Ok(Outcome { folder, markdown: page.tables, failures: Vec::new() })
}

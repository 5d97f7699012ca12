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

use calibration::Calibration;
use hotrow_bench::Error;
use std::path::PathBuf;

/// What is simulated, and where the result is written.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder for tables.md and the pictures
    #[arg(long, value_name = "DIR", default_value = "bench-results/model")]
    out: PathBuf,

    /// Search constants with which the simulation agrees with the measured runs, and write calibration.json instead
    #[arg(long)]
    fit: bool,
}

/// Writes the tables and pictures, or with `--fit` new constants for the measured runs. Returns the text of the tables.
pub fn run(Args { out, fit }: Args) -> Result<String, Error> {
    std::fs::create_dir_all(&out).map_err(Error::file("create", &out))?;
    let write = |name: &str, text: &str| {
        let path = out.join(name);
        std::fs::write(&path, text).map_err(Error::file("write", &path))
    };
    let mut calibration = Calibration::own();
    if fit {
        calibration.machines.iter_mut().for_each(calibration::Machine::fit);
        let text = serde_json::to_string_pretty(&calibration).expect("the constants are numbers");
        write("calibration.json", &text)?;
        return Ok(page::calibration_table(&calibration, &calibration.compare()));
    }
    let page = page::page(&calibration, |next| eprintln!("simulating: {next}"));
    write("tables.md", &format!("# Tables of the simulation\n\n{}", page.tables))?;
    page.pictures.iter().try_for_each(|(name, picture)| write(name, picture))?;
    Ok(page.tables)
}

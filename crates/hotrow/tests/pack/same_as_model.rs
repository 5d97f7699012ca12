//! The SQL against the model, one client at a time: scripts that both must answer alike, and random commands, alone and
//! in batches, with repeated request IDs and hours that pass. A difference is shown with its seed, which `HOTROW_SEED`
//! runs again.

use hotrow_model::{Command, World, script};
use hotrow_testkit::{first_seed, programs};

use crate::installed;
use crate::stage::Stage;
use crate::workload::Workload;

const SEEDS: u64 = 300;
const STEPS: usize = 30;

/// The first difference between SQL and model, with all commands up to it.
pub fn difference(stage: &mut Stage, seed: u64) -> Option<String> {
    difference_among(stage, seed, |_| true)
}

/// The same among the commands that are kept.
pub fn difference_among(
    stage: &mut Stage,
    seed: u64,
    mut keep: impl FnMut(&Command) -> bool,
) -> Option<String> {
    let mark = format!("{seed:x}.");
    let mut workload = Workload::new(seed, &mark);
    let mut world = World::default();
    stage.clock = crate::sql::Clock::start();
    let mut trace = String::new();
    let creations = workload.creations().into_iter().map(|command| vec![command]).collect::<Vec<_>>();
    for step in 0..creations.len() + STEPS {
        if step > creations.len() && workload.random.u8(0..10) == 0 {
            let hours = workload.random.i64(1..=2);
            stage.pass(hours, &format!("item like '{mark}%'"));
            trace.push_str(&format!("pass {hours}\n"));
        }
        let mut commands = creations.get(step).cloned().unwrap_or_else(|| workload.next());
        commands.retain(&mut keep);
        if commands.is_empty() {
            continue;
        }
        if workload.random.u8(0..4) == 0 {
            stage.change_line();
        }
        let found = stage.answers(&mut commands);
        let right = world.apply_batch(&commands, stage.clock.at);
        let texts: Vec<_> = commands.iter().map(ToString::to_string).collect();
        trace.push_str(&format!("{} -> ", texts.join("; ")));
        let (found, right) = match (found, right) {
            (Ok(found), Ok(right)) => {
                let right: Vec<_> = right.iter().map(ToString::to_string).collect();
                (found.join("; "), right.join("; "))
            }
            (Err(report), Err(_)) if report.code == "22023" => ("error".to_owned(), "error".to_owned()),
            (found, right) => (format!("{found:?}"), format!("{right:?}")),
        };
        trace.push_str(&found);
        if found != right {
            return Some(format!("HOTROW_SEED={seed}\n{trace}\n  the model: {right}"));
        }
        trace.push('\n');
        for command in &commands {
            workload.learn(command);
        }
    }
    None
}

#[test]
fn the_sql_gives_the_answers_of_the_scripts() {
    for (name, text) in script::SCRIPTS {
        let mut stage = Stage::connect(installed());
        script::run(text, &mut stage).unwrap_or_else(|failure| panic!("{name}: {failure}"));
    }
}

#[test]
fn random_commands_get_the_models_answers() {
    let mut stage = Stage::connect(installed());
    none_differs(SEEDS, |seed| difference(&mut stage, seed));
}

/// Programs of one seed use the same names. On each node of a cluster, the seeds are this much higher than on the node before.
pub const SEEDS_OF_NODE: u64 = 1_000;

/// Searches for a difference with `all` seeds or a part of them, or with the seed in `HOTROW_SEED`, and shows it.
pub fn none_differs(all: u64, mut difference: impl FnMut(u64) -> Option<String>) {
    let seeds = match std::env::var("HOTROW_SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => {
            let (first, count) = (first_seed(), programs(all));
            eprintln!("seeds {first} to {}", first + count - 1);
            (first..first + count).collect()
        }
    };
    for seed in seeds {
        if let Some(difference) = difference(seed) {
            panic!("{difference}");
        }
    }
}

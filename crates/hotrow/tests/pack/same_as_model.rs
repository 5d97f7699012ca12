//! The SQL against the model, one client at a time: scripts that both answer alike, and random commands, alone and in
//! batches, with request ids that come again and hours that pass. A difference is shown with its seed, which `HOTROW_SEED`
//! runs again.

use hotrow_model::{World, script};

use crate::installed;
use crate::stage::Stage;
use crate::workload::Workload;

const SEEDS: u64 = 500;
const STEPS: usize = 30;

/// The first difference between SQL and model, as a story.
pub fn difference(stage: &mut Stage, seed: u64) -> Option<String> {
    let mark = format!("{seed:x}.");
    let mut workload = Workload::new(seed, &mark);
    let mut world = World::default();
    stage.clock = crate::sql::Clock::start();
    let mut story = String::new();
    let creations = workload.creations().into_iter().map(|command| vec![command]).collect::<Vec<_>>();
    for step in 0..creations.len() + STEPS {
        if step > creations.len() && workload.random.u8(0..10) == 0 {
            let hours = workload.random.i64(1..=2);
            stage.pass(hours, &format!("item like '{mark}%'"));
            story.push_str(&format!("pass {hours}\n"));
        }
        let mut commands = creations.get(step).cloned().unwrap_or_else(|| workload.next());
        if workload.random.u8(0..4) == 0 {
            stage.change_line();
        }
        let found = stage.answers(&mut commands);
        let right = world.apply_batch(&commands, stage.clock.at);
        let texts: Vec<_> = commands.iter().map(ToString::to_string).collect();
        story.push_str(&format!("{} -> ", texts.join("; ")));
        let (found, right) = match (found, right) {
            (Ok(found), Ok(right)) => {
                let right: Vec<_> = right.iter().map(ToString::to_string).collect();
                (found.join("; "), right.join("; "))
            }
            (Err(report), Err(_)) if report.code == "22023" => ("error".to_owned(), "error".to_owned()),
            (found, right) => (format!("{found:?}"), format!("{right:?}")),
        };
        story.push_str(&found);
        if found != right {
            return Some(format!("HOTROW_SEED={seed}\n{story}\n  the model: {right}"));
        }
        story.push('\n');
        for command in &commands {
            workload.learn(command);
        }
    }
    None
}

#[test]
fn the_sql_answers_the_scripts_as_they_say() {
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

/// Looks for a difference with so many seeds that chance chooses, or with the one that `HOTROW_SEED` names, and shows it.
pub fn none_differs(count: u64, mut difference: impl FnMut(u64) -> Option<String>) {
    let seeds = match std::env::var("HOTROW_SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => (0..count).map(|_| fastrand::u64(..)).collect(),
    };
    for seed in seeds {
        if let Some(difference) = difference(seed) {
            panic!("{difference}");
        }
    }
}

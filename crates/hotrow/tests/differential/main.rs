//! Random programs of several sessions, run directly and through the gateway: every answer and the final contents of
//! every table have to be the same. A program with a difference is made smaller and printed as a script
//! (docs/internals/differential.md).

mod cancel;
mod compare;
mod frames;
mod generate;
mod machine;
mod minimise;
mod program;
mod run;

use std::time::{Duration, Instant};

use generate::{CLASSES, Class};
use machine::{Found, Machine};
use program::{Frame, Program, Step};

hotrow_testkit::shared_server!();

/// The environment variable with the duration of the search in seconds.
const SECONDS: &str = "HOTROW_DIFFERENTIAL_SECONDS";
const SECONDS_BY_DEFAULT: u64 = 3;
/// The first program's seed. Later programs have the following seeds.
const SEED: &str = "HOTROW_DIFFERENTIAL_SEED";
/// The classes to draw programs from, separated by commas.
const CLASS: &str = "HOTROW_DIFFERENTIAL_CLASS";
/// A file with a script to run instead.
const SCRIPT: &str = "HOTROW_DIFFERENTIAL_SCRIPT";
/// `verdict_wait_ms` of all gateways. If it is not set, gateways whose statements wait for their verdicts alternate with
/// gateways that pass first runs through.
const VERDICT_WAIT: &str = "HOTROW_VERDICT_WAIT_MS";
/// The number of programs that one gateway runs.
const PROGRAMS_OF_A_GATEWAY: u64 = 30;

/// Differences that were found and fixed.
const SCRIPTS: &[(&str, &str)] = &[
    ("recreated-with-other-types", include_str!("scripts/recreated-with-other-types.txt")),
    ("portal-after-failed-bind", include_str!("scripts/portal-after-failed-bind.txt")),
];

fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

fn number(name: &str) -> Option<u64> {
    setting(name).map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// The classes to draw from.
fn classes() -> Vec<&'static Class> {
    let Some(chosen) = setting(CLASS) else {
        return CLASSES.iter().collect();
    };
    let find = |name: &str| {
        CLASSES.iter().find(|class| class.name == name).unwrap_or_else(|| {
            let names: Vec<_> = CLASSES.iter().map(|class| class.name).collect();
            panic!("{CLASS}: unknown class {name}; the classes are {}", names.join(", "))
        })
    };
    chosen.split(',').map(find).collect()
}

/// `verdict_wait_ms` of the gateway whose first program has this seed.
fn verdict_wait(seed: u64) -> String {
    let by_turns = || ["10000", "0"][usize::from(seed / PROGRAMS_OF_A_GATEWAY % 2 == 1)].to_owned();
    setting(VERDICT_WAIT).unwrap_or_else(by_turns)
}

#[tokio::test]
async fn programs_get_the_answers_of_direct_connections() {
    let first = number(SEED).unwrap_or_else(hotrow_testkit::first_seed);
    let mut machine = Machine::new("random", verdict_wait(first)).await;
    if let Some(path) = setting(SCRIPT) {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        return play_script(&mut machine, &path, &text).await;
    }
    for (name, text) in SCRIPTS {
        play_script(&mut machine, name, text).await;
    }
    let classes = classes();
    let seconds = number(SECONDS).unwrap_or(SECONDS_BY_DEFAULT);
    println!("seed {first}, {seconds} s");
    let (began, mut played, mut unseen) = (Instant::now(), 0, 0);
    while played == 0 || began.elapsed() < Duration::from_secs(seconds) {
        let seed = first + played;
        if machine.played() as u64 >= PROGRAMS_OF_A_GATEWAY {
            machine.refresh_with(verdict_wait(seed)).await;
        }
        played += 1;
        let class = generate::draw(&classes, seed);
        let Some(difference) = machine.play(&generate::program(class, seed)).await else { continue };
        let after = began.elapsed().as_secs_f32();
        match machine.explain().await {
            Some(found) => panic!("{}", report(class, seed, after, machine.verdict_wait(), &found)),
            None => {
                unseen += 1;
                println!(
                    "class {}, seed {seed}, seen once, not reproduced: {}\n{difference}",
                    class.name, difference.kind
                );
            }
        }
    }
    let took = began.elapsed().as_secs_f32();
    println!("{played} programs in {took:.1} s, {unseen} differences seen once, not reproduced");
}

#[tokio::test]
async fn a_planted_difference_is_found_and_minimised() {
    let mut machine = Machine::new("planted", verdict_wait(0)).await;
    machine.plant("set bytea_output = 'escape'").await;
    let mut texts: Vec<String> = (0..6).map(|n| format!("select {n}")).collect();
    texts.insert(4, "select 1; select '\\x00ff'::bytea".to_owned());
    let step =
        |text: &String| Step::new('a', vec![Frame::Query("select 0".to_owned()), Frame::Query(text.clone())]);
    let program = Program { steps: texts.iter().map(step).collect() };
    assert_eq!(machine.play(&program).await.unwrap().step, 4);
    let found = machine.explain().await.unwrap();
    let least = Step::new('a', vec![Frame::Query("select '\\x00ff'::bytea".to_owned())]);
    assert_eq!(found.program, Program { steps: vec![least] });
    assert_eq!(found.difference.kind, "D is D");
}

async fn play_script(machine: &mut Machine, name: &str, text: &str) {
    let program = Program::read(text).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
    let Some(difference) = machine.play(&program).await else { return };
    // A busy machine can make an answer slow.
    match machine.explain().await {
        Some(Found { difference, .. }) => {
            panic!("{name} differs at step {} ({}):\n{difference}", difference.step + 1, difference.kind)
        }
        None => eprintln!("{name}, seen once, not reproduced: {}\n{difference}", difference.kind),
    }
}

fn report(class: &Class, seed: u64, after: f32, verdict_wait: &str, found: &Found) -> String {
    let Found { program, difference } = found;
    let index = difference.step;
    let step = program.steps.get(index).map_or("# after the last step\n".to_owned(), ToString::to_string);
    format!(
        "a difference: {}, found after {after:.1} s\n\
        # class {}, seed {seed}\n{program}\nstep {} of {}:\n{step}{difference}\n\
        again: {VERDICT_WAIT}={verdict_wait} {CLASS}={} {SEED}={seed} make differential; or {SCRIPT}=FILE with the lines above\n",
        difference.kind,
        class.name,
        index + 1,
        program.steps.len(),
        class.name,
    )
}

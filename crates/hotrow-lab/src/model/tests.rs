//! The simulation agrees with measured runs, and with what must be true of any system.

use super::calibration::Calibration;
use super::scale::{Point, world};
use super::simulation::simulate;
use super::world::{Arrivals, Machines, Resource, Way, World};
use hotrow_bench::report::numbers::whole;

/// The largest error of a run that was used to find the constants.
const ERROR_MAX: f64 = 0.25;

#[test]
fn simulated_runs_agree_with_measured_ones() {
    let calibration = Calibration::own();
    let all = calibration.compare();
    let page = include_str!("../../../../docs/scale.md");
    let (mut used, mut held_out, mut largest) = (0, 0, 0.0_f64);
    for (machine, compared) in calibration.machines.iter().zip(&all) {
        for compared in compared {
            let error = compared.error();
            if compared.run.held_out {
                held_out += 1;
                let percent = format!("{:+.0}", error * 100.0);
                let is_stated = error.abs() < ERROR_MAX || page.contains(&percent);
                assert!(is_stated, "docs/scale.md omits the error of {percent} %: {compared:?}");
                continue;
            }
            used += 1;
            largest = largest.max(error.abs());
            assert!(error.abs() < ERROR_MAX, "{}: {compared:?} has an error of {error:.2}", machine.name);
        }
    }
    assert!(used >= 30 && held_out >= 10, "{used} runs, and {held_out} that are held out");
    let stated = format!("the largest is {:.0} %", largest * 100.0);
    assert!(page.contains(&stated), "docs/scale.md does not say that {stated}");
}

/// If a page gets new figures, the constants have to follow.
#[test]
fn every_measured_run_is_on_the_page_that_its_machine_names() {
    let pages = [
        ("benchmarks/figures.md", include_str!("../../../../docs/benchmarks/figures.md")),
        ("citus.md", include_str!("../../../../docs/citus.md")),
        ("fleet.md", include_str!("../../../../docs/fleet.md")),
    ];
    for machine in Calibration::own().machines {
        let (_, page) = pages.iter().find(|(name, _)| machine.source.starts_with(name)).unwrap();
        for run in machine.runs {
            let figure = whole(run.per_second);
            assert!(page.contains(&figure), "{} does not have {figure}: {run:?}", machine.source);
        }
    }
}

fn point(rate: f64) -> Point {
    Point { nodes: 2, gateways: 2, zipf: 0.99, rate, way: Way::Gateways }
}

#[test]
fn a_seed_decides_everything() {
    let world = world(&Calibration::own(), point(20_000.0));
    assert_eq!(simulate(&world), simulate(&world));
    assert_ne!(simulate(&world), simulate(&World { seed: 2, ..world.clone() }));
}

#[test]
fn requests_that_arrive_slowly_are_all_answered_and_no_resource_is_full() {
    let world = world(&Calibration::own(), point(2_000.0));
    let observed = simulate(&world);
    assert!((observed.per_second / 2_000.0 - 1.0).abs() < 0.1, "{observed:?}");
    assert!(observed.busy.iter().all(|(_, share)| *share <= 1.0), "{observed:?}");
    // A batch crosses the network twice and waits for one flush, and a request waits for at most a few batches.
    assert!(observed.p50_ms >= 0.9 && observed.p50_ms < 5.0, "{observed:?}");
}

#[test]
fn a_closed_loop_has_no_more_answers_than_its_clients_can_wait_for() {
    let calibration = Calibration::own();
    let world = World {
        arrivals: Arrivals::Closed(10),
        machines: Machines::Own { gateway_cores: 2, node_cores: 2, network: 1_000.0 },
        ..world(&calibration, point(2_000.0))
    };
    let observed = simulate(&world);
    assert!(observed.per_second <= 10.0 / 0.004, "four messages of 1 ms for each request: {observed:?}");
    assert!(observed.per_second > 10.0 / 0.004 / 3.0, "{observed:?}");
}

/// A row is the limit of many gateways, and processors are not.
#[test]
fn gateways_that_share_one_hot_row_wait_for_it() {
    let calibration = Calibration::own();
    let hot = |gateways| {
        let world =
            world(&calibration, Point { nodes: 1, gateways, zipf: 0.0, rate: 200_000.0, way: Way::Gateways });
        simulate(&World { rows: 1, warm_up: 0.1, seconds: 0.1, ..world })
    };
    let (one, three) = (hot(1), hot(3));
    let row = |observed: &super::world::Observed| {
        observed.busy.iter().find(|(resource, _)| *resource == Resource::Row).map(|(_, share)| *share)
    };
    assert!(row(&three) > Some(0.9), "{three:?}");
    assert!(
        three.per_second < one.per_second * 1.5,
        "more gateways cannot update one row faster: {one:?}, {three:?}"
    );
}

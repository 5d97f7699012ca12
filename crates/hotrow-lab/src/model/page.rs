//! The tables and pictures of `hotrow-lab model`.

use super::calibration::{Calibration, Compared};
use super::costs::Work;
use super::scale::{FLUSH, GATEWAY_CORES, NETWORK, NODE_CORES, Point, ROWS, world};
use super::simulation::simulate;
use super::world::{Observed, Resource, Way};
use hotrow_bench::report::numbers::whole;
use hotrow_bench::report::svg::Curves;
use std::fmt::Write;

const NODES: [usize; 3] = [1, 10, 100];
const GATEWAYS: [usize; 4] = [1, 3, 8, 20];
const RATES: [f64; 5] = [10_000.0, 30_000.0, 100_000.0, 300_000.0, 1_000_000.0];
/// The exponents of Zipf's law, with their descriptions.
const KEYS: [(f64, &str); 2] = [(0.0, "even"), (0.99, "Zipf")];
/// A system keeps up if it answers this share of the requests.
const KEEPS_UP: f64 = 0.95;

/// Text and pictures.
#[derive(Debug)]
pub struct Page {
    /// The tables, as Markdown.
    pub tables: String,
    /// Names of files, and their pictures.
    pub pictures: Vec<(&'static str, String)>,
}

/// A simulated point.
struct Simulated {
    point: Point,
    observed: Observed,
}

impl Simulated {
    fn keeps_up(&self) -> bool {
        self.observed.per_second >= KEEPS_UP * self.point.rate
    }

    /// What limits it if it does not keep up. A lane that always has a batch is full only if nothing else is: its batch may
    /// wait for processors, the WAL or a row.
    fn limit(&self) -> &'static str {
        let busy = |wanted: Resource| {
            let found = self.observed.busy.iter().find(|(resource, _)| *resource == wanted);
            found.map_or(0.0, |(_, share)| *share)
        };
        let processors = [Resource::Coordinator, Resource::Gateway, Resource::Node];
        let full = processors.into_iter().find(|resource| busy(*resource) > 0.9);
        let full = full.or_else(|| (busy(Resource::Row) > 0.97).then_some(Resource::Row));
        full.unwrap_or(Resource::Lane).name()
    }
}

/// Simulates everything. `progress` is told what comes next.
pub fn page(calibration: &Calibration, progress: impl Fn(&str)) -> Page {
    progress("the measured runs");
    let mut tables = calibration_table(calibration, &calibration.compare());
    let mut all = Vec::new();
    for nodes in NODES {
        for (zipf, keys) in KEYS {
            progress(&format!("nodes: {nodes}, rows: {keys}"));
            let ways =
                [(Way::Direct, 0)].into_iter().chain(GATEWAYS.map(|gateways| (Way::Gateways, gateways)));
            for (way, gateways) in ways {
                for rate in RATES {
                    let point = Point { nodes, gateways, zipf, rate, way };
                    all.push(Simulated { point, observed: simulate(&world(calibration, point)) });
                }
            }
        }
    }
    write_scale(&mut tables, &all);
    Page { tables, pictures: pictures(&all) }
}

/// Measured runs beside simulated ones.
pub fn calibration_table(calibration: &Calibration, compared: &[Vec<Compared>]) -> String {
    let mut text = String::from("## Calibration\n");
    for (machine, compared) in calibration.machines.iter().zip(compared) {
        let _ = write!(
            text,
            "\n{} ({}):\n\n| requests | way | clients | flush longer by, ms | measured/s | simulated/s | error | used to find the constants |\n\
             |---|---|---:|---:|---:|---:|---:|---|\n",
            machine.name, machine.source
        );
        for compared in compared {
            let run = &compared.run;
            let requests = match run.work {
                Work::Hot => "updates of one row",
                Work::Spread => "updates of many rows",
                Work::Read => "reads by key",
            };
            let _ = writeln!(
                text,
                "| {requests} | {} | {} | {} | {} | {} | {:+.0} % | {} |",
                match run.gateways {
                    _ if !run.through_hotrow => "direct".to_owned(),
                    1 => "Hotrow".to_owned(),
                    several => format!("Hotrow, {several} gateways"),
                },
                run.clients,
                run.flush_added / 1_000.0,
                whole(run.per_second),
                whole(compared.simulated),
                compared.error() * 100.0,
                if run.held_out { "no" } else { "yes" },
            );
        }
    }
    text
}

fn write_scale(text: &mut String, all: &[Simulated]) {
    let _ = write!(
        text,
        "\n## Scale\n\nUpdates of {} rows that arrive at random times. A gateway has {GATEWAY_CORES} cores, a node {NODE_CORES}. A flush of \
         the WAL takes {} ms and a message {} ms. The columns are requests per second: offered (first line), and answered.\n",
        whole(ROWS.into()),
        FLUSH / 1_000.0,
        NETWORK / 1_000.0
    );
    for nodes in NODES {
        for (zipf, keys) in KEYS {
            let name = if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") };
            let _ = write!(text, "\n{name}, rows: {keys}\n\n| way |");
            RATES.iter().for_each(|rate| _ = write!(text, " {} |", whole(*rate)));
            text.push_str(" limit | p50, p99 at the highest load that it keeps up with, ms |\n|---|");
            RATES.iter().for_each(|_| text.push_str("---:|"));
            text.push_str("---|---|\n");
            let own = |simulated: &&Simulated| simulated.point.nodes == nodes && simulated.point.zipf == zipf;
            let rows: Vec<_> = all.iter().filter(own).collect();
            rows.chunks(RATES.len()).for_each(|row| write_row(text, row));
        }
    }
}

fn write_row(text: &mut String, row: &[&Simulated]) {
    let _ = write!(text, "| {} |", way(&row[0].point));
    row.iter().for_each(|simulated| _ = write!(text, " {} |", whole(simulated.observed.per_second)));
    let limit =
        row.iter().find(|simulated| !simulated.keeps_up()).map_or("none", |simulated| simulated.limit());
    let best = row.iter().rev().find(|simulated| simulated.keeps_up());
    let latency = best
        .map_or("-".to_owned(), |best| format!("{:.1}, {:.1}", best.observed.p50_ms, best.observed.p99_ms));
    let _ = writeln!(text, " {limit} | {latency} |");
}

fn way(point: &Point) -> String {
    match (point.way, point.gateways) {
        (Way::Direct, _) => "direct".to_owned(),
        (Way::Gateways, 1) => "1 gateway".to_owned(),
        (Way::Gateways, gateways) => format!("{gateways} gateways"),
    }
}

fn pictures(all: &[Simulated]) -> Vec<(&'static str, String)> {
    let answered = |is_wanted: &dyn Fn(&Point) -> bool| -> Vec<(f64, f64)> {
        let wanted = all.iter().filter(|simulated| is_wanted(&simulated.point));
        wanted.map(|simulated| (simulated.point.rate, simulated.observed.per_second)).collect()
    };
    let by_nodes = |zipf: f64, title: &str| Curves {
        title: title.to_owned(),
        axes: ["requests offered per second", "answered per second"],
        curves: NODES
            .iter()
            .flat_map(|nodes| [(*nodes, Way::Gateways), (*nodes, Way::Direct)])
            .map(|(nodes, way)| {
                let gateways = if way == Way::Gateways { 8 } else { 0 };
                let plural = if nodes == 1 { "node" } else { "nodes" };
                let name = format!("{nodes} {plural}{}", if way == Way::Gateways { "" } else { ", direct" });
                let is_wanted =
                    |point: &Point| (point.nodes, point.zipf, point.gateways) == (nodes, zipf, gateways);
                (name, answered(&is_wanted))
            })
            .collect(),
    };
    let most: Vec<_> =
        all.iter().filter(|simulated| simulated.point.rate == RATES[RATES.len() - 1]).collect();
    let by_gateways = Curves {
        title: "Answered of 1,000,000 requests per second, by number of gateways".to_owned(),
        axes: ["gateways", "answered per second"],
        curves: NODES
            .iter()
            .flat_map(|nodes| KEYS.map(|keys| (*nodes, keys)))
            .map(|(nodes, (zipf, keys))| {
                let own = most.iter().filter(|simulated| {
                    let point = &simulated.point;
                    (point.nodes, point.zipf, point.way) == (nodes, zipf, Way::Gateways)
                });
                let points =
                    own.map(|simulated| (simulated.point.gateways as f64, simulated.observed.per_second));
                (format!("{nodes} nodes, {keys}"), points.collect())
            })
            .collect(),
    };
    vec![
        ("even.svg", by_nodes(0.0, "Updates of evenly used rows, eight gateways or direct").render()),
        ("zipf.svg", by_nodes(0.99, "Updates of rows by Zipf's law, eight gateways or direct").render()),
        ("gateways.svg", by_gateways.render()),
    ]
}

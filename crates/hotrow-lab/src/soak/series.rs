//! The series of a run: figures over time, and which of their values are judged. No I/O.

use super::samples::{Process, RoundEnd, Sample, Samples};
use super::verdict::{Judged, Problem, judge};
use std::collections::{BTreeMap, BTreeSet};

const MIB: f64 = 1_048_576.0;
/// Tables that never were larger than this have no series of their own. They are part of the sums.
const OWN_SERIES_MIB: f64 = 1.0;

/// A value of a series.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub at_ms: u64,
    pub start: u64,
    pub value: f64,
    /// The statements behind it.
    work: f64,
    /// Whether it counts for the verdict.
    pub is_judged: bool,
}

/// A figure over time.
#[derive(Clone, Debug)]
pub struct Series {
    pub name: String,
    pub unit: &'static str,
    /// A smaller change is none.
    pub tolerance: f64,
    problem: Problem,
    depends_on_work: bool,
    pub points: Vec<Point>,
}

impl Series {
    /// The verdict.
    pub fn judged(&self) -> Judged {
        let judged = || self.points.iter().filter(|point| point.is_judged);
        let values: Vec<_> = judged().map(|point| point.value).collect();
        let work: Vec<_> = judged().map(|point| point.work).collect();
        judge(&values, self.depends_on_work.then_some(&work), self.problem, self.tolerance)
    }

    /// The name of its picture.
    pub fn file(&self) -> String {
        let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        format!("{}.svg", self.name.to_lowercase().chars().map(letter).collect::<String>().replace("--", "-"))
    }
}

/// A figure of a gateway: its name, unit and tolerance.
type OfGateway = (&'static str, &'static str, f64, fn(&Process) -> f64);

const OF_GATEWAY: [OfGateway; 3] = [
    ("resident memory", "MiB", 4.0, |process| process.bytes as f64 / MIB),
    ("open descriptors", "descriptors", 5.0, |process| process.descriptors as f64),
    ("threads", "threads", 1.0, |process| process.threads as f64),
];

/// All series of a run.
pub fn all(samples: &Samples) -> Vec<Series> {
    let first_rounds = first_rounds(samples);
    let longest = longest_start(samples);
    let of_samples = |name: String, unit, tolerance, problem, value: &dyn Fn(&Sample) -> f64| {
        let point = |sample: &Sample| Point {
            at_ms: sample.at_ms,
            start: sample.start,
            value: value(sample),
            work: 1.0,
            is_judged: sample.start == longest && !first_rounds.contains(&sample.round),
        };
        let points = samples.samples.iter().map(point).collect();
        Series { name, unit, tolerance, problem, depends_on_work: false, points }
    };
    let mut all = Vec::new();
    for gateway in 0..2 {
        for (name, unit, tolerance, value) in OF_GATEWAY {
            let name = format!("gateway {}, {name}", gateway + 1);
            let value = |sample: &Sample| value(&sample.gateways[gateway]);
            all.push(of_samples(name, unit, tolerance, Problem::Growing, &value));
        }
    }
    let connections = |sample: &Sample| sample.connections as f64;
    let name = "server, connections".to_owned();
    all.push(of_samples(name, "connections", 2.0, Problem::Growing, &connections));
    let rate = |sample: &Sample| 1_000.0 * sample.statements as f64 / sample.load_ms.max(1) as f64;
    let name = "acknowledged statements per second".to_owned();
    all.push(of_samples(name, "per second", 0.0, Problem::Falling, &rate));
    all.extend([0, 1].map(|gateway| log(&samples.ends, &first_rounds, gateway)));
    all.extend(sizes(&samples.ends, &first_rounds));
    all
}

/// The first round of each start. Its gateways are new and do not know its statements yet.
fn first_rounds(samples: &Samples) -> BTreeSet<u64> {
    let mut first = BTreeMap::new();
    let of_samples = samples.samples.iter().map(|sample| (sample.start, sample.round));
    for (start, round) in of_samples.chain(samples.ends.iter().map(|end| (end.start, end.round))) {
        first.entry(start).and_modify(|first: &mut u64| *first = round.min(*first)).or_insert(round);
    }
    first.into_values().collect()
}

/// The start with the most samples. Each start has new gateways, so their figures can be compared only within one.
fn longest_start(samples: &Samples) -> u64 {
    let mut counts = BTreeMap::<u64, usize>::new();
    samples.samples.iter().for_each(|sample| *counts.entry(sample.start).or_default() += 1);
    counts.into_iter().max_by_key(|(_, count)| *count).map_or(0, |(start, _)| start)
}

/// What a gateway has logged in each round. The log itself always grows.
fn log(ends: &[RoundEnd], first_rounds: &BTreeSet<u64>, gateway: usize) -> Series {
    let mut before = (0, 0);
    let point = |end: &RoundEnd| {
        let (start, bytes) = (end.start, end.log_bytes[gateway]);
        let logged = if start == before.0 { bytes - before.1 } else { bytes };
        before = (start, bytes);
        let is_judged = !first_rounds.contains(&end.round);
        Point { at_ms: end.at_ms, start, value: logged as f64 / 1_024.0, work: 1.0, is_judged }
    };
    let points = ends.iter().map(point).collect();
    let name = format!("gateway {}, log of each round", gateway + 1);
    Series { name, unit: "KiB", tolerance: 16.0, problem: Problem::Growing, depends_on_work: false, points }
}

/// Sizes at the ends of rounds: the sums of each schema, and each table that is large at some time.
fn sizes(ends: &[RoundEnd], first_rounds: &BTreeSet<u64>) -> Vec<Series> {
    let series = |name: String, of: &str, part: usize, is_prefix: bool| {
        let is_counted = |table: &str| if is_prefix { table.starts_with(of) } else { table == of };
        let point = |end: &RoundEnd| {
            let counted = end.tables.iter().filter(|(table, _)| is_counted(table));
            Point {
                at_ms: end.at_ms,
                start: end.start,
                value: counted.map(|(_, sizes)| sizes[part]).sum::<u64>() as f64 / MIB,
                work: end.statements as f64,
                is_judged: !first_rounds.contains(&end.round),
            }
        };
        let points = ends.iter().map(point).collect();
        let problem = Problem::Growing;
        Series { name, unit: "MiB", tolerance: 1.0, problem, depends_on_work: true, points }
    };
    let mut all = Vec::new();
    for (schema, name) in [("hotrow.", "hotrow schema"), ("proof.", "the load's schema")] {
        all.push(series(format!("{name}, all tables"), schema, 0, true));
        all.push(series(format!("{name}, all indexes"), schema, 1, true));
    }
    let tables: BTreeSet<_> = ends.iter().flat_map(|end| end.tables.keys()).collect();
    for table in tables {
        for (part, of) in ["table", "indexes"].into_iter().enumerate() {
            let own = series(format!("{of} of {table}"), table, part, false);
            if own.points.iter().any(|point| point.value > OWN_SERIES_MIB) {
                all.push(own);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::samples::{Process, RoundEnd, Sample, Samples};
    use super::super::verdict::{Problem, Verdict};
    use super::{Series, all};

    /// Three samples for each round. The memory of the second gateway grows by `leak` bytes per sample, from its start on.
    fn run(rounds: u64, starts: &[u64], leak: u64) -> Samples {
        let mut run = Samples::default();
        for round in 1..=rounds {
            let start = starts.iter().filter(|first| **first <= round).count() as u64;
            let age = round - starts[start as usize - 1];
            for third in 0..3 {
                let process =
                    |leak| Process { bytes: (40 << 20) + leak * (3 * age + third), ..Process::default() };
                run.samples.push(Sample {
                    at_ms: round * 3_000 + third * 1_000,
                    start,
                    round,
                    gateways: [process(0), process(leak)],
                    statements: if age == 0 { 32_000 } else { 4_000 },
                    load_ms: 1_000,
                    connections: 8,
                });
            }
            let tables = [("proof.entry", 5 << 20), ("hotrow.ledger", 3 << 20), ("hotrow.mark", 8_192)];
            let tables = tables.map(|(name, bytes)| (name.to_owned(), [bytes, bytes / 2]));
            let at_ms = round * 3_000 + 2_500;
            let log_bytes = [5_000 * (age + 1), 5_000 * (age + 1)];
            run.ends.push(RoundEnd {
                at_ms,
                start,
                round,
                statements: 12_000,
                log_bytes,
                tables: tables.into(),
            });
        }
        run
    }

    fn verdict(series: &[Series], name: &str) -> Verdict {
        series.iter().find(|series| series.name == name).unwrap().judged().verdict
    }

    #[test]
    fn only_the_gateway_with_the_planted_leak_grows() {
        let series = all(&run(40, &[1], 256 << 10));
        let growing: Vec<_> =
            series.iter().filter(|series| series.judged().verdict != Verdict::Flat).collect();
        assert_eq!(growing.len(), 1, "{growing:?}");
        assert_eq!(growing[0].name, "gateway 2, resident memory");
        assert_eq!(growing[0].judged().verdict, Verdict::Changed(Problem::Growing));
        assert!(all(&run(40, &[1], 0)).iter().all(|series| series.judged().verdict == Verdict::Flat));
    }

    #[test]
    fn new_gateways_do_not_hide_a_leak() {
        let series = all(&run(40, &[1, 30], 256 << 10));
        assert_eq!(verdict(&series, "gateway 2, resident memory"), Verdict::Changed(Problem::Growing));
        // The fast first round of each start counts neither as a peak nor as a fall.
        assert_eq!(verdict(&series, "acknowledged statements per second"), Verdict::Flat);
    }

    #[test]
    fn a_table_that_keeps_rows_of_earlier_rounds_grows() {
        let mut samples = run(40, &[1], 0);
        for end in &mut samples.ends {
            end.tables.get_mut("hotrow.ledger").unwrap()[1] += end.round << 16;
        }
        let series = all(&samples);
        let growing = series.iter().filter(|series| series.judged().verdict != Verdict::Flat);
        let growing: Vec<_> = growing.map(|series| series.name.as_str()).collect();
        assert_eq!(growing, ["hotrow schema, all indexes", "indexes of hotrow.ledger"]);
    }

    #[test]
    fn a_log_grows_if_its_rounds_grow() {
        let mut samples = run(40, &[1, 20], 0);
        for end in &mut samples.ends {
            end.log_bytes[1] = 1_000 * (end.round * end.round);
        }
        let series = all(&samples);
        assert_eq!(verdict(&series, "gateway 1, log of each round"), Verdict::Flat);
        assert_eq!(verdict(&series, "gateway 2, log of each round"), Verdict::Changed(Problem::Growing));
    }

    #[test]
    fn small_tables_have_no_series_and_pictures_have_names() {
        let series = all(&run(10, &[1], 0));
        assert!(series.iter().all(|series| !series.name.contains("mark")), "{series:?}");
        let files: std::collections::BTreeSet<_> = series.iter().map(Series::file).collect();
        assert_eq!(files.len(), series.len());
        assert!(files.contains("table-of-proof-entry.svg"), "{files:?}");
    }
}

//! The metrics in Prometheus' text format.

use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

use hotrow_connect::config::hosts::RIVALS;

use super::{Counter, Gauge, Histogram, Metrics, RefusalReason, RunOutcome, Traffic};

/// Why statements were not packed: the columns of SHOW STATEMENTS.
const NOT_PACKED: [(RunOutcome, &str); 13] = [
    (RunOutcome::NotPackable, "not_packable"),
    (RunOutcome::OwnTransaction, "in_own_transaction"),
    (RunOutcome::Pinned, "session_pinned"),
    (RunOutcome::SwitchedOff, "switched_off"),
    (RunOutcome::Shadowed, "in_shadow_mode"),
    (RunOutcome::NoCredit, "fails_too_often"),
    (RunOutcome::LargerUnit, "with_others"),
    (RunOutcome::Undecided, "undecided"),
    (RunOutcome::GivenBack, "given_back_by_lane"),
    (RunOutcome::Failed, "failed_in_lane"),
    (RunOutcome::Blocked, "left_lane_for_lock"),
    (RunOutcome::TooSlow, "left_lane_too_slow"),
    (RunOutcome::Few, "few_at_once"),
];

type OfTraffic = fn(&Traffic) -> u64;

/// The ways of units, for labels.
const WAYS: [(&str, OfTraffic); 4] = [
    ("packed", |traffic| traffic.packed.get().saturating_sub(traffic.merged.get())),
    ("merged", |traffic| traffic.merged.get()),
    ("packed_read", |traffic| traffic.packed_reads.get()),
    ("passed_through", |traffic| traffic.passed.get()),
];

/// What units would have made that were passed through in shadow mode.
const SHADOW: [(&str, &str, OfTraffic); 6] = [
    ("shadow_statements_total", "Statements in shadow mode, by database and user.", |traffic| {
        traffic.shadow.statements()
    }),
    ("shadow_would_pack_statements_total", "Statements among them that would have been packed.", |traffic| {
        traffic.shadow.would_pack.get()
    }),
    (
        "shadow_units_total",
        "Writing units in shadow mode that would have been packed, by database and user.",
        |traffic| traffic.shadow.units.get(),
    ),
    (
        "shadow_met_units_total",
        "Units among them that began while another unit worked on one of their rows.",
        |traffic| traffic.shadow.met.get(),
    ),
    ("shadow_batched_units_total", "Units among them in simulated batches.", |traffic| {
        traffic.shadow.batched.get()
    }),
    ("shadow_batches_total", "Simulated batches.", |traffic| traffic.shadow.batches.get()),
];

impl Metrics {
    /// In Prometheus' text format.
    pub fn render(&self) -> String {
        let mut out = String::with_capacity(32 << 10);
        self.counters(&mut out);
        self.gauges(&mut out);
        self.by_label(&mut out);
        self.histograms(&mut out);
        out
    }

    fn counters(&self, out: &mut String) {
        let refused = Counter::new();
        refused.add(self.refusals.total());
        let counters = [
            ("packed_units_total", "Writing units committed in a batch.", &self.packed),
            ("packed_reads_total", "Point reads answered from a batch.", &self.packed_reads),
            (
                "replica_reads_total",
                "Point reads among them that a replica has answered.",
                &self.replica_reads,
            ),
            (
                "replica_fallbacks_total",
                "Reads for a replica that the primary ran, because no replica was available, or because none had replayed the session's commits.",
                &self.replica_fallbacks,
            ),
            (
                "replica_searches_total",
                "Searches for a replica that shows the primary's present state, before reads of sessions that have worked there.",
                &self.replica_searches,
            ),
            ("merged_units_total", "Function calls that became part of a merged call.", &self.merged),
            (
                "passed_through_units_total",
                "Units run on an upstream connection of their session.",
                &self.passed_through,
            ),
            ("failed_units_total", "Units that failed in a lane and ran again on their own.", &self.failed),
            ("blocked_units_total", "Units that left a lane because an outsider held a lock.", &self.blocked),
            ("slow_units_total", "Units that left a lane because they took too long there.", &self.too_slow),
            ("refused_total", "Units and clients that were refused.", &refused),
            (
                "logins_failed_total",
                "Clients that failed to authenticate or were rejected by the access file.",
                &self.logins_failed,
            ),
            (
                "catalog_questions_total",
                "Rounds of questions to the catalog about statements.",
                &self.catalog_questions,
            ),
            (
                "table_comparisons_total",
                "Comparisons of a table's fingerprint by a lane.",
                &self.table_comparisons,
            ),
            ("unknown_units_total", "Units whose outcome is unknown (08007).", &self.unknown),
            ("batches_total", "Batches committed.", &self.batches),
            ("batches_rolled_back_total", "Batches rolled back because a unit failed.", &self.rolled_back),
            ("writes_deferred_total", "Writes of which clients were told first.", &self.writes_deferred),
            ("foretold_wrong_total", "Transactions that were foretold wrongly.", &self.foretold_wrong),
            ("lane_connections_lost_total", "Connections of lanes that were lost.", &self.lost),
            (
                "notifications_total",
                "Notifications received by listening connections, counted for each client and each pool with waiting calls.",
                &self.notifications,
            ),
            (
                "maintenance_failures_total",
                "Rounds of the hotrow schema's maintenance that failed although the server answered.",
                &self.maintenance_failures,
            ),
        ];
        for (name, help, counter) in counters {
            head(out, name, help, "counter");
            line(out, name, "", counter.get());
        }
    }

    fn gauges(&self, out: &mut String) {
        let rivals = Gauge::new();
        rivals.set(RIVALS.load(Relaxed));
        let gauges = [
            ("clients", "Clients connected.", &self.clients),
            ("lanes_connected", "Lanes with a connection to the server.", &self.lanes),
            ("held_connections", "Open upstream connections outside lanes.", &self.held_connections),
            ("queued_units", "Units that wait in the queues of lanes.", &self.queued),
            ("parked_units", "Units behind one that waits for a lock of another session.", &self.parked),
            ("row_waits", "Transactions that wait for others that work on the same row.", &self.row_waits),
            (
                "rival_primaries",
                "Hosts that accept writes for a cluster besides the host that serves.",
                &rivals,
            ),
            ("waiting_calls", "Calls that found nothing and wait.", &self.waiting_calls),
            (
                "listening_clients",
                "Clients that listen without a connection of their own.",
                &self.listening_clients,
            ),
            (
                "listening_connections",
                "Shared connections that listen for clients.",
                &self.listening_connections,
            ),
        ];
        let put = |out: &mut String, (name, help, gauge): (&str, &str, &Gauge)| {
            head(out, name, help, "gauge");
            line(out, name, "", gauge.get());
        };
        gauges.into_iter().for_each(|gauge| put(out, gauge));
        if self.pack_known.get() > 0 {
            put(
                out,
                ("dead_letters", "Orders of the hotrow schema that are dead letters.", &self.dead_letters),
            );
            let help = "Age of the oldest order that no worker has taken or finished.";
            put(out, ("oldest_order_seconds", help, &self.oldest_order_seconds));
        }
    }

    fn by_label(&self, out: &mut String) {
        head(out, "refused_by_reason_total", "Units and clients that were refused, by reason.", "counter");
        for reason in RefusalReason::ALL {
            let label = format!("{{reason=\"{}\"}}", reason.label());
            line(out, "refused_by_reason_total", &label, self.refusals.of(reason));
        }
        let name = "not_packed_total";
        head(out, name, "Statements that did not run in a batch, by reason.", "counter");
        for (outcome, reason) in NOT_PACKED {
            line(out, name, &format!("{{reason=\"{reason}\"}}"), self.outcomes[outcome as usize].get());
        }
        let name = "pinned_clients";
        let help =
            "Clients that keep a server connection because of their session's state, by each of its reasons.";
        head(out, name, help, "gauge");
        for (reason, count) in self.pinned_clients.all() {
            line(out, name, &format!("{{reason=\"{reason}\"}}"), count);
        }
        let name = "server_up";
        let help =
            "1 if a host of the server answered at the last of the regular connections, 0 if none did.";
        head(out, name, help, "gauge");
        for (server, is_up) in self.servers.all() {
            line(out, name, &format!("{{server=\"{}\"}}", escaped(&server)), u8::from(is_up));
        }
        self.spans(out);
        self.replicas(out);
        let all = self.traffic.all();
        let name = "client_units_total";
        head(out, name, "Units by database, user and whether they were packed.", "counter");
        for ((database, user), traffic) in &all {
            for (way, count) in WAYS {
                let label = format!("{{{},way=\"{way}\"}}", clients(database, user));
                line(out, name, &label, count(traffic));
            }
        }
        let sums: [(&str, &str, OfTraffic); 2] = [
            ("client_batches_total", "Batches committed, by database and user.", |traffic| {
                traffic.batches.get()
            }),
            (
                "client_transactions_total",
                "Transactions that ended outside lanes, by database and user.",
                |traffic| traffic.transactions.get(),
            ),
        ];
        for (name, help, value) in sums {
            head(out, name, help, "counter");
            for ((database, user), traffic) in &all {
                line(out, name, &format!("{{{}}}", clients(database, user)), value(traffic));
            }
        }
        for (name, help, value) in SHADOW {
            head(out, name, help, "counter");
            for ((database, user), traffic) in &all {
                line(out, name, &format!("{{{}}}", clients(database, user)), value(traffic));
            }
        }
        let name = "client_wait_seconds_total";
        head(out, name, "Time that sessions waited for connections, by database and user.", "counter");
        for ((database, user), traffic) in &all {
            let seconds = traffic.wait_microseconds.get() as f64 / 1e6;
            line(out, name, &format!("{{{}}}", clients(database, user)), seconds);
        }
    }

    fn spans(&self, out: &mut String) {
        let name = "trace_spans_total";
        head(
            out,
            name,
            "Spans of batches that the collector of traces accepted, or that were dropped.",
            "counter",
        );
        for (outcome, counter) in [("exported", &self.spans_exported), ("dropped", &self.spans_dropped)] {
            line(out, name, &format!("{{outcome=\"{outcome}\"}}"), counter.get());
        }
    }

    /// Without replicas, these metrics are absent.
    fn replicas(&self, out: &mut String) {
        let lags = self.replica_lags.all();
        if lags.is_empty() {
            return;
        }
        let label = |replica: &str| format!("{{replica=\"{}\"}}", escaped(replica));
        let name = "replica_lag_seconds";
        head(out, name, "How far a replica was behind the primary when it was last asked.", "gauge");
        for (replica, lag) in &lags {
            line(out, name, &label(replica), lag.milliseconds as f64 / 1e3);
        }
        let name = "replica_lag_bytes";
        head(out, name, "The same in bytes of the primary's WAL.", "gauge");
        for (replica, lag) in &lags {
            line(out, name, &label(replica), lag.bytes);
        }
    }

    fn histograms(&self, out: &mut String) {
        let name = "unit_seconds";
        head(
            out,
            name,
            "Seconds from a unit's arrival to its answer, by whether it was packed.",
            "histogram",
        );
        for (way, histogram) in [
            ("packed", &self.packed_microseconds),
            ("merged", &self.merged_microseconds),
            ("packed_read", &self.read_microseconds),
            ("passed_through", &self.passed_microseconds),
        ] {
            histogram.write(out, name, &format!("way=\"{way}\""), 1e6);
        }
        head(out, "batch_units", "Units in one batch.", "histogram");
        self.batch_units.write(out, "batch_units", "", 1.0);
        let histograms = [
            ("batch_seconds", "Seconds from writing a batch to its commit.", &self.batch_microseconds),
            (
                "queue_seconds",
                "Seconds from a unit's arrival to the writing of its batch.",
                &self.queue_microseconds,
            ),
            (
                "server_wait_seconds",
                "Seconds that sessions waited for a connection to the server, if they had to.",
                &self.server_wait_microseconds,
            ),
        ];
        for (name, help, histogram) in histograms {
            head(out, name, help, "histogram");
            histogram.write(out, name, "", 1e6);
        }
    }
}

impl<const N: usize> Histogram<N> {
    /// Its lines, with this label besides those of the buckets.
    fn write(&self, out: &mut String, name: &str, label: &str, units: f64) {
        let comma = if label.is_empty() { "" } else { "," };
        let braces = if label.is_empty() { String::new() } else { format!("{{{label}}}") };
        let mut count = 0;
        for (index, bucket) in self.buckets.iter().enumerate() {
            count += bucket.get();
            let bound = match index + 1 {
                last if last == N => "+Inf".to_owned(),
                _ => ((self.first << index) as f64 / units).to_string(),
            };
            line(out, &format!("{name}_bucket"), &format!("{{{label}{comma}le=\"{bound}\"}}"), count);
        }
        line(out, &format!("{name}_sum"), &braces, self.sum.get() as f64 / units);
        line(out, &format!("{name}_count"), &braces, count);
    }
}

fn head(out: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(out, "# HELP hotrow_{name} {help}\n# TYPE hotrow_{name} {kind}");
}

fn line(out: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = writeln!(out, "hotrow_{name}{labels} {value}");
}

/// The labels for a database and a user. Names can have any characters.
fn clients(database: &str, user: &str) -> String {
    format!("database=\"{}\",user=\"{}\"", escaped(database), escaped(user))
}

/// The value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_is_cumulative_in_its_unit() {
        let histogram = Histogram::<4>::new(1);
        [0, 1, 2, 3, 4, 5, 1000].into_iter().for_each(|value| histogram.record(value));
        let mut text = String::new();
        histogram.write(&mut text, "x", "", 1.0);
        let end = "hotrow_x_bucket{le=\"4\"} 5\nhotrow_x_bucket{le=\"+Inf\"} 7\nhotrow_x_sum 1015\nhotrow_x_count 7";
        assert!(text.contains(end), "{text}");
        text.clear();
        histogram.write(&mut text, "y", "way=\"merged\"", 1e6);
        assert!(text.contains("hotrow_y_bucket{way=\"merged\",le=\"0.000004\"} 5\n"), "{text}");
        assert!(text.contains("hotrow_y_count{way=\"merged\"} 7\n"), "{text}");
    }

    #[test]
    fn names_in_labels_are_escaped() {
        assert_eq!(clients("a\"b\\", "c\nd"), r#"database="a\"b\\",user="c\nd""#);
    }
}

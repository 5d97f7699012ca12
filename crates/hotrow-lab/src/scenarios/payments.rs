//! The scenarios `payments`, `payments-open-loop` and `match-day`: an ordinary service that commits each statement. They
//! contain no SQL.

use crate::loads::Kind;
use hotrow_bench::scenario::{Arrivals, Figure, Scenario, Technique};
use hotrow_bench::scenarios::{SELL_DIRECT, USUAL};
use hotrow_bench::sql;

/// Payments per second, and the server's work for each.
pub static PAYMENTS: Scenario = Scenario {
    name: "payments",
    shows: "A payment service that commits each of its statements: payments per second, and the cost of each for the server",
    set_up: sql!("payments.sql"),
    takes_long: true,
    before_run: sql!("payments_before_run.sql"),
    reading: sql!("payments_reading.sql"),
    techniques: &[
        DIRECT,
        HOTROW,
        Technique {
            name: "direct-slot",
            about: "the same as `direct`, while its change stream is read",
            change_stream: true,
            against: "direct-slot",
            ..DIRECT
        },
        Technique {
            name: "hotrow-slot",
            about: "the same as `hotrow`, while its change stream is read",
            change_stream: true,
            against: "direct-slot",
            ..HOTROW
        },
    ],
    remarks: &[
        SERVICE,
        CHECKS,
        "The change stream is a replication slot for the outbox only, read by `pg_recvlogical`. The walsender time is that of the \
         server process that decodes the WAL.",
    ],
    ..USUAL
};

/// The latency of payments at a rate above the maximum without Hotrow.
pub static PAYMENTS_OPEN_LOOP: Scenario = Scenario {
    name: "payments-open-loop",
    shows: "Payments that arrive at 1.3 times the service's maximum rate without Hotrow: latency from when each was due",
    figure: Figure::Latency,
    techniques: &[
        Technique { arrivals: Arrivals::OfClosed { percent: 130 }, ..DIRECT },
        Technique { arrivals: Arrivals::OfClosed { percent: 130 }, ..HOTROW },
    ],
    remarks: &[
        SERVICE,
        CHECKS,
        "Arrivals are random around the stated rate. Requests use the connections in turn, and each connection has a queue. A \
         latency counts from the time the request was due.",
    ],
    ..PAYMENTS
};

/// The demonstration: the same with a payment gateway that is killed.
pub static MATCH_DAY: Scenario = Scenario {
    name: "match-day",
    shows: "A payment service on a match day: payments per second while one of three payment gateways is killed",
    techniques: &[
        Technique { load_by: Kind::Payments { gateway_dies: true }.load(), change_stream: true, ..DIRECT },
        Technique { load_by: Kind::Payments { gateway_dies: true }.load(), change_stream: true, ..HOTROW },
    ],
    remarks: &[
        SERVICE,
        CHECKS,
        "One payment gateway is killed in the middle of each run. The outcome of payments under way there is unknown until the \
         service has resolved it. Further payments go to the other gateways.",
    ],
    ..PAYMENTS
};

pub(super) const SERVICE: &str = "A payment is one HTTP request with an Idempotency-Key to the service of `examples/payments`, which asks a simulated \
     payment gateway over HTTP and runs about a dozen statements, each with its own commit, on a pool of as many connections as \
     there are clients. Client, service, payment gateways, server and Hotrow share the machine. The service is the same program for all techniques. Only \
     its DATABASE_URL differs.";

pub(super) const CHECKS: &str = "After each run, every acknowledged payment exists once and has one outcome. Its state, its sums, the log of its \
     transitions, the merchants' days and the events must follow from its attempts, with one event for each. The successful \
     payments must be those in the payment gateways' books, with the same amounts. If the change stream is read, every event \
     of the outbox must have arrived, and no other event.";

pub(super) const DIRECT: Technique = Technique {
    about: "the service with its DATABASE_URL directly to the server",
    load_by: Kind::Payments { gateway_dies: false }.load(),
    is_costed: true,
    ..SELL_DIRECT
};

pub(super) const HOTROW: Technique = DIRECT.through_hotrow("the service with its DATABASE_URL to Hotrow");

//! The scenarios `payments`, `payments-open-loop` and `match-day`: an ordinary service whose statements commit one by one; they
//! hold no SQL and run nothing.

use super::SELL_DIRECT;
use crate::scenario::{Arrivals, Clients, Figure, LoadBy, Rows, Scenario, Technique, Through};

/// Payments a second, with the server's work for each.
pub static PAYMENTS: Scenario = Scenario {
    name: "payments",
    shows: "A payment service that commits each of its statements: payments a second, and what each costs the server",
    set_up: include_str!("../../sql/payments.sql"),
    fill: "",
    pack: false,
    takes_long: true,
    before_run: include_str!("../../sql/payments_before_run.sql"),
    tables: &[],
    reading: include_str!("../../sql/payments_reading.sql"),
    rows: Rows::One,
    clients: Clients::Usually(&[64]),
    figure: Figure::Throughput,
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
        Technique {
            name: "direct-slow-flush",
            about: "the same as `direct` where a flush takes 1.5 ms longer",
            slow_flush: true,
            against: "direct-slow-flush",
            ..DIRECT
        },
        Technique {
            name: "hotrow-slow-flush",
            about: "the same as `hotrow` where a flush takes 1.5 ms longer",
            slow_flush: true,
            against: "direct-slow-flush",
            ..HOTROW
        },
    ],
    remarks: &[
        SERVICE,
        CHECKS,
        "The change stream is a slot for the outbox alone, read by `pg_recvlogical`; the time is that of the server's process \
         that decodes its log.",
        "For the slow flush the server runs under `strace`, which holds up each `fdatasync` for 1.5 ms and no other system call. \
         What a flush takes is what the server itself measures during the runs (`track_wal_io_timing`); it is more where the \
         processors are busy, since strace waits for one too.",
    ],
};

/// How long a payment takes when more come than the service can carry out without Hotrow.
pub static PAYMENTS_OPEN_LOOP: Scenario = Scenario {
    name: "payments-open-loop",
    shows: "Payments that arrive at 1.3 times the rate the service can do directly: how long each waits from when due",
    figure: Figure::Latency,
    techniques: &[
        Technique { arrivals: Arrivals::OfClosed { percent: 130 }, ..DIRECT },
        Technique { arrivals: Arrivals::OfClosed { percent: 130 }, ..HOTROW },
    ],
    remarks: &[
        SERVICE,
        CHECKS,
        "Arrivals are random around the stated rate; requests take the connections in turn, and each waits in the queue of its own. \
         A latency counts from the time the request was due.",
    ],
    ..PAYMENTS
};

/// The demonstration: the same with a payment gateway that dies.
pub static MATCH_DAY: Scenario = Scenario {
    name: "match-day",
    shows: "A payment service on a match day: payments a second while one of three payment gateways is killed in the middle",
    techniques: &[
        Technique { load_by: LoadBy::Payments { gateway_dies: true }, change_stream: true, ..DIRECT },
        Technique { load_by: LoadBy::Payments { gateway_dies: true }, change_stream: true, ..HOTROW },
    ],
    remarks: &[
        SERVICE,
        CHECKS,
        "One payment gateway is killed in the middle of each run: what was under way there has no known outcome until the service \
         has found it out, and further payments go to the others.",
    ],
    ..PAYMENTS
};

const SERVICE: &str = "A payment is one HTTP request with an Idempotency-Key to the service of `examples/payments`, which asks a simulated \
     payment gateway over HTTP and writes about a dozen statements, each committing by itself, to a pool of 64 connections. Client, \
     service, payment gateways, server and Hotrow share the machine. The service is the same program in all lines; only its \
     DATABASE_URL differs.";

const CHECKS: &str = "After each run every payment that was acknowledged is there once and has one outcome; its state, its sums, the log of its \
     transitions, merchants' days and events are those that follow from the attempts, one event for each; the successes are those in \
     the payment gateways' own books, with the same amounts; where the change stream is read, every event of the outbox has \
     arrived, and no other.";

const DIRECT: Technique = Technique {
    name: "direct",
    about: "the service with DATABASE_URL straight to the server",
    load_by: LoadBy::Payments { gateway_dies: false },
    ..SELL_DIRECT
};

const HOTROW: Technique = Technique {
    name: "hotrow",
    about: "the service with DATABASE_URL to Hotrow",
    through: Through::Hotrow,
    ..DIRECT
};

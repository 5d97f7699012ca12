//! The scenario `counter-http`: commands on one counter over HTTP, at a constant rate; it holds no SQL and runs nothing.

use super::SELL_DIRECT;
use super::counter::{CHECKS, COUNTER, MIX};
use crate::scenario::{Arrivals, Figure, LoadBy, Scenario, Technique, Through};

/// The goal that was set for this problem before: 10,000 requests a second over HTTP.
pub static COUNTER_HTTP: Scenario = Scenario {
    name: "counter-http",
    shows: "Commands on one counter as JSON over HTTP to two gateways, at a constant rate: how long each waits from when due",
    figure: Figure::Latency,
    techniques: &[Technique {
        name: "hotrow",
        about: "`POST /v1/counters/{counter}/increment` and `/drain` on a counter of strategy ledger, half to each of two \
                Hotrows before one server, at 10,000 a second or the rate asked for with --rate",
        load_by: LoadBy::Http,
        through: Through::HotrowHttp,
        arrivals: Arrivals::Planned { usually: 10_000 },
        against: "hotrow",
        ..SELL_DIRECT
    }],
    remarks: &[
        MIX,
        CHECKS,
        "The goal to compare with is that of the article \"Solving High Data Contention Problems with a Typical Web Stack\" \
         (2021): 10,000 requests a second, nine in ten of them answered within 50 ms.",
        "Clients are HTTP/1.1 connections that are kept, made by the benchmark's own process. Arrivals are random around the \
         stated rate; requests take the connections in turn, and each waits in the queue of its own. A latency counts from \
         the time the request was due. Requests that are refused because too many are under way (429, 503) are counted and \
         in no latency; any other answer but success, and there is no figure.",
    ],
    ..COUNTER
};

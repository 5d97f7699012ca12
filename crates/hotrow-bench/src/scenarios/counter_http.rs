//! The scenario `counter-http`: commands on one counter over HTTP, at a constant rate. Its SQL is in `sql/`.

use super::SELL_DIRECT;
use super::counter::{CHECKS, COUNTER, MIX};
use crate::scenario::{Arrivals, Figure, LoadBy, Scenario, Technique, Through};

/// The goal of an article about this problem: 10,000 requests per second over HTTP.
pub static COUNTER_HTTP: Scenario = Scenario {
    name: "counter-http",
    shows: "Commands on one counter as JSON over HTTP to two gateways, at a constant rate: latency from when each was due",
    figure: Figure::Latency,
    techniques: &[Technique {
        name: "hotrow",
        about: "`POST /v1/counters/{counter}/increment` and `/drain` on a counter of strategy ledger, half to each of two \
                gateways in front of one server, at 10,000 per second or the rate of --rate",
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
         (2021): 10,000 requests per second, 90 % of them answered within 50 ms.",
        "Clients are persistent HTTP/1.1 connections of the benchmark's process. Arrivals are random around the stated rate. \
         Requests use the connections in turn, and each connection has a queue. A latency counts from the time the request \
         was due. Requests that are rejected because too many are under way (429, 503) are counted and have no latency. If \
         any other request fails, there is no figure.",
    ],
    ..COUNTER
};

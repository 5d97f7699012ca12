//! The list of scenarios, and the parts that several of them share. Scenarios that share tables share a file.

/// The text of a file in the folder `sql` of the crate that names it.
#[macro_export]
macro_rules! sql {
    ($file:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/", $file))
    };
}

/// Scripts of pgbench in that folder: the files of the measurement, one after another. The warm-up has the same, followed by a
/// check of the last answer or of the whole transaction, or it has a file of its own.
#[macro_export]
macro_rules! script {
    ($($both:literal)+) => {
        $crate::scenario::Script::same(concat!($($crate::sql!($both)),+))
    };
    ($($measured:literal)+, answer checked by $check:literal) => {
        $crate::scenario::Script {
            measured: concat!($($crate::sql!($measured)),+),
            warm_up: concat!($($crate::sql!($measured),)+ "\\gset\n", $crate::sql!($check)),
        }
    };
    ($measured:literal, checked by $check:literal) => {
        $crate::scenario::Script {
            measured: $crate::sql!($measured),
            warm_up: concat!($crate::sql!($measured), $crate::sql!($check)),
        }
    };
    ($measured:literal, $warm_up:literal) => {
        $crate::scenario::Script { measured: $crate::sql!($measured), warm_up: $crate::sql!($warm_up) }
    };
}

pub mod counter;
pub mod feed;
pub mod inventory;
pub mod novelty;
pub mod queue;
pub mod sale;
pub mod transaction;

use crate::scenario::{
    Arrivals, Clients, Disk, Figure, LoadBy, Prediction, Protocol, Rows, Scenario, Technique, Through, Worth,
};

/// All scenarios, in the order of `hotrow bench all`, which leaves out those that take long.
pub static ALL: [&Scenario; 33] = [
    &inventory::HOT_ROW,
    &inventory::SINGLE,
    &inventory::SPREAD,
    &inventory::BULK,
    &inventory::READS,
    &inventory::PASS_THROUGH,
    &transaction::TRANSACTION,
    &inventory::OPEN_LOOP,
    &counter::COUNTER,
    &counter::COUNTER_ZIPF,
    &sale::SALE,
    &sale::SOLD_OUT,
    &queue::QUEUE_TAKE,
    &queue::QUEUE_HEAD,
    &queue::QUEUE_HEAD_VACUUMED,
    &queue::QUEUE_LEASE,
    &queue::QUEUE_BATCH,
    &queue::QUEUE_ENQUEUE,
    &feed::FEED_PUSH,
    &feed::FEED_POST,
    &feed::FEED_CONSUME,
    &feed::FEED_BUSY,
    &queue::QUEUE_HELD,
    &queue::QUEUE_BATCH_HELD,
    &novelty::COMMENTS,
    &novelty::CONSTANTS,
    &novelty::TEMPORARY,
    &novelty::TENANTS,
    &novelty::RECREATED_TABLE,
    &novelty::RECREATED_INDEX,
    &novelty::IDLE_IN_TRANSACTION,
    &novelty::FIRST_USE,
    &novelty::SHAPES,
];

/// The properties that most scenarios share. Each scenario has its own name, text, SQL and techniques.
pub const USUAL: Scenario = Scenario {
    name: "",
    shows: "",
    set_up: "",
    fill: "",
    pack: false,
    takes_long: false,
    before_run: "",
    tables: &[],
    reading: "",
    rows: Rows::One,
    clients: Clients::Usually(&[64]),
    figure: Figure::Throughput,
    techniques: &[],
    prediction: Prediction::None,
    remarks: &[],
};

/// The plain statement, sent directly to the server: the baseline of the other techniques.
pub const SELL_DIRECT: Technique = Technique {
    name: "direct",
    about: "the plain statement, directly to the server",
    extension: None,
    prepare: "",
    ageing: None,
    beside: None,
    load_by: LoadBy::Pgbench,
    script: script!("pgbench/sell.sql"),
    through: Through::Direct,
    protocol: Protocol::Prepared,
    worth: Worth::Sold,
    arrivals: Arrivals::Closed,
    is_costed: false,
    change_stream: false,
    disk: Disk::OWN,
    against: "direct",
};

/// The cheapest request.
pub const SELECT_ONE: Technique = Technique {
    name: "select-1",
    about: "`select 1`, directly to the server: the cost of any request",
    script: script!("pgbench/select_one.sql", "pgbench/select_one_checked.sql"),
    worth: Worth::Read,
    ..SELL_DIRECT
};

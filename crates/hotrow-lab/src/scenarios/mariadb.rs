//! The scenarios `mariadb-...`: bounds of the gateway in front of MariaDB. Their SQL is in `sql/mariadb`.

use super::disks::CLOUD;
use crate::loads::{Kind, Request, Work};
use hotrow_bench::scenario::{Clients, Protocol, Rows, Scenario, Technique, Through, Worth};
use hotrow_bench::scenarios::{SELL_DIRECT, USUAL};
use hotrow_bench::sql;

/// One row that all clients update.
pub static HOT_ROW: Scenario = Scenario {
    name: "mariadb-hot-row",
    shows: "Updates of one row on MariaDB, as texts and as prepared statements: updates per second, by technique",
    takes_long: true,
    clients: Clients::Usually(&[8, 64, 256]),
    techniques: &[
        TEXT,
        TEXT.through_hotrow("the same through Hotrow in front of MariaDB (preview), which packs"),
        PREPARED,
        through_hotrow("hotrow-prepared", PREPARED, "the same through Hotrow"),
    ],
    remarks: &[SERVER, COUNTED, CHECK],
    ..USUAL
};

/// The same without a binary log: a commit waits for one flush less.
pub static HOT_ROW_NO_BINLOG: Scenario = Scenario {
    name: "mariadb-hot-row-no-binlog",
    shows: "Updates of one row on MariaDB without a binary log: updates per second, by technique",
    takes_long: true,
    clients: Clients::Usually(&[64, 256]),
    techniques: &[
        NO_BINLOG,
        NO_BINLOG.through_hotrow("the same through Hotrow in front of MariaDB (preview), which packs"),
    ],
    remarks: &[SERVER, "The server runs with `--skip-log-bin`. Its commits are not counted.", CHECK],
    ..USUAL
};

/// Many rows.
pub static SPREAD: Scenario = Scenario {
    name: "mariadb-spread",
    shows: "Updates spread evenly over a million rows on MariaDB: updates per second, by technique",
    takes_long: true,
    rows: Rows::UpTo(1_000_000),
    clients: Clients::Usually(&[64, 256]),
    techniques: &[
        ANY,
        ANY.through_hotrow("the same through Hotrow in front of MariaDB (preview), which packs"),
    ],
    remarks: &[SERVER, IN_MEMORY, COUNTED, CHECK],
    ..USUAL
};

/// Statements that are not packed: the cost of the gateway.
pub static PASS_THROUGH: Scenario = Scenario {
    name: "mariadb-pass-through",
    shows: "Statements on MariaDB that Hotrow does not pack, a read and a write by key: statements per second, by technique",
    takes_long: true,
    rows: Rows::UpTo(10_000),
    clients: Clients::Usually(&[1, 64]),
    techniques: &[
        READ,
        through_hotrow("hotrow-read", READ, "the same through Hotrow in front of MariaDB (preview)"),
        LIMITED,
        through_hotrow("hotrow-write", LIMITED, "the same through Hotrow"),
    ],
    remarks: &[
        SERVER,
        "The read is `select v from hot.row where id = ?`, and the write `update ... where id = ? limit 1`. Both are prepared, for one \
         of 10,000 rows at random. A packed write would have less than one commit.",
        COUNTED,
        CHECK,
    ],
    ..USUAL
};

/// Slower flushes.
pub static DISKS: Scenario = Scenario {
    name: "mariadb-disks",
    shows: "Updates of one row and of a million rows on MariaDB, each flush 1.5 ms longer: updates per second, by technique",
    takes_long: true,
    rows: Rows::UpTo(1_000_000),
    clients: Clients::Usually(&[64, 256]),
    techniques: &[
        SLOW_HOT_ROW,
        through_hotrow(
            "hotrow-hot-row",
            SLOW_HOT_ROW,
            "the same through Hotrow in front of MariaDB (preview)",
        ),
        SLOW_SPREAD,
        through_hotrow("hotrow-spread", SLOW_SPREAD, "the same through Hotrow"),
    ],
    remarks: &[
        "The server preloads a library that sleeps after each `fdatasync`, and changes nothing else. MariaDB 10.11 flushes its binary \
         log and InnoDB's log with it, so a commit waits for both.",
        SERVER,
        IN_MEMORY,
        COUNTED,
        CHECK,
    ],
    ..USUAL
};

const SERVER: &str = "Each run has a new private MariaDB server with `binlog_format` ROW, `sync_binlog` 1 and \
    `innodb_flush_log_at_trx_commit` 1. Its clients are in autocommit mode. Before the load, each client runs a first statement, which \
    changes nothing. The PostgreSQL server of the report takes no part.";

const IN_MEMORY: &str =
    "The server has a buffer pool and a log of 256 MiB each, so the rows stay in memory during a run.";

pub(super) const COUNTED: &str = "Commits are transactions in the server's binary log (`Binlog_commits`), and flushes are groups of them \
    (`Binlog_group_commits`), each of which is flushed once. Flushes of InnoDB's log are not counted.";

const CHECK: &str = "Each statement must change or return one row. After each run, the sum of the changed column must be exactly the number of \
    acknowledged updates.";

const LARGE: &[&str] = &["--innodb-buffer-pool-size=256M", "--innodb-log-file-size=256M"];

/// Updates of one row, as texts.
const HOT_ROW_TEXT: Work = Work {
    options: &[],
    set_up: sql!("mariadb/set_up.sql"),
    first: "update hot.row set v = v where id = 0;", // there is no such row
    request: Request::Texts("update hot.row set v = v + 1 where id = 1;"),
    reading: sql!("mariadb/reading.sql"),
};
const ANY_ROW: Work =
    Work { request: Request::Prepared("update hot.row set v = v + 1 where id = ?"), ..HOT_ROW_TEXT };
const ONE_READ: Work =
    Work { request: Request::Prepared("select v from hot.row where id = ?"), ..HOT_ROW_TEXT };
const LIMITED_WRITE: Work =
    Work { request: Request::Prepared("update hot.row set v = v + 1 where id = ? limit 1"), ..HOT_ROW_TEXT };

const TEXT: Technique = Technique {
    about: "the statement as text, directly to the server",
    load_by: Kind::MariaDb(&HOT_ROW_TEXT).load(),
    protocol: Protocol::Simple,
    is_costed: true,
    ..SELL_DIRECT
};

const PREPARED: Technique = Technique {
    name: "direct-prepared",
    about: "the statement, prepared once by each client, directly to the server",
    load_by: Kind::MariaDb(&ANY_ROW).load(),
    protocol: Protocol::Prepared,
    against: "direct-prepared",
    ..TEXT
};

const NO_BINLOG: Technique = Technique {
    load_by: Kind::MariaDb(&Work { options: &["--skip-log-bin"], ..HOT_ROW_TEXT }).load(),
    is_costed: false,
    ..TEXT
};

const ANY: Technique = Technique {
    about: "the update of a random row, prepared once by each client, directly to the server",
    load_by: Kind::MariaDb(&Work { options: LARGE, ..ANY_ROW }).load(),
    is_costed: true,
    ..SELL_DIRECT
};

const READ: Technique = Technique {
    name: "direct-read",
    about: "the read, directly to the server",
    load_by: Kind::MariaDb(&ONE_READ).load(),
    worth: Worth::Read,
    against: "direct-read",
    ..SELL_DIRECT
};

const LIMITED: Technique = Technique {
    name: "direct-write",
    about: "the write, directly to the server",
    load_by: Kind::MariaDb(&LIMITED_WRITE).load(),
    is_costed: true,
    against: "direct-write",
    ..SELL_DIRECT
};

const SLOW_HOT_ROW: Technique = Technique {
    name: "direct-hot-row",
    load_by: Kind::MariaDb(&Work { options: LARGE, ..HOT_ROW_TEXT }).load(),
    disk: CLOUD,
    against: "direct-hot-row",
    ..TEXT
};

const SLOW_SPREAD: Technique =
    Technique { name: "direct-spread", disk: CLOUD, against: "direct-spread", ..ANY };

/// The same requests by clients of Hotrow, under this name.
const fn through_hotrow(name: &'static str, direct: Technique, about: &'static str) -> Technique {
    Technique { name, about, through: Through::Hotrow, ..direct }
}

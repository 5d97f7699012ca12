//! The work of the clients: the requests, their statements and values, and their bytes. No I/O.

use bytes::BytesMut;
use hotrow_wire::frontend::{EXECUTE, Parse, SYNC, put_bind_text, put_query};

/// Rows of the table of counters. The first one is hot.
pub const ROWS: u16 = 200;
/// Counters of the hotrow schema. The last one has the strategy `log`.
pub const COUNTERS: u16 = 4;
/// The stock of each item. All but the last are sold out in a round.
pub const STOCKS: [u32; 4] = [100, 1_000, 5_000, 1_000_000_000];

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Adds 1 to a counter that other clients change, too.
    Update,
    /// Inserts a row.
    Insert,
    /// Inserts a row that a constraint forbids.
    Forbidden,
    /// Adds 1 to the client's own row.
    Own,
    /// Reads the client's own row.
    Read,
    /// Calls `increment` of the hotrow schema.
    Increment,
    /// Calls `reserve` of the hotrow schema.
    Reserve,
    /// Calls a function that the gateway does not know.
    Call,
    /// Inserts a row and adds 1 to a counter in one transaction.
    Transaction,
    /// The same, and rolls it back.
    RolledBack,
}

use Kind::{Call, Forbidden, Increment, Insert, Own, Read, Reserve, RolledBack, Transaction, Update};

impl Kind {
    /// All kinds, with their share of a hundred requests, their name, and how the gateway usually runs them.
    pub const ALL: [(Kind, usize, &str, &str); 10] = [
        (Update, 35, "update of a shared row", "packed"),
        (Insert, 13, "insert", "packed"),
        (Forbidden, 1, "insert that violates a constraint", "packed, then alone"),
        (Own, 12, "update of the client's own row", "packed"),
        (Read, 13, "read by key", "packed"),
        (Increment, 12, "hotrow.increment", "merged"),
        (Reserve, 8, "hotrow.reserve", "merged"),
        (Call, 2, "call of another function", "passed through"),
        (Transaction, 3, "statement in a transaction", "packed or passed through"),
        (RolledBack, 1, "statement in a transaction that is rolled back", "passed through"),
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].2
    }

    /// The statements of a request, without BEGIN and COMMIT.
    pub fn statements(self) -> u64 {
        if matches!(self, Transaction | RolledBack) { 2 } else { 1 }
    }

    fn choose(style: Style, random: &mut fastrand::Rng) -> Self {
        let mut left = random.usize(0..100);
        let mut shares = Self::ALL.into_iter();
        let chosen = shares.find(|(_, share, ..)| left.checked_sub(*share).map(|rest| left = rest).is_none());
        match chosen.map_or(Update, |(kind, ..)| kind) {
            // What is sent after such a request, and before its answer, cannot be packed either.
            Forbidden | Call | RolledBack if style != Style::OneByOne => Update,
            kind => kind,
        }
    }
}

/// A request of a client. All values are derived from it, so each answer can be compared with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub kind: Kind,
    /// The number of the client, from 1.
    pub client: u32,
    /// The number of the client's request in this round, from 1.
    pub number: u64,
    /// The counter or item.
    pub key: u16,
}

/// How a client sends its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Many prepared statements at a time.
    Pipelined,
    /// Several texts at a time.
    Texts,
    /// One text at a time. A transaction's statements are sent one by one.
    OneByOne,
}

impl Style {
    /// The style of a client.
    pub fn of(client: u32) -> Self {
        match client % 8 {
            0..=4 => Self::Pipelined,
            5 | 6 => Self::Texts,
            _ => Self::OneByOne,
        }
    }

    /// The requests that are sent together.
    pub fn depth(self) -> usize {
        match self {
            Self::Pipelined => 16,
            Self::Texts => 8,
            Self::OneByOne => 1,
        }
    }
}

const UPDATE: usize = 0;
const INSERT: usize = 1;
const PAIR: usize = 7;
const BEGIN: usize = 8;
const COMMIT: usize = 9;
const ROLLBACK: usize = 10;

/// The statements. Their places are their prepared names.
const STATEMENTS: [&str; 11] = [
    "update proof.counter set n = n + 1, client = $2, number = $3 where id = $1 returning n, client, number",
    "insert into proof.entry (client, number, amount) values ($1, $2, $3) returning client, number",
    "update proof.own set n = n + 1, number = $2 where client = $1 returning n, client, number",
    "select n, client from proof.own where client = $1",
    "select value, version, status from hotrow.increment($1, $2, $3)",
    "select remaining, status from hotrow.reserve($1, $2, $3, $4)",
    "select client, number from proof.add_note($1, $2)",
    "insert into proof.pair (client, number) values ($1, $2) returning client, number",
    "begin",
    "commit",
    "rollback",
];

impl Request {
    /// Random requests to send together. All are of one kind, because writes and reads have separate lanes, and a client's requests
    /// run in their order.
    pub fn choose(client: u32, first: u64, random: &mut fastrand::Rng) -> Vec<Self> {
        let style = Style::of(client);
        let kind = Kind::choose(style, random);
        let is_hot = random.bool();
        let key = |random: &mut fastrand::Rng| match kind {
            Update if is_hot => 1,
            // Such a transaction locks its row for several messages. Others wait for it.
            Transaction | RolledBack if style == Style::OneByOne => random.u16(ROWS / 2..=ROWS),
            Update | Transaction | RolledBack => random.u16(1..=ROWS),
            Increment if is_hot => 0,
            Increment => random.u16(1..COUNTERS),
            Reserve => random.u16(0..STOCKS.len() as u16),
            _ => 0,
        };
        (first..).take(style.depth()).map(|number| Self { kind, client, number, key: key(random) }).collect()
    }

    /// The amount of an increment.
    pub fn amount(&self) -> i64 {
        1 + (self.number % 9).cast_signed()
    }

    /// The statements in their order, with their values.
    fn statements(&self, round: u64) -> Vec<(usize, Vec<String>)> {
        let who = || vec![self.client.to_string(), self.number.to_string()];
        let and = |mut values: Vec<String>, more: &str| {
            values.push(more.to_owned());
            values
        };
        let name = || format!("proof {round} {}", self.key);
        let id = || format!("{:08x}-0000-4000-8000-{:012x}", self.client, self.number);
        let count = || (UPDATE, [vec![self.key.to_string()], who()].concat());
        let transaction = |end| vec![(BEGIN, vec![]), (PAIR, who()), count(), (end, vec![])];
        match self.kind {
            Update => vec![count()],
            Insert => vec![(INSERT, and(who(), &self.amount().to_string()))],
            Forbidden => vec![(INSERT, and(who(), "0"))],
            Own => vec![(2, who())],
            Read => vec![(3, vec![self.client.to_string()])],
            Increment => vec![(4, vec![name(), self.amount().to_string(), id()])],
            Reserve => vec![(5, vec![name(), self.client.to_string(), "1".to_owned(), id()])],
            Call => vec![(6, who())],
            Transaction => transaction(COMMIT),
            RolledBack => transaction(ROLLBACK),
        }
    }

    /// The statements as texts, in their order.
    pub fn texts(&self, round: u64) -> Vec<String> {
        let text = |(statement, values): (usize, Vec<String>)| {
            let values = values.iter().enumerate();
            values.fold(STATEMENTS[statement].to_owned(), |sql, (at, value)| {
                sql.replace(&format!("${}", at + 1), &format!("'{value}'"))
            })
        };
        self.statements(round).into_iter().map(text).collect()
    }

    /// Appends the request as one unit, which gets one ReadyForQuery.
    pub fn put(&self, style: Style, round: u64, out: &mut BytesMut) {
        if style != Style::Pipelined {
            return put_query(out, &self.texts(round).join("; "));
        }
        for (statement, values) in self.statements(round) {
            let values = values.iter().map(String::as_bytes);
            put_bind_text(out, &[b'a' + statement as u8], values);
            out.extend_from_slice(EXECUTE);
        }
        out.extend_from_slice(SYNC);
    }
}

/// Appends the preparation of all statements, which gets one ReadyForQuery.
pub fn put_preparation(out: &mut BytesMut) {
    for (place, text) in STATEMENTS.iter().enumerate() {
        Parse { name: &[b'a' + place as u8], text: text.as_bytes(), types: &[] }.put(out);
    }
    out.extend_from_slice(SYNC);
}

#[cfg(test)]
mod tests {
    use super::{Kind, Request, Style};

    #[test]
    fn the_shares_are_a_hundred_and_places_are_those_of_the_list() {
        assert_eq!(Kind::ALL.iter().map(|(_, share, ..)| share).sum::<usize>(), 100);
        assert!(Kind::ALL.iter().enumerate().all(|(place, (kind, ..))| *kind as usize == place));
        let mut random = fastrand::Rng::with_seed(1);
        let chosen: std::collections::HashSet<_> =
            (0..5_000).map(|_| Kind::choose(Style::OneByOne, &mut random)).collect();
        assert_eq!(chosen.len(), Kind::ALL.len());
    }

    #[test]
    fn values_carry_client_and_number() {
        let request = |kind| Request { kind, client: 10, number: 31, key: 2 };
        let increment = request(Kind::Increment).texts(7);
        assert_eq!(
            increment,
            [
                "select value, version, status from hotrow.increment('proof 7 2', '5', '0000000a-0000-4000-8000-00000000001f')"
            ]
        );
        let texts = request(Kind::RolledBack).texts(7);
        assert_eq!((texts.len(), texts[0].as_str(), texts[3].as_str()), (4, "begin", "rollback"));
        assert!(texts[2].contains("client = '10', number = '31' where id = '2'"), "{texts:?}");
        let mut out = bytes::BytesMut::new();
        request(Kind::Transaction).put(Style::Pipelined, 7, &mut out);
        assert_eq!(out.iter().filter(|byte| **byte == b'E').count(), 4);
    }
}

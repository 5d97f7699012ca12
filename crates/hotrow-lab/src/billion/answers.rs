//! Judges the answer of one request: what the client knows after it, and whether the answer can be right. No I/O.

use super::work::{Kind, Request};
use bytes::Bytes;
use hotrow_wire::backend::data_row;

/// What a client knows about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done and is durable.
    Done,
    /// It was answered as it had to be, and changed nothing: sold out, or a constraint was violated.
    Refused,
    /// The answer says that nothing was executed.
    NotRun,
    /// The connection ended before the answer, or the answer says that the outcome is unknown.
    Unknown,
}

/// A request with its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub kind: Kind,
    pub key: u16,
    pub outcome: Outcome,
    /// The numbers in the answer, besides client and request: the counter's value, or value and version, or the stock.
    pub values: [i64; 2],
}

/// The messages that came for one request.
#[derive(Debug, Default)]
pub struct Answer {
    /// The bodies of the rows.
    pub rows: Vec<Bytes>,
    pub error: Option<Refusal>,
    /// Whether ReadyForQuery came.
    pub is_whole: bool,
}

/// An error in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Whether the connection ends.
    pub is_fatal: bool,
    pub code: String,
    pub message: String,
}

/// Codes that a client can get while servers, gateways and connections are killed. Those with 53 say that too many others wait.
const OUTAGES: [&str; 7] = ["08006", "08007", "53000", "53300", "57P01", "57P02", "57P03"];
const CHECK_VIOLATION: &str = "23514";
const IN_FAILED_TRANSACTION: &str = "25P02";

impl Refusal {
    /// Whether an outage explains the error.
    pub fn is_outage(&self) -> bool {
        OUTAGES.contains(&self.code.as_str())
    }

    fn outcome(&self) -> Outcome {
        let is_certain = self.message.contains("the gateway is shutting down")
            || self.message.contains("was not executed")
            || !self.is_fatal && self.code != "08007";
        if is_certain { Outcome::NotRun } else { Outcome::Unknown }
    }
}

impl Answer {
    /// The outcome if the answer is no result. An error says why no answer of this kind is allowed.
    fn failure(&self, request: &Request) -> Result<Option<Outcome>, String> {
        match &self.error {
            None => Ok((!self.is_whole).then_some(Outcome::Unknown)),
            Some(refusal) if refusal.code == CHECK_VIOLATION && request.kind == Kind::Forbidden => {
                Ok(Some(Outcome::Refused))
            }
            Some(refusal) if refusal.is_outage() => Ok(Some(refusal.outcome())),
            Some(refusal) => Err(format!("{request:?} got an error that no outage explains: {refusal:?}")),
        }
    }

    /// The record of a request with this answer, sent before the answer to an earlier one that left a failed transaction. Such a
    /// request cannot have run. Any other error is judged as usual.
    pub fn judge_in_failed(&self, request: &Request, later: Option<Outcome>) -> Result<Record, String> {
        match &self.error {
            Some(refusal) if refusal.code == IN_FAILED_TRANSACTION => {
                let Request { kind, key, .. } = *request;
                Ok(Record { kind, key, outcome: Outcome::NotRun, values: [0; 2] })
            }
            _ => self.judge(request, later),
        }
    }

    /// The record of a request with this answer. `later` is the outcome of the request before it if the connection ended there.
    pub fn judge(&self, request: &Request, later: Option<Outcome>) -> Result<Record, String> {
        let Request { kind, key, .. } = *request;
        let record = |outcome, values| Record { kind, key, outcome, values };
        if let Some(outcome) = self.failure(request)? {
            let outcome = if self.error.is_none() { later.unwrap_or(outcome) } else { outcome };
            return Ok(record(outcome, [0; 2]));
        }
        let values = self.values().ok_or_else(|| format!("{request:?} got no row of numbers: {self:?}"))?;
        let me = [i64::from(request.client), request.number.cast_signed()];
        let done = match (kind, values.as_slice()) {
            (Kind::Update | Kind::Own, &[n, client, number]) if me == [client, number] => [n, 0],
            (Kind::Insert | Kind::Call, &[client, number]) if me == [client, number] => [0; 2],
            (Kind::Read, &[n, client]) if me[0] == client => [n, 0],
            (Kind::Increment, &[value, version, OK]) => [value, version],
            (Kind::Reserve, &[remaining, RESERVED]) => [remaining, 0],
            (Kind::Reserve, &[remaining, SOLD_OUT]) => return Ok(record(Outcome::Refused, [remaining, 0])),
            (Kind::Transaction | Kind::RolledBack, &[a, b, n, client, number])
                if me == [client, number] && me == [a, b] =>
            {
                [n, 0]
            }
            _ => return Err(format!("{request:?} got the answer {values:?}, which is not its own")),
        };
        Ok(record(Outcome::Done, done))
    }

    /// The values of all rows.
    fn values(&self) -> Option<Vec<i64>> {
        let mut values = Vec::with_capacity(5);
        for row in &self.rows {
            for value in data_row(row).ok()? {
                values.push(number(value?)?);
            }
        }
        Some(values)
    }
}

const OK: i64 = -1;
const RESERVED: i64 = -2;
const SOLD_OUT: i64 = -3;

/// A value as a number. No number that a client expects is negative.
fn number(text: &[u8]) -> Option<i64> {
    match text {
        b"ok" => Some(OK),
        b"reserved" => Some(RESERVED),
        b"sold_out" => Some(SOLD_OUT),
        _ => str::from_utf8(text).ok()?.parse().ok().filter(|value| *value >= 0),
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, Outcome, Refusal};
    use crate::billion::work::{Kind, Request};
    use bytes::{BufMut, BytesMut};

    fn request(kind: Kind) -> Request {
        Request { kind, client: 3, number: 8, key: 1 }
    }

    fn answer(rows: &[&[&str]]) -> Answer {
        let row = |values: &&[&str]| {
            let mut body = BytesMut::new();
            body.put_u16(values.len() as u16);
            for value in *values {
                body.put_i32(value.len() as i32);
                body.put_slice(value.as_bytes());
            }
            body.freeze()
        };
        Answer { rows: rows.iter().map(row).collect(), error: None, is_whole: true }
    }

    fn error(code: &str, message: &str, is_fatal: bool) -> Answer {
        let refusal = Refusal { is_fatal, code: code.into(), message: message.into() };
        Answer { rows: vec![], error: Some(refusal), is_whole: !is_fatal }
    }

    fn outcome(kind: Kind, answer: &Answer) -> Result<Outcome, String> {
        answer.judge(&request(kind), None).map(|record| record.outcome)
    }

    #[test]
    fn an_answer_of_another_client_or_request_is_found() {
        let own = answer(&[&["5", "3", "8"]]);
        assert_eq!(own.judge(&request(Kind::Update), None).unwrap().values, [5, 0]);
        for values in [["5", "4", "8"], ["5", "3", "9"]] {
            let fault = outcome(Kind::Update, &answer(&[&values])).unwrap_err();
            assert!(fault.contains("not its own"), "{fault}");
        }
        outcome(Kind::Read, &answer(&[&["5", "4"]])).unwrap_err();
        outcome(Kind::Transaction, &answer(&[&["3", "8"], &["1", "3", "7"]])).unwrap_err();
        outcome(Kind::Update, &answer(&[])).unwrap_err();
        outcome(Kind::Update, &answer(&[&["5", "3", "8"], &["5", "3", "8"]])).unwrap_err();
        outcome(Kind::Insert, &answer(&[&["3", "x"]])).unwrap_err();
    }

    #[test]
    fn refusals_count_only_where_they_belong() {
        let violation = error("23514", "violates", false);
        assert_eq!(outcome(Kind::Forbidden, &violation), Ok(Outcome::Refused));
        outcome(Kind::Insert, &violation).unwrap_err();
        outcome(Kind::Forbidden, &answer(&[&["3", "8"]])).unwrap_err();
        outcome(Kind::Update, &error("40P01", "deadlock", false)).unwrap_err();
        assert_eq!(outcome(Kind::Reserve, &answer(&[&["0", "sold_out"]])), Ok(Outcome::Refused));
        outcome(Kind::Increment, &answer(&[&["1", "1", "overflow"]])).unwrap_err();
    }

    #[test]
    fn outages_tell_what_is_known() {
        assert_eq!(outcome(Kind::Update, &error("57P03", "no server", false)), Ok(Outcome::NotRun));
        assert_eq!(outcome(Kind::Update, &error("08007", "unknown", false)), Ok(Outcome::Unknown));
        assert_eq!(outcome(Kind::Update, &error("57P01", "terminating", true)), Ok(Outcome::Unknown));
        let stopping = error("57P01", "the gateway is shutting down", true);
        assert_eq!(outcome(Kind::Update, &stopping), Ok(Outcome::NotRun));
        assert_eq!(outcome(Kind::Update, &Answer::default()), Ok(Outcome::Unknown));
        let after = Answer::default().judge(&request(Kind::Update), Some(Outcome::NotRun)).unwrap();
        assert_eq!(after.outcome, Outcome::NotRun);
    }

    #[test]
    fn requests_behind_a_failed_transaction_do_not_run() {
        let aborted = error("25P02", "current transaction is aborted", false);
        let (request, other) = (request(Kind::Transaction), error("40P01", "deadlock", false));
        aborted.judge(&request, None).unwrap_err();
        assert_eq!(aborted.judge_in_failed(&request, None).unwrap().outcome, Outcome::NotRun);
        other.judge_in_failed(&request, None).unwrap_err();
        let own = answer(&[&["3", "8"], &["5", "3", "8"]]);
        assert_eq!(own.judge_in_failed(&request, None).unwrap().outcome, Outcome::Done);
    }
}

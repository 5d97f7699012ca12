//! Reads from replicas: which replica may serve, which one a session reads from, and whether a connection shows a state that
//! the session may see. It asks no server and has no clock.
//!
//! A session must see its own commits, and never an older state than before. Two facts make this cheap:
//!
//! - A replica replays the log in order. After it has replayed the primary's position, it shows every commit before it.
//! - A replica goes back only when it restarts, and a restart ends all its connections. A connection that was open before a
//!   session's earlier read, and is still open, shows a state that is at least as new.
//!
//! So a session asks the primary for its position once after work elsewhere, and then reads without a question. Both facts are
//! about one server, so all reads up to the next question run on the server that was asked, also if its address leads to
//! several.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use crate::limits;

/// A position in the server's WAL (`pg_lsn`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

/// The text is not a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a position in the WAL")]
pub struct NoPosition;

impl FromStr for Position {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<Self, NoPosition> {
        let (high, low) = text.split_once('/').ok_or(NoPosition)?;
        let part = |text: &str| u32::from_str_radix(text, 16).map_err(|_| NoPosition);
        Ok(Position(u64::from(part(high)?) << 32 | u64::from(part(low)?)))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xffff_ffff)
    }
}

/// The history of a WAL: the cluster's identifier, and the timeline, which changes with each promotion. Positions of
/// different histories cannot be compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// `system_identifier`.
    pub cluster: String,
    /// The number of the timeline.
    pub timeline: u32,
}

/// What the primary has said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Primary {
    /// The end of its WAL: all that was committed before the question is before it.
    pub position: Position,
    pub history: History,
}

/// What a replica has said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaAnswer {
    /// It replays a WAL. False after its promotion.
    pub is_in_recovery: bool,
    /// How far it has replayed the WAL.
    pub replayed: Option<Position>,
    /// Its history, as far as it has written that down.
    pub history: History,
    /// When it was started, in microseconds. Two servers are not started in the same one.
    pub started: i64,
}

/// Whether a replica serves reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplicaStatus {
    /// It has not been asked yet.
    #[default]
    Unknown,
    Serves,
    /// It cannot be asked.
    Unreachable,
    /// The primary cannot be asked, so the lag is not known.
    NoPrimary,
    Promoted,
    /// It follows another cluster, or has not shown that it follows the primary's timeline.
    OtherHistory,
    /// Its version or its settings differ from the primary's.
    OtherSettings,
    /// It is too far behind.
    Lags,
}

impl ReplicaStatus {
    /// For operators.
    pub fn word(self) -> &'static str {
        match self {
            ReplicaStatus::Unknown => "not asked yet",
            ReplicaStatus::Serves => "serves",
            ReplicaStatus::Unreachable => "unreachable",
            ReplicaStatus::NoPrimary => "primary unreachable",
            ReplicaStatus::Promoted => "promoted",
            ReplicaStatus::OtherHistory => "not known to follow the primary",
            ReplicaStatus::OtherSettings => "other settings than the primary",
            ReplicaStatus::Lags => "lags",
        }
    }

    /// The status of a replica that has the primary's settings. It had replayed the WAL up to `earlier` before the primary
    /// was asked. If that is more than the primary has, it replays a timeline that it has not written down yet.
    pub fn of(
        seen: &ReplicaAnswer,
        earlier: Position,
        primary: &Primary,
        lag_ms: Option<u64>,
        lag_max_ms: u64,
    ) -> ReplicaStatus {
        match seen.replayed {
            _ if !seen.is_in_recovery => ReplicaStatus::Promoted,
            None => ReplicaStatus::OtherHistory,
            Some(_) if seen.history != primary.history || earlier > primary.position => {
                ReplicaStatus::OtherHistory
            }
            Some(_) if lag_ms.is_none_or(|lag_ms| lag_ms > lag_max_ms) => ReplicaStatus::Lags,
            Some(_) => ReplicaStatus::Serves,
        }
    }
}

/// How long ago the primary was in the state that a replica shows, without the clocks of the two.
#[derive(Debug, Default)]
pub struct LagMeter {
    /// Positions of the primary that the replica had not replayed, with the time when the primary was there.
    ahead: VecDeque<(u64, Position)>,
    /// Least time between two of them. It grows with the lag.
    stride: u64,
    /// The replica has once been where the primary was.
    is_known: bool,
}

impl LagMeter {
    /// The primary was here at this time, in milliseconds.
    pub fn primary(&mut self, now: u64, position: Position) {
        if self.ahead.back().is_some_and(|(at, last)| *last >= position || now < at + self.stride) {
            return;
        }
        if self.ahead.len() >= limits::LAG_SAMPLES_MAX {
            // Every second one will do: the lag is still known to a thirtieth.
            self.stride = now.saturating_sub(self.ahead[0].0) * 2 / self.ahead.len() as u64;
            let mut keeps = false;
            self.ahead.retain(|_| {
                keeps = !keeps;
                keeps
            });
        }
        self.ahead.push_back((now, position));
    }

    /// The replica has replayed the WAL up to here. Returns its lag in milliseconds, or none as long as it has not reached
    /// any position of the primary, because it may be behind by any time.
    pub fn replayed(&mut self, now: u64, position: Position) -> Option<u64> {
        while self.ahead.front().is_some_and(|(_, first)| *first <= position) {
            self.ahead.pop_front();
            self.is_known = true;
        }
        if self.ahead.is_empty() {
            self.stride = 0;
        }
        self.is_known.then(|| self.ahead.front().map_or(0, |(at, _)| now.saturating_sub(*at)))
    }
}

/// A replica as far as is known, for a session that wants to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownReplica {
    pub serves: bool,
    /// How far it had replayed the WAL when it was last asked.
    pub replayed: Position,
}

/// The decision for a session that has to see everything up to a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It reads from this replica.
    Replica(usize),
    /// A replica may get there soon.
    Wait,
    /// None serves.
    Primary,
}

/// The replica for a session. They are taken in turn, so each gets as many sessions as the others.
pub fn choose(candidates: &[KnownReplica], target: Position, turn: usize) -> Choice {
    let in_turn = (0..candidates.len()).map(|step| turn.wrapping_add(step) % candidates.len());
    let mut serving = in_turn.filter(|index| candidates[*index].serves).peekable();
    if serving.peek().is_none() {
        return Choice::Primary;
    }
    serving.find(|index| candidates[*index].replayed >= target).map_or(Choice::Wait, Choice::Replica)
}

/// The oldest state that a session may see, and the replica that it reads from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsnBound {
    /// The index of the replica.
    pub replica: usize,
    /// The replica must have replayed the WAL up to here.
    pub position: Position,
    /// Connections of lanes are numbered. Those up to this number were open before the session's first read from this
    /// replica after `position` was found. Later ones may belong to a later life of the replica.
    pub connections: u64,
    /// When the replica was started.
    pub started: i64,
    /// When the replica was chosen: the number of changes in the set of replicas that serve, and of the catalog.
    pub epoch: u64,
}

impl LsnBound {
    /// For the first read after the session has worked elsewhere: the position alone is enough.
    pub fn at(replica: usize, started: i64, position: Position, epoch: u64) -> Self {
        LsnBound { replica, position, connections: u64::MAX, started, epoch }
    }

    /// For reads after one that is submitted now, when the newest connection has this number.
    #[must_use]
    pub fn after(self, newest: u64) -> Self {
        LsnBound { connections: self.connections.min(newest), ..self }
    }

    /// Whether a connection with this number shows no older state than the session has seen, if the replica has replayed
    /// `position`.
    pub fn allows(&self, connection: u64) -> bool {
        connection <= self.connections
    }
}

/// Where the next read of a session runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadSource {
    Primary,
    /// On the replica that it read from before.
    SameReplica,
    /// On a replica that has to be chosen.
    AnyReplica,
}

/// The decision about a session whose earlier reads had this bound, with the present epoch, or none if no replica serves.
pub fn source(bound: Option<&LsnBound>, epoch: Option<u64>) -> ReadSource {
    match (epoch, bound) {
        (None, _) => ReadSource::Primary,
        (Some(epoch), Some(bound)) if bound.epoch == epoch => ReadSource::SameReplica,
        (Some(_), _) => ReadSource::AnyReplica,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(timeline: u32) -> History {
        History { cluster: "7".to_owned(), timeline }
    }

    #[test]
    fn positions_are_read_and_written_as_by_the_server() {
        for text in ["0/0", "0/16B3748", "16/B374D848", "FFFFFFFF/FFFFFFFF"] {
            assert_eq!(text.parse::<Position>().unwrap().to_string(), text);
        }
        assert!("16/B374D848".parse::<Position>().unwrap() > "0/FFFFFFFF".parse().unwrap());
        for wrong in ["", "0", "0/", "x/1", "0/100000000", "-1/0"] {
            assert_eq!(wrong.parse::<Position>(), Err(NoPosition), "{wrong}");
        }
    }

    #[test]
    fn a_replica_serves_only_if_it_is_known_to_follow_the_primary_closely() {
        let primary = Primary { position: Position(100), history: history(1) };
        let seen = ReplicaAnswer {
            is_in_recovery: true,
            replayed: Some(Position(90)),
            history: history(1),
            started: 5,
        };
        let after = |earlier| ReplicaStatus::of(&seen, Position(earlier), &primary, Some(0), 1000);
        assert_eq!([after(90), after(100)], [ReplicaStatus::Serves; 2]);
        assert_eq!(after(101), ReplicaStatus::OtherHistory, "the primary had not written that");
        let status =
            |seen: &ReplicaAnswer, lag| ReplicaStatus::of(seen, Position(80), &primary, Some(lag), 1000);
        assert_eq!(ReplicaStatus::of(&seen, Position(80), &primary, None, 1000), ReplicaStatus::Lags);
        assert_eq!(status(&seen, 1000), ReplicaStatus::Serves);
        assert_eq!(status(&seen, 1001), ReplicaStatus::Lags);
        assert_eq!(
            status(&ReplicaAnswer { is_in_recovery: false, ..seen.clone() }, 0),
            ReplicaStatus::Promoted
        );
        assert_eq!(status(&ReplicaAnswer { replayed: None, ..seen.clone() }, 0), ReplicaStatus::OtherHistory);
        assert_eq!(
            status(&ReplicaAnswer { history: history(2), ..seen.clone() }, 0),
            ReplicaStatus::OtherHistory
        );
        let other = History { cluster: "8".to_owned(), timeline: 1 };
        assert_eq!(status(&ReplicaAnswer { history: other, ..seen }, 0), ReplicaStatus::OtherHistory);
    }

    #[test]
    fn the_lag_is_the_age_of_the_first_position_that_is_not_replayed() {
        let mut meter = LagMeter::default();
        meter.primary(100, Position(10));
        assert_eq!(meter.replayed(100, Position(9)), None, "it may have lagged for days");
        assert_eq!(meter.replayed(110, Position(10)), Some(0), "it has caught up");
        meter.primary(200, Position(20));
        meter.primary(300, Position(30));
        assert_eq!(meter.replayed(350, Position(15)), Some(150));
        assert_eq!(meter.replayed(400, Position(20)), Some(100));
        meter.primary(5000, Position(30));
        assert_eq!(meter.replayed(5000, Position(30)), Some(0), "an idle primary makes no lag");
    }

    #[test]
    fn a_long_lag_is_measured_in_bounded_memory() {
        let mut meter = LagMeter::default();
        meter.primary(0, Position(0));
        assert_eq!(meter.replayed(0, Position(0)), Some(0));
        for now in 1..100_000 {
            meter.primary(now, Position(now));
            assert!(meter.ahead.len() <= limits::LAG_SAMPLES_MAX);
        }
        assert_eq!(meter.replayed(100_000, Position(0)), Some(99_999));
        let half = meter.replayed(100_000, Position(50_000)).unwrap();
        assert!((40_000..=50_000).contains(&half), "{half}");
    }

    #[test]
    fn replicas_are_taken_in_turn_and_only_those_that_are_far_enough() {
        let candidate = |serves, replayed| KnownReplica { serves, replayed: Position(replayed) };
        let both = [candidate(true, 10), candidate(true, 20)];
        let chosen = |target| (0..4).map(|turn| choose(&both, Position(target), turn)).collect::<Vec<_>>();
        assert_eq!(chosen(10), [0, 1, 0, 1].map(Choice::Replica));
        assert_eq!(chosen(11), [1, 1, 1, 1].map(Choice::Replica));
        assert_eq!(chosen(21), [Choice::Wait; 4]);
        let one = [candidate(false, 99), candidate(true, 5)];
        assert_eq!(choose(&one, Position(5), 0), Choice::Replica(1));
        assert_eq!(choose(&one, Position(6), 0), Choice::Wait, "the one that is left out does not count");
        assert_eq!(choose(&[candidate(false, 99)], Position(1), 0), Choice::Primary);
        assert_eq!(choose(&[], Position(1), 3), Choice::Primary);
        assert_eq!(choose(&both, Position(1), usize::MAX), Choice::Replica(1));
    }

    #[test]
    fn a_connection_that_is_newer_than_an_earlier_read_may_show_an_older_state() {
        let first = LsnBound::at(0, 5, Position(10), 1);
        assert!(first.allows(7), "the position is checked on it");
        let later = first.after(7);
        assert!(later.allows(7));
        assert!(!later.allows(8), "the replica may have restarted between the two reads");
        assert_eq!(later.after(9), later, "a later read proves nothing about newer connections");
    }

    #[test]
    fn a_session_keeps_its_replica_until_the_set_changes() {
        let bound = LsnBound::at(0, 5, Position(10), 3);
        assert_eq!(source(Some(&bound), Some(3)), ReadSource::SameReplica);
        assert_eq!(source(Some(&bound), Some(4)), ReadSource::AnyReplica);
        assert_eq!(source(None, Some(3)), ReadSource::AnyReplica);
        assert_eq!(source(Some(&bound), None), ReadSource::Primary);
    }
}

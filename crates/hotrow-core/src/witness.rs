//! Whether a server's word on what became of a transaction is believed: by what binds the server that answers to the one
//! that was sent the transaction. Never asks; the gateway does.
//!
//! A transaction's id means nothing by itself. After a crash or a failover, ids of transactions that did not reach the log
//! (or the standby) are given out again, so that *committed* may be said of somebody else's transaction. *Aborted*, and
//! an id from the future, deny that the id was ever committed in this server's history, whoever had it; but another
//! cluster's history says nothing of ours, and neither does a standby that has not yet replayed all it will.

use crate::lane::Outcome;

/// A server as it was when a connection was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Changes with each start, and when the server restarts its own children after a crash.
    pub life: String,
    /// The cluster's identifier, which its standbys share; none where the role may not know it.
    pub cluster: Option<String>,
}

/// What binds the server that answers to the one that was sent the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bond {
    /// It is the same one, and has not crashed since.
    SameLife,
    /// It has the same history up to some point: the same one after a crash, or a standby that was promoted.
    SameCluster,
    /// It may be anything.
    None,
}

impl Bond {
    /// Between the server before and the one now.
    pub fn between(before: Option<&Server>, now: Option<&Server>) -> Self {
        let (Some(before), Some(now)) = (before, now) else { return Bond::None };
        match before.cluster == now.cluster {
            true if before.life == now.life => Bond::SameLife,
            true if before.cluster.is_some() => Bond::SameCluster,
            _ => Bond::None,
        }
    }
}

/// What a server said of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It is committed.
    Committed,
    /// It is rolled back.
    Aborted,
    /// It is not done yet.
    InProgress,
    /// It has not been given out yet.
    NotGivenOut,
    /// It is too old to be known.
    Forgotten,
    /// The server replays another's log, and does not know yet what it will know.
    InRecovery,
}

/// What is believed; none if it has to be asked again.
pub fn believe(word: Word, bond: Bond) -> Option<Outcome> {
    match (word, bond) {
        (Word::InProgress | Word::InRecovery, _) => None,
        (Word::Committed, Bond::SameLife) => Some(Outcome::Committed),
        (Word::Aborted | Word::NotGivenOut, Bond::SameLife | Bond::SameCluster) => Some(Outcome::Aborted),
        _ => Some(Outcome::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(life: &str, cluster: Option<&str>) -> Server {
        Server { life: life.to_owned(), cluster: cluster.map(str::to_owned) }
    }

    #[test]
    fn what_binds_two_servers() {
        let before = server("1", Some("c"));
        let bond = |now: Server| Bond::between(Some(&before), Some(&now));
        assert_eq!(bond(before.clone()), Bond::SameLife);
        assert_eq!(bond(server("2", Some("c"))), Bond::SameCluster);
        assert_eq!(bond(server("2", Some("d"))), Bond::None);
        assert_eq!(bond(server("1", Some("d"))), Bond::None);
        assert_eq!(bond(server("2", None)), Bond::None);
        let unknown = server("1", None);
        assert_eq!(Bond::between(Some(&unknown), Some(&unknown)), Bond::SameLife);
        assert_eq!(Bond::between(Some(&unknown), Some(&server("2", None))), Bond::None);
        assert_eq!(Bond::between(None, Some(&before)), Bond::None);
        assert_eq!(Bond::between(None, None), Bond::None);
    }

    #[test]
    fn only_what_can_be_proven_is_believed() {
        let (yes, no, unknown) = (Some(Outcome::Committed), Some(Outcome::Aborted), Some(Outcome::Unknown));
        for (word, same_life, same_cluster, none) in [
            (Word::Committed, yes, unknown, unknown),
            (Word::Aborted, no, no, unknown),
            (Word::NotGivenOut, no, no, unknown),
            (Word::Forgotten, unknown, unknown, unknown),
            (Word::InProgress, None, None, None),
            (Word::InRecovery, None, None, None),
        ] {
            assert_eq!(believe(word, Bond::SameLife), same_life, "{word:?}");
            assert_eq!(believe(word, Bond::SameCluster), same_cluster, "{word:?}");
            assert_eq!(believe(word, Bond::None), none, "{word:?}");
        }
    }
}

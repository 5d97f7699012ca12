//! Which host may serve as the primary, by the timelines of the hosts. After a failover the old primary can come back: it accepts
//! writes, and the new primary never gets them. It asks no server and has no clock.
//!
//! A promotion begins a new timeline with a greater number. So of two primaries of one cluster, the one on the lower timeline was
//! left behind. Timelines of different clusters cannot be compared, and a role that may not ask for the timeline knows nothing.

use crate::replica::History;

/// The history of the primary that has served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedHistory(Option<History>);

/// What a primary means for the connections that exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The primary's history is the one that has served, or unknown.
    Same,
    /// The cluster has a new timeline: connections of earlier timelines must not be used again.
    NewTimeline,
}

/// A host that has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// It is no standby.
    pub accepts_writes: bool,
    /// Its history, if it accepts writes and the role may ask.
    pub history: Option<History>,
}

/// The hosts of a server, compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The host that serves: the first of those that no other one has left behind.
    pub serves: Option<usize>,
    /// The hosts that accept writes for a cluster for which another host accepts writes too.
    pub rivals: Vec<usize>,
}

impl ServedHistory {
    /// After a primary with this history has served.
    pub fn new(history: Option<History>) -> Self {
        ServedHistory(history)
    }

    pub fn history(&self) -> Option<&History> {
        self.0.as_ref()
    }

    /// Whether a primary with this history may serve.
    pub fn admits(&self, seen: Option<&History>) -> bool {
        match (&self.0, seen) {
            (Some(served), Some(seen)) => !is_behind(seen, served),
            _ => true,
        }
    }

    /// A primary with this history serves.
    pub fn serves(&mut self, seen: Option<&History>) -> Change {
        let Some(seen) = seen else { return Change::Same };
        let change = match &self.0 {
            Some(served) if served.cluster == seen.cluster && served.timeline < seen.timeline => {
                Change::NewTimeline
            }
            _ => Change::Same,
        };
        self.0 = Some(seen.clone());
        change
    }
}

fn is_behind(one: &History, other: &History) -> bool {
    one.cluster == other.cluster && one.timeline < other.timeline
}

/// Compares the hosts. Those that did not answer are none.
pub fn compare(hosts: &[Option<Answer>]) -> Comparison {
    let primaries = || {
        hosts.iter().enumerate().filter_map(|(index, host)| {
            let host = host.as_ref().filter(|host| host.accepts_writes)?;
            Some((index, host.history.as_ref()?))
        })
    };
    let is_left_behind = |history: &History| primaries().any(|(_, other)| is_behind(history, other));
    let serves = hosts.iter().position(|host| {
        host.as_ref().is_some_and(|host| !host.history.as_ref().is_some_and(is_left_behind))
    });
    let has_rival = |index: usize, history: &History| {
        primaries().any(|(other, theirs)| other != index && theirs.cluster == history.cluster)
    };
    let rivals = primaries().filter(|(index, history)| has_rival(*index, history)).map(|(index, _)| index);
    Comparison { serves, rivals: rivals.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(cluster: &str, timeline: u32) -> History {
        History { cluster: cluster.to_owned(), timeline }
    }

    fn primary(cluster: &str, timeline: u32) -> Option<Answer> {
        Some(Answer { accepts_writes: true, history: Some(history(cluster, timeline)) })
    }

    const STANDBY: Option<Answer> = Some(Answer { accepts_writes: false, history: None });
    const UNKNOWN: Option<Answer> = Some(Answer { accepts_writes: true, history: None });

    #[test]
    fn a_lower_timeline_of_the_cluster_that_has_served_is_not_admitted() {
        let mut served = ServedHistory::default();
        assert!(served.admits(Some(&history("a", 1))), "nothing has served");
        assert_eq!(served.serves(Some(&history("a", 2))), Change::Same);
        assert!(!served.admits(Some(&history("a", 1))));
        assert!(served.admits(Some(&history("a", 2))));
        assert!(served.admits(Some(&history("a", 3))));
        assert!(served.admits(Some(&history("b", 1))), "another cluster");
        assert!(served.admits(None), "unknown");
    }

    #[test]
    fn a_new_timeline_is_a_change_and_an_unknown_one_is_forgotten_by_nothing() {
        let mut served = ServedHistory::new(Some(history("a", 1)));
        assert_eq!(served.serves(Some(&history("a", 1))), Change::Same);
        assert_eq!(served.serves(Some(&history("a", 3))), Change::NewTimeline);
        assert_eq!(served.serves(None), Change::Same);
        assert_eq!(served.history(), Some(&history("a", 3)));
        assert_eq!(served.serves(Some(&history("b", 1))), Change::Same, "they cannot be compared");
        assert_eq!(served.history(), Some(&history("b", 1)));
    }

    #[test]
    fn the_primary_with_the_highest_timeline_serves() {
        let serves = |hosts: &[Option<Answer>]| compare(hosts).serves;
        assert_eq!(serves(&[primary("a", 1), primary("a", 2)]), Some(1));
        assert_eq!(serves(&[primary("a", 3), primary("a", 2), primary("a", 1)]), Some(0));
        assert_eq!(serves(&[None, primary("a", 1)]), Some(1));
        assert_eq!(serves(&[primary("a", 1), None, STANDBY, primary("b", 2)]), Some(0), "other clusters");
        assert_eq!(serves(&[STANDBY, primary("a", 1)]), Some(0), "a standby serves if it may");
        assert_eq!(serves(&[primary("a", 1), STANDBY, primary("a", 2)]), Some(1));
        assert_eq!(serves(&[UNKNOWN, primary("a", 2)]), Some(0), "as they were named");
        assert_eq!(serves(&[None, None]), None);
    }

    #[test]
    fn two_primaries_of_one_cluster_are_rivals() {
        let rivals = |hosts: &[Option<Answer>]| compare(hosts).rivals;
        assert_eq!(rivals(&[primary("a", 1), primary("a", 2)]), [0, 1]);
        assert_eq!(
            rivals(&[primary("a", 2), STANDBY, primary("a", 2)]),
            [0, 2],
            "the timeline may be the same"
        );
        assert_eq!(rivals(&[primary("a", 1), primary("b", 1)]), [0; 0]);
        assert_eq!(rivals(&[primary("a", 1), STANDBY, None, UNKNOWN]), [0; 0]);
    }
}

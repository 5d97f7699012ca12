//! Checks a run: compares the rows with the acknowledged answers and counts the work done. It reads and runs nothing.

use crate::scenario::Worth;

/// The state of the rows at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Units done so far.
    pub done: i64,
    /// Rows that violate an invariant.
    pub broken: i64,
}

/// The work of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Units of work: those that the rows confirm, or answered reads.
    pub done: u64,
    /// Rejected attempts.
    pub turned_away: u64,
}

/// The acknowledged requests of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledgements {
    /// Answers to the technique's own requests.
    pub acknowledged: u64,
    /// Answers to the requests of the second load, each with one unit of work.
    pub beside: u64,
}

/// Compares the rows before and after a run with the answers that its clients received.
pub fn judge(
    worth: Worth,
    acknowledgements: Acknowledgements,
    before: Reading,
    after: Reading,
) -> Result<Work, String> {
    let Acknowledgements { acknowledged, beside } = acknowledgements;
    if after.broken != 0 {
        return Err(format!("{} rows are missing or no longer add up", after.broken));
    }
    if acknowledged == 0 {
        return Err("no client got an answer".into());
    }
    let changed = u64::try_from(after.done - before.done).ok().and_then(|all| all.checked_sub(beside));
    let changed = changed.ok_or_else(|| {
        format!(
            "units are missing: {} before the run, {} after it, and {beside} acknowledged to other clients",
            before.done, after.done
        )
    })?;
    match worth {
        Worth::Each(pieces) if changed != acknowledged * u64::from(pieces) => Err(format!(
            "{acknowledged} requests for {pieces} each were acknowledged, but the rows show {changed}; the rows may have run out"
        )),
        Worth::Sold if changed != acknowledged => {
            Err(format!("{acknowledged} requests were acknowledged, but the rows show {changed}"))
        }
        Worth::SoldOrTurnedAway if changed > acknowledged => {
            Err(format!("only {acknowledged} attempts got an answer, but the rows show {changed}"))
        }
        Worth::Mixed { most } if changed > acknowledged * u64::from(most) => Err(format!(
            "{acknowledged} transactions of at most {most} units were acknowledged, but the rows show {changed}"
        )),
        Worth::Read if changed != 0 => {
            Err(format!("requests that change nothing changed the rows: they show {changed}"))
        }
        Worth::Sold | Worth::SoldOrTurnedAway => {
            Ok(Work { done: changed, turned_away: acknowledged - changed })
        }
        Worth::Each(_) => Ok(Work { done: changed, turned_away: 0 }),
        Worth::Read | Worth::Mixed { .. } => Ok(Work { done: acknowledged, turned_away: 0 }),
    }
}

#[cfg(test)]
mod tests {
    use super::{Acknowledgements, Reading, Work};
    use crate::scenario::Worth::{self, Each, Mixed, Read, Sold, SoldOrTurnedAway};

    fn judge(worth: Worth, acknowledged: u64, before: Reading, after: Reading) -> Result<Work, String> {
        super::judge(worth, Acknowledgements { acknowledged, beside: 0 }, before, after)
    }

    fn reading(done: i64) -> Reading {
        Reading { done, broken: 0 }
    }

    #[test]
    fn rows_that_agree_with_the_answers_pass() {
        let work = |done, turned_away| Ok(Work { done, turned_away });
        assert_eq!(judge(Sold, 10, reading(5), reading(15)), work(10, 0));
        assert_eq!(judge(SoldOrTurnedAway, 10, reading(5), reading(8)), work(3, 7));
        assert_eq!(judge(Read, 10, reading(5), reading(5)), work(10, 0));
        assert_eq!(judge(Each(20), 10, reading(5), reading(205)), work(200, 0));
        assert_eq!(judge(Mixed { most: 3 }, 10, reading(5), reading(25)), work(10, 0));
    }

    #[test]
    fn work_of_the_second_load_is_checked_and_not_counted() {
        let acknowledgements = Acknowledgements { acknowledged: 10, beside: 7 };
        let judged = |after| super::judge(Each(2), acknowledgements, reading(5), reading(after));
        assert_eq!(judged(32), Ok(Work { done: 20, turned_away: 0 }));
        assert!(judged(31).is_err() && judged(33).is_err());
        assert!(judged(11).unwrap_err().contains("are missing"));
    }

    #[test]
    fn a_lost_and_an_invented_sale_both_fail() {
        assert!(judge(Sold, 10, reading(5), reading(14)).unwrap_err().contains("the rows show 9"));
        assert!(judge(Sold, 10, reading(5), reading(16)).unwrap_err().contains("the rows show 11"));
        assert!(judge(SoldOrTurnedAway, 10, reading(0), reading(11)).is_err());
        assert!(judge(Read, 10, reading(0), reading(1)).is_err());
        assert!(judge(Each(20), 10, reading(0), reading(199)).unwrap_err().contains("run out"));
        assert!(judge(Mixed { most: 3 }, 10, reading(0), reading(31)).is_err());
    }

    #[test]
    fn broken_rows_and_missing_answers_fail() {
        assert!(judge(Sold, 1, reading(0), Reading { done: 1, broken: 1 }).is_err());
        assert!(judge(Sold, 1, reading(5), reading(4)).unwrap_err().contains("are missing"));
        assert!(judge(SoldOrTurnedAway, 0, reading(0), reading(0)).is_err());
    }
}

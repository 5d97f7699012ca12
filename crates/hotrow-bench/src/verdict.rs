//! Judges a run: whether the rows agree with the acknowledged answers, and what was really done; reads and runs nothing.

use crate::scenario::Worth;

/// What the rows say at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Units done so far.
    pub done: i64,
    /// Rows that broke a promise.
    pub broken: i64,
}

/// What a run came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Units of real work: what the rows confirm, or reads that were answered.
    pub done: u64,
    /// Attempts that were turned away.
    pub turned_away: u64,
}

/// Compares the rows before and after a run with the answers its clients got.
pub fn judge(worth: Worth, acknowledged: u64, before: Reading, after: Reading) -> Result<Work, String> {
    if after.broken != 0 {
        return Err(format!("{} rows are missing or no longer add up", after.broken));
    }
    let changed = u64::try_from(after.done - before.done).map_err(|_| {
        format!("units went missing: {} before the run, {} after it", before.done, after.done)
    })?;
    if acknowledged == 0 {
        return Err("no client got an answer".into());
    }
    match worth {
        Worth::Sold if changed != acknowledged => {
            Err(format!("{acknowledged} requests were acknowledged, but the rows show {changed}"))
        }
        Worth::SoldOrTurnedAway if changed > acknowledged => {
            Err(format!("only {acknowledged} attempts were answered, but the rows show {changed}"))
        }
        Worth::Read if changed != 0 => {
            Err(format!("requests that change nothing changed the rows: they show {changed}"))
        }
        Worth::Sold | Worth::SoldOrTurnedAway => {
            Ok(Work { done: changed, turned_away: acknowledged - changed })
        }
        Worth::Read => Ok(Work { done: acknowledged, turned_away: 0 }),
    }
}

#[cfg(test)]
mod tests {
    use super::{Reading, Work, judge};
    use crate::scenario::Worth::{Read, Sold, SoldOrTurnedAway};

    fn reading(done: i64) -> Reading {
        Reading { done, broken: 0 }
    }

    #[test]
    fn what_agrees_passes() {
        let work = |done, turned_away| Ok(Work { done, turned_away });
        assert_eq!(judge(Sold, 10, reading(5), reading(15)), work(10, 0));
        assert_eq!(judge(SoldOrTurnedAway, 10, reading(5), reading(8)), work(3, 7));
        assert_eq!(judge(Read, 10, reading(5), reading(5)), work(10, 0));
    }

    #[test]
    fn a_lost_and_an_invented_sale_both_fail() {
        assert!(judge(Sold, 10, reading(5), reading(14)).unwrap_err().contains("the rows show 9"));
        assert!(judge(Sold, 10, reading(5), reading(16)).unwrap_err().contains("the rows show 11"));
        assert!(judge(SoldOrTurnedAway, 10, reading(0), reading(11)).is_err());
        assert!(judge(Read, 10, reading(0), reading(1)).is_err());
    }

    #[test]
    fn broken_rows_and_silence_fail() {
        assert!(judge(Sold, 1, reading(0), Reading { done: 1, broken: 1 }).is_err());
        assert!(judge(Sold, 1, reading(5), reading(4)).unwrap_err().contains("went missing"));
        assert!(judge(SoldOrTurnedAway, 0, reading(0), reading(0)).is_err());
    }
}

//! Checks the bounds of every batch that was sent, and the order of its keys.

use std::collections::{BTreeMap, BTreeSet};

use hotrow_lane::key::Key;
use hotrow_lane::lane::{Claim, Merge};
use hotrow_lane::limits;

use super::history::{History, Sent, Work};

pub fn check(history: &History, wrong: &mut Vec<String>) {
    let mut before: BTreeMap<usize, &Sent> = BTreeMap::new();
    for batch in &history.batches {
        let mut complain = |what: &str| {
            wrong.push(format!("batch {} of lane {} {what}", batch.number, batch.lane));
        };
        let works: Vec<_> = batch.units.iter().map(|unit| history.units[*unit]).collect();
        if works.is_empty() || works.len() > limits::BATCH_UNITS_MAX {
            complain("has no units or too many");
        }
        if works.iter().map(|work| work.bytes).sum::<usize>() > limits::BATCH_BYTES_MAX {
            complain("has too many bytes");
        }
        if !batch.units.is_sorted_by_key(|unit| history.least_key(*unit)) {
            complain("is not in key order");
        }
        // Number of changes of each row, and the number of units that change it.
        let mut rows: BTreeMap<Key, (u16, usize)> = BTreeMap::new();
        for (unit, work) in batch.units.iter().zip(&works) {
            if work.merge.is_some_and(|merge| merge != Merge::NEVER) {
                continue; // merged calls change the row once
            }
            let claims = history.claims(*unit);
            for (place, claim) in claims.iter().enumerate() {
                let (count, units) = rows.entry(claim.key).or_default();
                *count += 1;
                *units += usize::from(claims[..place].iter().all(|before| before.key != claim.key));
            }
            let is_full = |claim: &Claim| {
                let (count, units) = rows[&claim.key];
                count > claim.rows_per_commit && units > 1
            };
            if claims.iter().any(is_full) {
                complain("has too many units of one key");
            }
        }
        check_calls(batch, &works, &mut complain);
        if !batch.ahead.is_sorted_by(|one, next| one < next) {
            complain("locks its rows in another order than others");
        }
        if batch.under_way > limits::BATCHES_UNDER_WAY_MAX {
            complain("is one too many under way");
        }
        if let Some(earlier) = before.insert(batch.lane, batch)
            && batch.under_way > 1
        {
            let enough = if batch.behind_commit { earlier.units.len() } else { usize::MAX };
            if batch.units.len() < enough.min(limits::SECOND_BATCH_UNITS_MIN) {
                complain("was sent as a second batch and is too small for that");
            }
            let sessions: BTreeSet<_> =
                earlier.units.iter().map(|unit| history.units[*unit].session).collect();
            if works.iter().any(|work| sessions.contains(&work.session)) {
                complain("has a session that is under way already");
            }
        }
    }
}

/// A merged call is of one group, not too large, and the only call of its key space.
fn check_calls(batch: &Sent, works: &[Work], complain: &mut impl FnMut(&str)) {
    if batch.calls.iter().sum::<usize>() != works.len() {
        complain("has calls that do not match its units");
        return;
    }
    let mut start = 0;
    for count in &batch.calls {
        let call = &works[start..start + count];
        start += count;
        if call.len() == 1 {
            continue;
        }
        let Some(merge) = call[0].merge.filter(|merge| *merge != Merge::NEVER) else {
            complain("has merged calls that cannot be merged");
            continue;
        };
        let table = call[0].key.map(|key| key.table);
        if call.iter().any(|work| work.merge != Some(merge) || work.key.map(|key| key.table) != table) {
            complain("has merged calls of two groups");
        }
        if call.len() > merge.most.into() {
            complain("has merged too many calls");
        }
        let of_space = |work: &&Work| work.merge.is_some() && work.key.map(|key| key.table) == table;
        if works.iter().filter(of_space).count() > call.len() {
            complain("has a merged call that is not alone in its key space");
        }
    }
}

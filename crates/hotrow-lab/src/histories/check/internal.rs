//! Each transaction on its own: it sees its own writes, and nothing that it writes later.

use super::anomaly::Name;
use super::local::Local;
use super::view::View;
use crate::histories::history::{Key, Op, Value};
use std::collections::HashMap;

pub fn internal(view: &View, local: &mut Local) {
    for (at, transaction) in view.counted() {
        let mut appended: HashMap<Key, Vec<Value>> = HashMap::new();
        let mut written: HashMap<Key, Value> = HashMap::new();
        for (_, op) in transaction.ops() {
            match op {
                Op::Append(key, value) => appended.entry(*key).or_default().push(*value),
                Op::Write(key, value) => _ = written.insert(*key, *value),
                Op::Read(key, list) => {
                    let own = appended.get(key).map_or(&[][..], Vec::as_slice);
                    let (others, last) = list.split_at(list.len().saturating_sub(own.len()));
                    let is_own =
                        |value: &Value| view.write(*value).is_some_and(|write| write.transaction == at);
                    if last != own || others.iter().any(is_own) {
                        let story =
                            format!("list {key} does not end with the values that its reader had appended");
                        local.add(Name::Internal, u64::from(at), &[at], story);
                    }
                }
                Op::Get(key, value) => {
                    let own = written.get(key);
                    let later = || value.and_then(|value| view.write(value));
                    let is_wrong = match own {
                        // The row is locked, at every level.
                        Some(_) => value.as_ref() != own,
                        None => later().is_some_and(|write| write.transaction == at),
                    };
                    if is_wrong {
                        let story = format!("register {key} does not have the value that its reader wrote");
                        local.add(Name::Internal, u64::from(at), &[at], story);
                    }
                }
            }
        }
    }
}

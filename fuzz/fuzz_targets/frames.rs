//! Parses arbitrary bytes from a client. No view must panic, and no frame must extend past its buffer. The
//! messages are gathered as a unit.
#![no_main]

use hotrow_core::unit::gather::Gather;
use hotrow_wire::backend::Report;
use hotrow_wire::frontend::{self, Bind};
use hotrow_wire::{split, startup};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = startup::split(bytes, 10_000);
    let mut gather = Gather::default();
    let mut rest = bytes;
    while let Ok(Some(frame)) = split(rest, |tag| frontend::bytes_max(tag, 10_000, 1 << 20)) {
        assert!(frame.bytes.len() >= 5 && frame.bytes.len() <= rest.len());
        let _ = frontend::query(frame.body());
        let _ = Report::read(frame.body());
        if let Ok(bind) = Bind::read(frame.body()) {
            for index in 0..bind.count() {
                assert!(bind.value(index).is_some());
            }
        }
        gather.push(frame);
        rest = &rest[frame.bytes.len()..];
    }
    let _ = gather.form();
});

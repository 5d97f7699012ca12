//! Normalises and analyses arbitrary text from a client. There must be no panic, and the shape must have a
//! parameter for each literal.
#![no_main]

use hotrow_core::classify::{self, Analysis, Facts};
use hotrow_core::normalise::Normaliser;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut normaliser = Normaliser::new();
    let shape = normaliser.run(text);
    let literals = shape.literals().count();
    assert!(shape.verbatim || literals == 0 || shape.shape.contains(&format!("${literals}")));
    for sql in [text, shape.shape] {
        if let Analysis::Candidate(candidate) = classify::analyse(sql) {
            let _ = classify::decide(&candidate, &Facts::default(), &[]);
        }
    }
});

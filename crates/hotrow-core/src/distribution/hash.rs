//! PostgreSQL's hash functions for integers, texts and UUIDs. Hash indexes and partitions on disk depend on them, so they are
//! the same in every version. The method is Bob Jenkins' lookup3 (2006), as `hash_bytes` in PostgreSQL's sources uses it.

/// The initial value of the three parts, without the length.
const INITIAL: u32 = 0x9e37_79b9_u32.wrapping_add(3_923_095);

/// The hash of `int2`, `int4` and `int8`: equal numbers of these types have the same hash.
pub(super) fn integer(value: i64) -> i32 {
    let (low, high) = (value as u32, (value >> 32) as u32);
    let folded = low ^ if value >= 0 { high } else { !high };
    let start = INITIAL.wrapping_add(4);
    finish([start.wrapping_add(folded), start, start])
}

/// The hash of bytes: of a text with a deterministic collation, or of a UUID.
pub(super) fn bytes(bytes: &[u8]) -> i32 {
    let mut parts = [INITIAL.wrapping_add(bytes.len() as u32); 3];
    let blocks = bytes.chunks_exact(12);
    let rest = blocks.remainder();
    for block in blocks {
        let words =
            block.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        parts.iter_mut().zip(words).for_each(|(part, word)| *part = part.wrapping_add(word));
        mix(&mut parts);
    }
    for (place, byte) in rest.iter().enumerate() {
        // The lowest byte of the third part belongs to the length.
        let shift = if place < 8 { place % 4 } else { place % 4 + 1 };
        let part = &mut parts[place / 4];
        *part = part.wrapping_add(u32::from(*byte) << (8 * shift));
    }
    finish(parts)
}

fn mix([a, b, c]: &mut [u32; 3]) {
    let step = |x: &mut u32, y: &mut u32, z: &mut u32, bits| {
        *x = x.wrapping_sub(*z) ^ z.rotate_left(bits);
        *z = z.wrapping_add(*y);
    };
    step(a, b, c, 4);
    step(b, c, a, 6);
    step(c, a, b, 8);
    step(a, b, c, 16);
    step(b, c, a, 19);
    step(c, a, b, 4);
}

fn finish([mut a, mut b, mut c]: [u32; 3]) -> i32 {
    let step = |x: &mut u32, y: u32, bits| *x = (*x ^ y).wrapping_sub(y.rotate_left(bits));
    step(&mut c, b, 14);
    step(&mut a, c, 11);
    step(&mut b, a, 25);
    step(&mut c, b, 16);
    step(&mut a, c, 4);
    step(&mut b, a, 14);
    step(&mut c, b, 24);
    c as i32
}

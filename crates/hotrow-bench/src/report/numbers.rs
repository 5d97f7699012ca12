//! Numbers as text.

/// A number without its fraction, with its digits in groups of three.
pub fn whole(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Microseconds as milliseconds with three digits.
pub fn milliseconds(microseconds: u64) -> String {
    let milliseconds = microseconds as f64 / 1000.0;
    match milliseconds {
        under_a_tenth if under_a_tenth < 0.0995 => format!("{milliseconds:.3} ms"),
        under_ten if under_ten < 9.995 => format!("{milliseconds:.2} ms"),
        under_a_hundred if under_a_hundred < 99.95 => format!("{milliseconds:.1} ms"),
        _ => format!("{} ms", whole(milliseconds)),
    }
}

/// A number of bytes. An idle server writes less than half a byte, which counts as zero.
pub fn bytes(number: f64) -> String {
    match number {
        none if none < 0.5 => "-".to_owned(),
        few if few < 9_999.5 => format!("{} B", whole(number)),
        _ => format!("{} kB", whole(number / 1_000.0)),
    }
}

/// A ratio with two or three digits.
pub fn times(ratio: f64) -> String {
    if ratio < 9.95 { format!("{ratio:.2}×") } else { format!("{ratio:.1}×") }
}

/// A number and the name of the counted things, in the plural if necessary.
pub fn counted(count: u32, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{} {thing}s", whole(count.into())) }
}

#[cfg(test)]
mod tests {
    use super::{bytes, milliseconds, times, whole};

    #[test]
    fn numbers_are_grouped_and_rounded() {
        let grouped = [0.4, 999.0, 1_000.0, 75_334.5, 1_314_529.2].map(whole);
        assert_eq!(grouped, ["0", "999", "1,000", "75,334", "1,314,529"]);
        assert_eq!([0.1, 312.4, 9_999.0, 10_020.0].map(bytes), ["-", "312 B", "9,999 B", "10 kB"]);
        let times_as_much = [0.684, 9.96, 26.49].map(times);
        assert_eq!(times_as_much, ["0.68×", "10.0×", "26.5×"]);
    }

    #[test]
    fn milliseconds_keep_three_digits() {
        let shown = [50, 880, 1_460, 17_950, 138_900, 2_000_000].map(milliseconds);
        assert_eq!(shown, ["0.050 ms", "0.88 ms", "1.46 ms", "17.9 ms", "139 ms", "2,000 ms"]);
    }
}

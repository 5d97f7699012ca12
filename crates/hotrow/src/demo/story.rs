//! The text under the comparison: the reason for the figures. The figures decide which text it is.

/// Below these values the sides are about equal, and a text about many buyers in one commit would be wrong.
const TELLING_RATIO: f64 = 1.5;
const TELLING_SHARE: f64 = 2.0;
/// This number of buyers always collides. If their purchases do not share commits, the reason is another one.
const MANY_BUYERS: usize = 16;

/// Sentences about `ratio` times as many sales, `share` sales per commit, and this number of buyers, with `advice` for statements that are
/// not packed.
pub fn story(ratio: f64, share: f64, buyers: usize, advice: &str) -> String {
    if share < TELLING_SHARE && buyers >= MANY_BUYERS {
        return format!("Hotrow committed each purchase alone, so there was no gain. {advice}");
    }
    if share < TELLING_SHARE || ratio < TELLING_RATIO {
        return format!(
            "A commit carried {share:.1} sales, which gained little here. Hotrow gains most if many buyers want the \
             row at the same time and each commit waits for a disk. Try --buyers 64."
        );
    }
    format!(
        "Without Hotrow, each buyer waits until the buyer before has committed. Hotrow runs the waiting purchases \
         in one transaction, here {share:.0} at a time. Each buyer gets the answer to their own UPDATE, with the same SQL \
         and the same durability."
    )
}

#[cfg(test)]
mod tests {
    use super::story;

    #[test]
    fn the_figures_decide_the_text() {
        let stories = [(25.0, 63.0, 64), (1.1, 1.0, 64), (0.8, 1.0, 1), (1.1, 2.4, 4)]
            .map(|(ratio, share, buyers)| story(ratio, share, buyers, "Look it up."));
        assert!(stories[0].contains("here 63 at a time"), "{}", stories[0]);
        assert!(
            stories[1].ends_with("each purchase alone, so there was no gain. Look it up."),
            "{}",
            stories[1]
        );
        assert!(stories[2].contains("gained little"), "{}", stories[2]);
        assert!(stories[3].contains("2.4 sales, which gained little"), "{}", stories[3]);
    }
}

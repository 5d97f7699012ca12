//! The words under the comparison: what happened, and what to try next. Never words that the figures don't bear out.

/// Below these the two sides are about equal, and the story of many buyers in one commit would not be true.
const TELLING_RATIO: f64 = 1.5;
const TELLING_SHARE: f64 = 2.0;
/// So many buyers always meet; if their purchases are not shared, it is for another reason.
const MANY_BUYERS: usize = 16;

/// Where to go from here.
pub const NEXT: &str = "  Next, with your own database and any PostgreSQL client:\n\
    \x20   hotrow serve --upstream postgres://USER@HOST/DB --listen 127.0.0.1:6432\n\
    \x20   psql -h 127.0.0.1 -p 6432 -U USER DB";

/// Two sentences about `ratio` times as many sales, of which a commit carried `share`, with so many buyers.
pub fn story(ratio: f64, share: f64, buyers: usize) -> String {
    if share < TELLING_SHARE && buyers >= MANY_BUYERS {
        return "  Hotrow committed each purchase alone, so there was nothing to gain. What can\n  \
                be packed and what not, and why, is told by `hotrow explain \"UPDATE ...\"`."
            .to_owned();
    }
    if share < TELLING_SHARE || ratio < TELLING_RATIO {
        return format!(
            "  A commit carried {share:.1} sales, which gained little here. The gain comes when\n  \
             many want the row at the same time and a commit has to reach a disk: try\n  \
             --buyers 64."
        );
    }
    format!(
        "  Direct, each buyer of the row waits until the one before has committed. Hotrow\n  \
         runs the purchases that wait in one transaction, here {share:.0} at a time, and gives\n  \
         each buyer the answer to their own UPDATE: same SQL, same durability."
    )
}

#[cfg(test)]
mod tests {
    use super::story;

    #[test]
    fn the_story_is_that_of_the_figures() {
        let stories = [(25.0, 63.0, 64), (1.1, 1.0, 64), (0.8, 1.0, 1), (1.1, 2.4, 4)]
            .map(|(ratio, share, buyers)| story(ratio, share, buyers));
        assert!(stories[0].contains("here 63 at a time"), "{}", stories[0]);
        assert!(stories[1].contains("each purchase alone"), "{}", stories[1]);
        assert!(stories[2].contains("gained little"), "{}", stories[2]);
        assert!(stories[3].contains("2.4 sales, which gained little"), "{}", stories[3]);
    }

    #[test]
    fn the_words_fit_a_terminal() {
        let words = [story(25.0, 63.0, 64), story(1.1, 1.0, 64), story(0.8, 1.0, 1), super::NEXT.to_owned()];
        for line in words.iter().flat_map(|words| words.lines()) {
            assert!(line.len() <= 80, "{line}");
        }
    }
}

//! Fits the demo's lines to the terminal: 80 columns, and shorter lines on a narrower one.

use console::{Term, style};

/// The lines are written for this width, also where there is no terminal.
const FULL: usize = 80;
/// On narrower terminals lines are broken by the terminal.
const NARROWEST: usize = 40;

/// The width of the demo's lines.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    width: usize,
}

impl Layout {
    /// The layout for standard output.
    pub fn of_terminal() -> Self {
        Self::of(Term::stdout().size_checked().map_or(FULL, |(_, columns)| columns.into()))
    }

    /// The layout for a terminal with this number of columns.
    pub fn of(columns: usize) -> Self {
        Self { width: columns.clamp(NARROWEST, FULL) }
    }

    /// One round as a line: round, side, sales per second, p50, p99, sales per commit, refused. A narrow line leaves out the
    /// columns that the comparison at the end repeats.
    pub fn row(self, [round, side, rate, p50, p99, shared, refused]: [&str; 7]) -> String {
        if self.is_narrow() {
            return format!("  {round:>5}  {side:<7} {rate:>9} {p99:>11}");
        }
        format!("  {round:>5}  {side:<7} {rate:>10} {p50:>10} {p99:>10} {shared:>14} {refused:>9}")
    }

    /// The columns of the progress bar, which has the time left behind it.
    pub fn bar(self) -> usize {
        self.width - 18
    }

    /// A line of the comparison: its name in full and in short, both sides, and the comparison in words.
    pub fn comparison(self, [name, short, direct, hotrow, so]: [&str; 5]) -> String {
        let line = if self.is_narrow() {
            format!("  {short:<12} {direct:>9} {hotrow:>9}\n               {so}")
        } else {
            format!("  {name:<34} {direct:>10} {}  {so}", style(format!("{hotrow:>10}")).bold())
        };
        line.trim_end().to_owned()
    }

    pub fn entry(self, name: &str, value: &str) -> String {
        let wrapped = self.wrapped(value, if self.is_narrow() { 4 } else { 12 });
        if self.is_narrow() {
            return format!("  {name}\n{wrapped}");
        }
        format!("  {name:<10}{}", wrapped.trim_start())
    }

    /// Words on lines that begin with this number of spaces.
    pub fn wrapped(self, words: &str, indent: usize) -> String {
        let mut lines: Vec<String> = Vec::new();
        for word in words.split_whitespace() {
            match lines.last_mut() {
                Some(line) if line.chars().count() + 1 + word.chars().count() <= self.width => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(" ".repeat(indent) + word),
            }
        }
        lines.join("\n")
    }

    fn is_narrow(self) -> bool {
        self.width < FULL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_the_terminal() {
        let row = ["round", "through", "1,000,000", "123 ms", "1.23 s", "sales/commit", "refused"];
        let words = "word ".repeat(40);
        for columns in [40, 60, 79, 80, 200] {
            let layout = Layout::of(columns);
            let sales = "sales per second, median of rounds";
            let comparison = layout.comparison([sales, "sales/s", "10,000", "100,000", "10 times as many"]);
            let texts =
                [layout.row(row), layout.wrapped(&words, 2), layout.entry("server", &words), comparison];
            for line in texts.iter().flat_map(|text| text.lines()) {
                assert!(line.chars().count() <= columns.min(80), "{columns} columns: {line}");
            }
            assert!(layout.bar() + 18 <= columns.min(80));
        }
    }

    #[test]
    fn wrapped_lines_keep_all_words() {
        assert_eq!(Layout::of(40).entry("server", "PostgreSQL 17"), "  server\n    PostgreSQL 17");
        assert_eq!(Layout::of(80).entry("server", "PostgreSQL 17"), "  server    PostgreSQL 17");
        let words = "one two three four five six seven eight nine";
        assert_eq!(Layout::of(40).wrapped(words, 2), "  one two three four five six seven\n  eight nine");
    }
}

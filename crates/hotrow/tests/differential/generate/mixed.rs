//! Two programs of other classes in one: their steps alternate on the same sessions.

use super::{CLASSES, Class, Draft};
use crate::program::{NUMBER, Step};

/// Classes whose steps have to follow each other: a session waits for what the next step of another session does.
const ALONE: [&str; 3] = ["mixed", "cancels", "refused"];

pub fn write(draft: &mut Draft) {
    let classes: Vec<&Class> =
        CLASSES.iter().filter(|class| class.weight > 0 && !ALONE.contains(&class.name)).collect();
    let mut parts: Vec<Vec<Step>> = Vec::new();
    for own in [NUMBER.to_owned(), format!("{NUMBER}z")] {
        let class = classes[draft.random.usize(..classes.len())];
        let mut steps = super::program(class, draft.random.u64(..)).steps;
        for frame in steps.iter_mut().flat_map(|step| &mut step.frames) {
            *frame = frame.renamed(NUMBER, &own);
        }
        steps.reverse();
        parts.push(steps);
    }
    // Takes from each part in proportion to its remaining steps.
    while let left @ 1.. = parts.iter().map(Vec::len).sum::<usize>() {
        let part = usize::from(draft.random.usize(..left) >= parts[0].len());
        draft.steps.extend(parts[part].pop());
    }
}

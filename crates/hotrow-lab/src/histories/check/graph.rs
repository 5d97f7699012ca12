//! A directed graph with labelled edges: its strongly connected components and their shortest cycles.

use std::collections::VecDeque;

/// Nodes searched for the shortest cycle of one component. The cycle of a larger component may be a longer one.
const STARTS_MAX: usize = 300;

pub struct Graph {
    /// The edges of node `n` are `edges[starts[n]..starts[n + 1]]`.
    starts: Vec<u32>,
    edges: Vec<(u32, u32)>,
}

impl Graph {
    /// Edges are from, to and label.
    pub fn new(nodes: usize, mut list: Vec<(u32, u32, u32)>) -> Self {
        list.sort_unstable();
        let mut starts = vec![0; nodes + 1];
        for (from, ..) in &list {
            starts[*from as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        Self { starts, edges: list.into_iter().map(|(_, to, label)| (to, label)).collect() }
    }

    /// The edges that leave a node: their ends and labels.
    pub fn from(&self, node: u32) -> &[(u32, u32)] {
        let node = node as usize;
        &self.edges[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    fn nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// The components with a cycle. This is Tarjan's algorithm with a stack of its own, because a history is deeper than the
    /// stack of a thread.
    pub fn components(&self) -> Vec<Vec<u32>> {
        const UNSEEN: u32 = u32::MAX;
        let (mut index, mut low) = (vec![UNSEEN; self.nodes()], vec![0; self.nodes()]);
        let mut is_open = vec![false; self.nodes()];
        let (mut open, mut found, mut next) = (Vec::new(), Vec::new(), 0);
        for root in (0..self.nodes() as u32).filter(|node| !self.from(*node).is_empty()) {
            let mut path: Vec<(u32, usize)> = Vec::new();
            if index[root as usize] == UNSEEN {
                path.push((root, 0));
            }
            while let Some((node, edge)) = path.last_mut() {
                let at = *node as usize;
                if *edge == 0 {
                    (index[at], low[at], is_open[at]) = (next, next, true);
                    next += 1;
                    open.push(*node);
                }
                if let Some((to, _)) = self.from(*node).get(*edge) {
                    *edge += 1;
                    let to_at = *to as usize;
                    if index[to_at] == UNSEEN {
                        path.push((*to, 0));
                    } else if is_open[to_at] {
                        low[at] = low[at].min(index[to_at]);
                    }
                    continue;
                }
                let node = *node;
                path.pop();
                if let Some((above, _)) = path.last() {
                    low[*above as usize] = low[*above as usize].min(low[at]);
                }
                if low[at] == index[at] {
                    let first = open.iter().rposition(|other| *other == node).expect("the node is open");
                    let component = open.split_off(first);
                    component.iter().for_each(|node| is_open[*node as usize] = false);
                    if component.len() > 1 {
                        found.push(component);
                    }
                }
            }
        }
        found
    }

    /// The labels of a shortest cycle within a component.
    pub fn shortest_cycle(&self, component: &[u32]) -> Vec<u32> {
        let mut inside = vec![false; self.nodes()];
        component.iter().for_each(|node| inside[*node as usize] = true);
        let mut shortest: Option<Vec<u32>> = None;
        for start in component.iter().take(STARTS_MAX) {
            let longest = shortest.as_ref().map_or(usize::MAX, |cycle| cycle.len() - 1);
            let found = self.path(*start, *start, longest, |node, _| inside[node as usize]);
            shortest = found.or(shortest);
        }
        shortest.expect("a component of several nodes has a cycle")
    }

    /// The labels of a shortest path of at least one and at most `longest` edges, along edges that `allows` by their end and
    /// their label.
    pub fn path(
        &self,
        start: u32,
        end: u32,
        longest: usize,
        allows: impl Fn(u32, u32) -> bool,
    ) -> Option<Vec<u32>> {
        // Each reached node with the place of the node before it, the label between the two, and the distance.
        let mut reached = vec![(start, 0, 0, 0)];
        let mut seen = std::collections::HashSet::new();
        let mut open = VecDeque::from([0]);
        while let Some(at) = open.pop_front() {
            let (node, _, _, distance) = reached[at];
            if distance == longest {
                return None;
            }
            for (to, label) in self.from(node).iter().filter(|(to, label)| allows(*to, *label)) {
                if !seen.insert(*to) {
                    continue;
                }
                reached.push((*to, at, *label, distance + 1));
                if *to == end {
                    return Some(labels_to(&reached, reached.len() - 1));
                }
                open.push_back(reached.len() - 1);
            }
        }
        None
    }
}

fn labels_to(reached: &[(u32, usize, u32, usize)], mut at: usize) -> Vec<u32> {
    let mut labels = Vec::new();
    while reached[at].3 > 0 {
        labels.push(reached[at].2);
        at = reached[at].1;
    }
    labels.reverse();
    labels
}

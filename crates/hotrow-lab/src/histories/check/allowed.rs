//! The cycles that the levels of their transactions allow. They show that the load provokes anomalies.

use super::anomaly::Name;
use super::edges::{Edge, Kind};
use super::graph::Graph;
use super::promises::name;
use super::view::View;
use crate::histories::history::Level;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The longest cycle that is searched for.
const LONGEST: usize = 8;

/// How often a cycle occurs, by its name and the weakest level of its transactions. For each read of an old value, the
/// shortest cycle counts.
pub fn allowed(view: &View, edges: &[Edge]) -> BTreeMap<(Name, Level), usize> {
    let is_order = |edge: &Edge| matches!(edge.kind, Kind::Ww | Kind::Wr | Kind::Rw);
    let list = edges.iter().zip(0..).filter(|(edge, _)| is_order(edge));
    let graph =
        Graph::new(view.history.len(), list.map(|(edge, label)| (edge.from, edge.to, label)).collect());
    let mut component_of = vec![0; view.history.len()];
    for (component, number) in graph.components().iter().zip(1..) {
        component.iter().for_each(|node| component_of[*node as usize] = number);
    }
    let mut counts = BTreeMap::new();
    let mut known: HashSet<BTreeSet<u32>> = HashSet::new();
    for edge in edges.iter().filter(|edge| edge.kind == Kind::Rw) {
        let component = component_of[edge.from as usize];
        if component == 0 || component != component_of[edge.to as usize] {
            continue;
        }
        let Some(cycle) = shortest(view, &graph, edges, edge) else { continue };
        let levels = cycle.iter().map(|edge| view.transaction(edge.from).level);
        let weakest = levels.min().expect("a cycle has transactions");
        let name = name(&cycle);
        if name.breaks() > weakest && known.insert(cycle.iter().map(|edge| edge.from).collect()) {
            *counts.entry((name, weakest)).or_default() += 1;
        }
    }
    counts
}

/// The shortest cycle with an edge. A cycle without other reads of old values is preferred.
fn shortest(view: &View, graph: &Graph, edges: &[Edge], edge: &Edge) -> Option<Vec<Edge>> {
    // A transaction that began after the cycle's end cannot be a part of it, unless a promise is broken.
    let end = view.transaction(edge.from).certain_end();
    let is_early = |node: u32| view.transaction(node).begun <= end;
    let no_read = |node: u32, label: u32| is_early(node) && edges[label as usize].kind != Kind::Rw;
    let path = graph
        .path(edge.to, edge.from, LONGEST, no_read)
        .or_else(|| graph.path(edge.to, edge.from, LONGEST, |node, _| is_early(node)))?;
    Some([*edge].into_iter().chain(path.into_iter().map(|label| edges[label as usize])).collect())
}

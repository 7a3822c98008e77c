//! The spanning tree on which stand-alone switches flood and learn, so that a loop in the topology does not melt
//! the lab.
//!
//! The fabric knows the whole topology, so no protocol runs: the tree is the breadth-first tree from the switch
//! that was built first, over links that are up, earlier links first; it is computed anew when a link goes up or
//! down. Ports that lead to hosts are always in it. Switches under a controller, secure ones and flow entries that name
//! a port are not bound by the tree; loops that they make end at the hop limit.

use std::collections::VecDeque;

/// For each of `links` (pairs of node indices; `None` for a link that is down or does not join two switches)
/// whether it is in the tree over `nodes` nodes.
#[must_use]
pub fn spanning_tree(nodes: usize, links: &[Option<(usize, usize)>]) -> Vec<bool> {
    let mut adjacent = vec![Vec::new(); nodes];
    for (index, (a, b)) in links.iter().enumerate().filter_map(|(index, ends)| ends.map(|ends| (index, ends))) {
        adjacent[a].push((index, b));
        adjacent[b].push((index, a));
    }
    let mut reached = vec![false; nodes];
    let mut in_tree = vec![false; links.len()];
    for root in 0..nodes {
        if std::mem::replace(&mut reached[root], true) {
            continue;
        }
        let mut frontier = VecDeque::from([root]);
        while let Some(node) = frontier.pop_front() {
            for &(link, peer) in &adjacent[node] {
                if !std::mem::replace(&mut reached[peer], true) {
                    in_tree[link] = true;
                    frontier.push_back(peer);
                }
            }
        }
    }
    in_tree
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_triangle_loses_the_link_farthest_from_the_root() {
        let links = [Some((0, 1)), Some((1, 2)), Some((0, 2))];
        assert_eq!(spanning_tree(3, &links), [true, false, true]);
    }

    #[test]
    fn a_second_link_between_two_switches_is_left_out_until_the_first_goes_down() {
        assert_eq!(spanning_tree(2, &[Some((0, 1)), Some((0, 1))]), [true, false]);
        assert_eq!(spanning_tree(2, &[None, Some((0, 1))]), [false, true]);
    }

    proptest! {
        #[test]
        fn the_tree_reaches_what_the_graph_reaches_with_one_link_less_than_nodes(
            pairs in prop::collection::vec((0..12_usize, 0..12_usize), 0..40)
        ) {
            let links: Vec<_> = pairs.iter().map(|&(a, b)| (a != b).then_some((a, b))).collect();
            let in_tree = spanning_tree(12, &links);
            let components = |keep: &dyn Fn(usize) -> bool| {
                let mut label: Vec<usize> = (0..12).collect();
                for _ in 0..12 {
                    for (index, ends) in links.iter().enumerate() {
                        if let (Some((a, b)), true) = (ends, keep(index)) {
                            let least = label[*a].min(label[*b]);
                            label[*a] = least;
                            label[*b] = least;
                        }
                    }
                }
                label
            };
            let whole = components(&|_| true);
            prop_assert_eq!(&whole, &components(&|index| in_tree[index]));
            let mut roots = whole.clone();
            roots.sort_unstable();
            roots.dedup();
            prop_assert_eq!(in_tree.iter().filter(|kept| **kept).count(), 12 - roots.len());
        }
    }
}

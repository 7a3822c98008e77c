//! A network divided into parts that several threads can move, each with a fabric of its own.
//!
//! A part is whole switches with all that hangs at them: links are cut between two switches of the fabric only, because
//! a host, an interface of the machine and a switch elsewhere are read and written by the thread that moves their
//! switch's frames. Of the ways to do that one is sought in which the busiest part has little more than its share, and
//! few links are cut.

use std::collections::{HashMap, VecDeque};

use twinnet_units::Duration;

use super::network::{LinkSpec, NetworkSpec, NodeSpec};

/// Rounds in which single groups of nodes are moved to other parts; each round ends sooner when nothing is gained.
const ROUNDS: usize = 16;
/// The cost of cutting all links, where parts that are equally busy cost 1: balance comes first.
const COST_OF_CUTS: f64 = 0.2;

/// The part that each node belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    /// For each node of the description its part.
    pub part_of: Vec<usize>,
    /// The share of the expected work that each part has; there are as many parts.
    pub shares: Vec<f64>,
    /// The links that are cut, by their numbers.
    pub cut_links: Vec<usize>,
    /// Why there are fewer parts than were wanted.
    pub why_not_more: Option<String>,
}

impl Partition {
    /// Returns the number of parts.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.shares.len()
    }

    /// The share of the expected work in the part that has most: with it one knows by how much more processors can
    /// speed up the whole.
    #[must_use]
    pub fn largest_share(&self) -> f64 {
        self.shares.iter().copied().fold(0.0, f64::max)
    }
}

/// Divides `spec` into at most `wanted` parts. Only links between switches are cut whose delay is at least
/// `least_delay` in both directions.
#[must_use]
pub fn partition(spec: &NetworkSpec, wanted: usize, least_delay: Duration) -> Partition {
    let groups = Groups::of(spec, least_delay);
    let parts = wanted.clamp(1, groups.loads.len().max(1));
    let mut division = Division::by_neighbourhood(&groups, parts);
    division.improve();
    let part_of_group = division.part_of;
    let part_of: Vec<usize> = groups.group_of.iter().map(|group| part_of_group[*group]).collect();
    let total: f64 = groups.loads.iter().sum();
    let mut shares = vec![0.0; parts];
    for (group, load) in groups.loads.iter().enumerate() {
        shares[part_of_group[group]] += if total > 0.0 { load / total } else { 1.0 / groups.loads.len() as f64 };
    }
    let ends = Ends::of(spec);
    let is_cut = |link: &LinkSpec| matches!(ends.of_link(link), Some((a, b)) if part_of[a] != part_of[b]);
    let cut_links = (0..spec.links.len()).filter(|link| is_cut(&spec.links[*link])).collect();
    let why_not_more = (parts < wanted).then(|| groups.why_not_more(spec, least_delay));
    Partition { part_of, shares, cut_links, why_not_more }
}

/// The nodes at the ends of links.
struct Ends<'a>(HashMap<&'a str, usize>);

impl<'a> Ends<'a> {
    fn of(spec: &'a NetworkSpec) -> Self {
        Self(spec.nodes.iter().enumerate().map(|(index, node)| (node.name(), index)).collect())
    }

    fn of_link(&self, link: &LinkSpec) -> Option<(usize, usize)> {
        Some((*self.0.get(link.a.node.as_str())?, *self.0.get(link.b.node.as_str())?))
    }
}

/// Nodes that stay together, and what is between them.
struct Groups {
    group_of: Vec<usize>,
    /// The work expected in each.
    loads: Vec<f64>,
    /// For each group its neighbours, with the weight of the links to them.
    neighbours: Vec<Vec<(usize, f64)>>,
}

impl Groups {
    fn of(spec: &NetworkSpec, least_delay: Duration) -> Self {
        let ends = Ends::of(spec);
        let mut together = Together::new(spec.nodes.len());
        for link in &spec.links {
            if let Some((a, b)) = ends.of_link(link).filter(|_| !may_be_cut(spec, &ends, link, least_delay)) {
                together.join(a, b);
            }
        }
        // Tunnels to other speakers may share a socket, which one thread reads.
        let mut tunnels = spec.tunnel_ends().map(|(node, _)| node);
        if let Some(first) = tunnels.next() {
            tunnels.for_each(|other| together.join(first, other));
        }
        let (group_of, count) = together.numbered();
        let mut groups = Self { group_of, loads: vec![0.0; count], neighbours: vec![Vec::new(); count] };
        let fastest = spec.links.iter().flat_map(|link| [link.ab.rate_bps, link.ba.rate_bps]).flatten().max();
        for link in &spec.links {
            let Some((a, b)) = ends.of_link(link) else { continue };
            let mut weight = 0.0;
            for (from, to, way) in [(a, b, &link.ab), (b, a, &link.ba)] {
                // A link without a rate may carry as much as the fastest with one.
                let carried = way.rate_bps.or(fastest).map_or(1.0, |rate| rate.as_bps() as f64);
                weight += carried;
                groups.loads[groups.group_of[from]] += carried;
                // To read and write a frame of the kernel's costs about as much as to move it.
                let kernels = [from, to].iter().filter(|node| !is_switch(&spec.nodes[**node])).count();
                groups.loads[groups.group_of[from]] += carried * kernels as f64;
            }
            let (a, b) = (groups.group_of[a], groups.group_of[b]);
            if a != b {
                groups.neighbours[a].push((b, weight));
                groups.neighbours[b].push((a, weight));
            }
        }
        groups
    }

    fn why_not_more(&self, spec: &NetworkSpec, least_delay: Duration) -> String {
        let switches = spec.nodes.iter().filter(|node| is_switch(node)).count();
        let groups = self.loads.len();
        let delay = if least_delay > Duration::ZERO {
            format!(" with a delay of {least_delay} and more each way")
        } else {
            String::new()
        };
        format!("links between switches{delay} divide the {switches} switches into {groups} that can be moved apart")
    }
}

/// Returns `true` if the ends of `link` may be in different parts. A tunnel along it keeps its frames' fragments
/// together, which one thread does.
fn may_be_cut(spec: &NetworkSpec, ends: &Ends<'_>, link: &LinkSpec, least_delay: Duration) -> bool {
    let Some((a, b)) = ends.of_link(link) else { return false };
    let slow = [&link.ab, &link.ba].iter().all(|way| way.delay_ps >= least_delay);
    link.tunnel.is_none() && slow && [a, b].iter().all(|node| is_switch(&spec.nodes[*node]))
}

/// Returns `true` if the fabric is the switch.
fn is_switch(node: &NodeSpec) -> bool {
    matches!(node, NodeSpec::Switch(switch) if switch.datapath.is_own())
}

/// Sets of nodes that are joined one by one.
struct Together(Vec<usize>);

impl Together {
    fn new(nodes: usize) -> Self {
        Self((0..nodes).collect())
    }

    fn root(&mut self, mut node: usize) -> usize {
        while self.0[node] != node {
            self.0[node] = self.0[self.0[node]];
            node = self.0[node];
        }
        node
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }

    /// For each node the number of its set, in the order of their first nodes; and how many there are.
    fn numbered(mut self) -> (Vec<usize>, usize) {
        let mut numbers = HashMap::new();
        let of = (0..self.0.len()).map(|node| {
            let (root, next) = (self.root(node), numbers.len());
            *numbers.entry(root).or_insert(next)
        });
        let of: Vec<usize> = of.collect();
        (of, numbers.len())
    }
}

/// Groups on their way into parts.
struct Division<'a> {
    groups: &'a Groups,
    part_of: Vec<usize>,
    loads: Vec<f64>,
    members: Vec<usize>,
    total: f64,
    weight: f64,
}

impl<'a> Division<'a> {
    /// Fills one part after the other with groups that are next to each other.
    fn by_neighbourhood(groups: &'a Groups, parts: usize) -> Self {
        let total: f64 = groups.loads.iter().sum();
        let weight: f64 = groups.neighbours.iter().flatten().map(|(_, weight)| weight).sum::<f64>() / 2.0;
        let mut division = Self {
            groups,
            part_of: vec![0; groups.loads.len()],
            loads: vec![0.0; parts],
            members: vec![0; parts],
            total,
            weight,
        };
        let order = division.walk();
        let (mut part, mut before) = (0, 0.0);
        for (position, group) in order.iter().enumerate() {
            let load = groups.loads[*group];
            // A part ends where most of the group would lie beyond its share, or where the groups that are left are
            // needed one for each other part.
            let beyond = before + load / 2.0 > total * (part + 1) as f64 / parts as f64;
            let needed = order.len() - position <= parts - 1 - part;
            if part + 1 < parts && division.members[part] > 0 && (beyond || needed) {
                part += 1;
            }
            division.part_of[*group] = part;
            division.loads[part] += load;
            division.members[part] += 1;
            before += load;
        }
        division
    }

    /// All groups, neighbours after each other, from one at the edge.
    fn walk(&self) -> Vec<usize> {
        let count = self.groups.loads.len();
        let reach = |start: usize, seen: &mut Vec<bool>| {
            let mut order = Vec::new();
            let mut next = VecDeque::from([start]);
            seen[start] = true;
            while let Some(group) = next.pop_front() {
                order.push(group);
                for (other, _) in &self.groups.neighbours[group] {
                    if !std::mem::replace(&mut seen[*other], true) {
                        next.push_back(*other);
                    }
                }
            }
            order
        };
        let (mut seen, mut order) = (vec![false; count], Vec::with_capacity(count));
        for start in 0..count {
            if !seen[start] {
                // The last that is reached lies at the edge.
                let edge = reach(start, &mut seen.clone()).last().copied().unwrap_or(start);
                order.extend(reach(edge, &mut seen));
            }
        }
        order
    }

    /// Moves single groups to neighbouring parts as long as that makes the whole better.
    fn improve(&mut self) {
        for _ in 0..ROUNDS {
            let mut moved = false;
            for group in 0..self.part_of.len() {
                let from = self.part_of[group];
                let neighbours = self.groups.neighbours[group].iter().map(|(other, _)| self.part_of[*other]);
                let mut parts: Vec<usize> = neighbours.filter(|part| *part != from).collect();
                parts.sort_unstable();
                parts.dedup();
                let gains = parts.into_iter().filter(|_| self.members[from] > 1).map(|to| (self.gain(group, to), to));
                let best = gains.max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
                if let Some((_, to)) = best.filter(|(gain, _)| *gain > 1e-9) {
                    self.transfer(group, to);
                    moved = true;
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// Returns how much better the whole becomes when `group` moves to the part `to`.
    fn gain(&self, group: usize, to: usize) -> f64 {
        let from = self.part_of[group];
        let load = self.groups.loads[group];
        let most = |loads: &mut dyn Iterator<Item = f64>| loads.fold(0.0, f64::max);
        let before = most(&mut self.loads.iter().copied());
        let after = most(&mut self.loads.iter().enumerate().map(|(part, had)| match part {
            _ if part == from => had - load,
            _ if part == to => had + load,
            _ => *had,
        }));
        let mut cut = 0.0;
        for (other, weight) in &self.groups.neighbours[group] {
            cut += match self.part_of[*other] {
                part if part == to => *weight,
                part if part == from => -*weight,
                _ => 0.0,
            };
        }
        let fair = self.total / self.loads.len() as f64;
        let balance = if fair > 0.0 { (before - after) / fair } else { 0.0 };
        balance + if self.weight > 0.0 { COST_OF_CUTS * cut / self.weight } else { 0.0 }
    }

    fn transfer(&mut self, group: usize, to: usize) {
        let from = std::mem::replace(&mut self.part_of[group], to);
        let load = self.groups.loads[group];
        self.loads[from] -= load;
        self.loads[to] += load;
        self.members[from] -= 1;
        self.members[to] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    /// A network of `switches` with two hosts each, whose switches are joined by `trunks`.
    fn network(switches: usize, trunks: &[(usize, usize)], delay_us: u64) -> NetworkSpec {
        let mut nodes = Vec::new();
        let mut links = Vec::new();
        for number in 0..switches {
            let trunk_ports = trunks.iter().filter(|(a, b)| *a == number || *b == number).count();
            let ports: Vec<Value> = (1..=2 + trunk_ports)
                .map(|port| json!({"name": format!("s{number}-eth{port}"), "number": port}))
                .collect();
            nodes.push(json!({"kind": "switch", "name": format!("s{number}"), "dpid": number + 1, "ports": ports}));
        }
        for number in 0..switches {
            for host in 0..2 {
                let name = format!("h{number}x{host}");
                let mac = format!("02:00:00:00:{number:02x}:{host:02x}");
                let port = json!({"name": format!("{name}-eth0"), "mac": mac});
                nodes.push(json!({"kind": "host", "name": name, "ports": [port]}));
                let rate = json!({"rate_bps": 10_000_000});
                links.push(json!({
                    "a": {"node": name, "port": 0}, "b": {"node": format!("s{number}"), "port": host},
                    "ab": rate, "ba": rate,
                }));
            }
        }
        let mut next = vec![2; switches];
        for (a, b) in trunks {
            let way = json!({"rate_bps": 10_000_000, "delay_ps": delay_us * 1_000_000});
            links.push(json!({
                "a": {"node": format!("s{a}"), "port": next[*a]}, "b": {"node": format!("s{b}"), "port": next[*b]},
                "ab": way, "ba": way,
            }));
            next[*a] += 1;
            next[*b] += 1;
        }
        NetworkSpec::from_json(&json!({"nodes": nodes, "links": links})).unwrap()
    }

    fn chain(switches: usize) -> NetworkSpec {
        let trunks: Vec<(usize, usize)> = (1..switches).map(|number| (number - 1, number)).collect();
        network(switches, &trunks, 100)
    }

    /// That every node but switches is with what it hangs at, and that just the links between parts are told as cut.
    fn check(spec: &NetworkSpec, partition: &Partition) {
        let ends = Ends::of(spec);
        for (number, link) in spec.links.iter().enumerate() {
            let (a, b) = ends.of_link(link).unwrap();
            let apart = partition.part_of[a] != partition.part_of[b];
            assert_eq!(apart, partition.cut_links.contains(&number));
            assert!(!apart || (is_switch(&spec.nodes[a]) && is_switch(&spec.nodes[b])));
        }
        assert!((partition.shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!((0..partition.parts()).all(|part| partition.part_of.contains(&part)), "a part is empty");
    }

    #[test]
    fn a_chain_is_cut_into_equal_lengths() {
        let spec = chain(8);
        for parts in [1, 2, 4] {
            let partition = partition(&spec, parts, Duration::ZERO);
            check(&spec, &partition);
            assert_eq!((partition.parts(), partition.cut_links.len()), (parts, parts - 1));
            assert!(partition.largest_share() < 1.1 / parts as f64, "{:?}", partition.shares);
            assert_eq!(partition.why_not_more, None);
        }
    }

    #[test]
    fn a_tree_is_divided_by_its_branches() {
        // A root, two below it, and four below those.
        let spec = network(7, &[(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)], 100);
        let halves = partition(&spec, 2, Duration::ZERO);
        check(&spec, &halves);
        // The root goes with one of the branches.
        assert_eq!(halves.cut_links.len(), 1);
        assert!(halves.largest_share() < 0.62, "{:?}", halves.shares);
    }

    #[test]
    fn there_are_no_more_parts_than_switches_can_be_told_apart() {
        let single = partition(&network(1, &[], 0), 4, Duration::ZERO);
        assert_eq!((single.parts(), single.part_of.iter().max()), (1, Some(&0)));
        assert!(single.why_not_more.unwrap().contains("the 1 switches into 1"));
        let close = partition(&chain(4), 4, Duration::from_us(101));
        assert_eq!(close.parts(), 1);
        assert!(close.why_not_more.unwrap().contains("a delay of 101 us"));
    }

    #[test]
    fn a_host_with_two_switches_keeps_them_together() {
        let mut spec = chain(2);
        spec.links[4].tunnel = None;
        let both = NetworkSpec::from_json(&json!({
            "nodes": [
                {"kind": "switch", "name": "s1", "dpid": 1, "ports": [{"name": "s1-eth1", "number": 1}]},
                {"kind": "switch", "name": "s2", "dpid": 2, "ports": [{"name": "s2-eth1", "number": 1}]},
                {"kind": "host", "name": "r1", "forwarding": true, "ports": [
                    {"name": "r1-eth0", "mac": "02:00:00:00:00:01"}, {"name": "r1-eth1", "mac": "02:00:00:00:00:02"}]},
            ],
            "links": [
                {"a": {"node": "r1", "port": 0}, "b": {"node": "s1", "port": 0}},
                {"a": {"node": "r1", "port": 1}, "b": {"node": "s2", "port": 0}},
            ],
        }))
        .unwrap();
        assert_eq!(partition(&both, 2, Duration::ZERO).parts(), 1);
        assert_eq!(partition(&spec, 2, Duration::ZERO).parts(), 2);
    }

    #[test]
    fn an_empty_network_is_one_part() {
        let spec = NetworkSpec::from_json(&json!({"nodes": [], "links": []})).unwrap();
        assert_eq!(partition(&spec, 4, Duration::ZERO).parts(), 1);
    }
}

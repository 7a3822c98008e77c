//! The choice of the parts that a request concerns.

use std::collections::HashMap;

use twinnet_fabric::PortId;
use twinnet_lab::protocol::{AppReports, AppWait, ControllersWait, PortName, PortsShow, Request};
use twinnet_lab::Names;

use crate::wall::model_apps::FIRST_MODEL_APP;

/// Numbers that each part gives to its apps and captures: its own begin at so many times its own.
const NUMBERS_PER_PART: u32 = 1 << 24;

/// The first number that the part gives to a capture, and beyond the first of model hosts to an app.
pub(crate) const fn first_number(part: usize) -> u32 {
    part as u32 * NUMBERS_PER_PART
}

/// The places of everything.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) parts: usize,
    nodes: HashMap<String, usize>,
    ports: HashMap<String, usize>,
}

/// The route of a request.
#[derive(Debug, PartialEq)]
pub(crate) enum Route {
    /// One part answers it.
    One(usize, Request),
    /// Several do, each its own share, and their answers are joined.
    Several(Vec<(usize, Request)>),
}

impl Places {
    /// Of a network with `names`, whose nodes are in these parts.
    pub(crate) fn new(names: &Names, part_of: &[usize], parts: usize) -> Self {
        let nodes = names.nodes.iter().filter_map(|(name, node)| Some((name.clone(), *part_of.get(node.0 as usize)?)));
        let of_ports = names.ports_of_node.iter().zip(part_of);
        let ports = of_ports.flat_map(|(ports, part)| ports.iter().map(move |port| (*port, *part)));
        let name = |port: PortId| names.port_names.get(port.0 as usize).cloned();
        Self {
            parts,
            nodes: nodes.collect(),
            ports: ports.filter_map(|(port, part)| Some((name(port)?, part))).collect(),
        }
    }

    /// The part that knows of a node. One that there is not is refused by the first, which knows all names.
    fn node(&self, name: &str) -> usize {
        self.nodes.get(name).copied().unwrap_or(0)
    }

    /// The part that sends from a port; the first for one that there is not.
    pub(crate) fn port(&self, name: &str) -> usize {
        self.ports.get(name).copied().unwrap_or(0)
    }

    fn capture(&self, number: u32) -> usize {
        ((number / NUMBERS_PER_PART) as usize).min(self.parts - 1)
    }

    fn app(&self, number: u32) -> usize {
        self.capture(number.saturating_sub(FIRST_MODEL_APP))
    }

    /// Returns where `request` goes.
    pub(crate) fn route(&self, request: Request) -> Route {
        if self.parts == 1 {
            return Route::One(0, request);
        }
        match request {
            Request::FlowsAdd(asked) => Route::One(self.node(&asked.switch), Request::FlowsAdd(asked)),
            Request::FlowsDelete(asked) => Route::One(self.node(&asked.switch), Request::FlowsDelete(asked)),
            Request::FlowsDump(asked) => Route::One(self.node(&asked.switch), Request::FlowsDump(asked)),
            Request::Groups(asked) => Route::One(self.node(&asked.switch), Request::Groups(asked)),
            Request::Learnt(asked) => Route::One(self.node(&asked.switch), Request::Learnt(asked)),
            Request::LearntForget(asked) => Route::One(self.node(&asked.switch), Request::LearntForget(asked)),
            Request::ControllerAttach(asked) => Route::One(self.node(&asked.switch), Request::ControllerAttach(asked)),
            Request::TunnelAttach(asked) => Route::One(self.node(&asked.node), Request::TunnelAttach(asked)),
            Request::QueuesSet(asked) => {
                let part = match (&asked.port, &asked.node) {
                    (PortName::Interface(name), _) => self.port(name),
                    (PortName::Index(_), node) => self.node(node.as_deref().unwrap_or_default()),
                };
                Route::One(part, Request::QueuesSet(asked))
            }
            Request::CaptureStart(asked) => Route::One(self.port(&asked.port), Request::CaptureStart(asked)),
            Request::PortsShow(asked) => {
                let of = |ports: Vec<_>| Request::PortsShow(Box::new(PortsShow { ports: ports.into_iter().collect() }));
                self.shared(asked.ports.into_iter().collect(), |(port, _): &(String, u32)| self.port(port), of)
            }
            Request::CaptureStop(asked) => Route::One(self.capture(asked.capture), Request::CaptureStop(asked)),
            Request::AppStart(asked) => Route::One(self.node(&asked.host), Request::AppStart(asked)),
            Request::AppStop(asked) => Route::One(self.app(asked.app), Request::AppStop(asked)),
            Request::AppWait(asked) => {
                let AppWait { apps, until } = *asked;
                let of = |apps| Request::AppWait(Box::new(AppWait { apps, until }));
                self.shared(apps, |app| self.app(*app), of)
            }
            Request::AppReports(asked) => match asked.wanted() {
                None => self.all(&Request::AppReports(asked)),
                Some(apps) => {
                    let of = |apps| Request::AppReports(Box::new(AppReports { app: None, apps: Some(apps) }));
                    self.shared(apps, |app| self.app(*app), of)
                }
            },
            Request::ControllersWait(asked) => {
                let ControllersWait { switches, until } = *asked;
                let of = |switches| Request::ControllersWait(Box::new(ControllersWait { switches, until }));
                self.shared(switches, |switch| self.node(switch), of)
            }
            // Every part knows the topology, and each counts what it does itself.
            other @ (Request::LinkSet(_)
            | Request::Schedule(_)
            | Request::Links(_)
            | Request::LinksCounters(_)
            | Request::Ports(_)
            | Request::SamplesStart(_)
            | Request::SamplesRead(_)
            | Request::SamplesStop(_)
            | Request::Interfaces(_)
            | Request::PortsShown(_)
            | Request::Tunnels(_)
            | Request::Controllers(_)
            | Request::FidelityReset(_)) => self.all(&other),
            other => Route::One(0, other),
        }
    }

    fn all(&self, request: &Request) -> Route {
        Route::Several((0..self.parts).map(|part| (part, request.clone())).collect())
    }

    /// Divides a request about `items` among the parts that have them.
    fn shared<T>(&self, items: Vec<T>, part: impl Fn(&T) -> usize, of: impl Fn(Vec<T>) -> Request) -> Route {
        let mut shares: Vec<Vec<T>> = (0..self.parts).map(|_| Vec::new()).collect();
        for item in items {
            shares[part(&item)].push(item);
        }
        let mut asked: Vec<(usize, Request)> = shares
            .into_iter()
            .enumerate()
            .filter(|(_, share)| !share.is_empty())
            .map(|(part, share)| (part, of(share)))
            .collect();
        match asked.len() {
            0 => Route::One(0, of(Vec::new())),
            1 => {
                let (part, request) = asked.remove(0);
                Route::One(part, request)
            }
            _ => Route::Several(asked),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    fn places() -> Places {
        let of = |pairs: &[(&str, usize)]| pairs.iter().map(|(name, part)| ((*name).to_owned(), *part)).collect();
        Places { parts: 2, nodes: of(&[("s1", 0), ("s2", 1), ("m2", 1)]), ports: of(&[("s1-eth1", 0), ("s2-eth1", 1)]) }
    }

    fn request(value: Value) -> Request {
        Request::read(value).unwrap()
    }

    #[test]
    fn a_request_about_one_thing_goes_to_the_part_that_has_it() {
        let of = |value: Value| match places().route(request(value)) {
            Route::One(part, _) => part,
            Route::Several(several) => panic!("{several:?}"),
        };
        assert_eq!(of(json!({"do": "flows.dump", "switch": "s2"})), 1);
        assert_eq!(of(json!({"do": "flows.dump", "switch": "nobody"})), 0, "who knows all names refuses it");
        assert_eq!(of(json!({"do": "queues.set", "port": "s2-eth1", "queue": {"kind": "fifo"}})), 1);
        assert_eq!(of(json!({"do": "queues.set", "port": 0, "node": "s2", "queue": {"kind": "fifo"}})), 1);
        assert_eq!(of(json!({"do": "capture.start", "port": "s2-eth1"})), 1);
        assert_eq!(of(json!({"do": "capture.stop", "capture": first_number(1) + 3})), 1);
        assert_eq!(of(json!({"do": "capture.stop", "capture": u32::MAX})), 1, "it refuses it");
        assert_eq!(of(json!({"do": "app.stop", "app": FIRST_MODEL_APP + first_number(1)})), 1);
        assert_eq!(of(json!({"do": "controllers.wait", "switches": ["s2"]})), 1);
    }

    #[test]
    fn a_request_about_several_things_is_divided_and_one_about_the_whole_goes_to_all() {
        let [first, second] = [FIRST_MODEL_APP, FIRST_MODEL_APP + first_number(1)];
        let wait = |apps: &[u32]| request(json!({"do": "app.wait", "apps": apps}));
        assert_eq!(
            places().route(wait(&[second, first, second + 1])),
            Route::Several(vec![(0, wait(&[first])), (1, wait(&[second, second + 1]))])
        );
        let set = request(json!({"do": "link.set", "a": "s1", "b": "s2", "set": {"up": false}}));
        assert_eq!(places().route(set.clone()), Route::Several(vec![(0, set.clone()), (1, set)]));
        assert_eq!(places().route(wait(&[])), Route::One(0, wait(&[])));
    }

    #[test]
    fn a_network_in_one_part_is_asked_as_it_is() {
        let whole = Places { parts: 1, ..places() };
        let links = request(json!({"do": "links"}));
        assert_eq!(whole.route(links.clone()), Route::One(0, links));
    }
}

//! The fabric in parts: several loops, each in a thread of its own, that together move one network.
//!
//! Each loop has a fabric that is built of the whole network and keeps a part of its nodes, with their interfaces.
//! Frames on a link that is cut go from one to the other by [`crossing`]; a request goes to the part that has what it
//! is about, or to all, and their answers are joined. One loop alone is the usual case: then nothing crosses, and
//! requests go straight to it.

pub(crate) mod choice;
pub(crate) mod crossing;
mod gathering;
pub(crate) mod record;
pub(crate) mod routing;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use twinnet_lab::network::NetworkSpec;
use twinnet_lab::protocol::{Reply, Request, StartOptions};
use twinnet_lab::{assemble_part, RunningNetwork};
use twinnet_units::Duration;

use crate::kernel::interface::HostInterface;
use crate::service::{Call, ErrorName, LabError, Responder, Service};
use crate::wall::clock::LabClock;
use crate::wall::realtime::{event_descriptor, Order, Place, RealtimeFabric, RealtimeOptions};
use crossing::Crossings;
use gathering::{gather, responders};
use record::{told, Layout};
use routing::{Places, Route};

/// The time before its first interval a sampler of several parts is asked for: all of them are to hear of it in time.
const AHEAD: Duration = Duration::from_ms(2);

/// The fabric of a lab on the wall clock, in as many threads as it was divided for. They end when this is dropped.
pub struct PartedFabric {
    loops: Vec<RealtimeFabric>,
    places: Arc<Places>,
    layout: Arc<Layout>,
    clock: LabClock,
    /// Held while a request is given to all, so that all get such requests in one order.
    order: Mutex<()>,
}

impl PartedFabric {
    /// Builds the fabric that `spec` describes on `interfaces` and starts its loops. The `options` are those of a
    /// `start` request.
    ///
    /// # Errors
    /// The fault of the options or the description, or what the kernel refused.
    pub fn start(
        spec: &NetworkSpec,
        interfaces: Vec<HostInterface>,
        clock: LabClock,
        options: StartOptions,
    ) -> Result<Self, LabError> {
        let (partition, why) = choice::divide(options.fabric_threads, spec);
        let options = RealtimeOptions::from(options);
        let (part_of, parts) = (&partition.part_of, partition.parts());
        let mut networks = Vec::with_capacity(parts);
        let mut lines = Vec::with_capacity(parts);
        for part in 0..parts {
            let (network, leading_away) = assemble_part(spec.clone(), |node| part_of.get(node) == Some(&part))?;
            let far_part = |network: &RunningNetwork, port| {
                let far = network.fabric.far_end(port)?;
                network.names.ports_of_node.iter().position(|ports| ports.contains(&far)).map(|node| part_of[node])
            };
            let away = leading_away.into_iter().filter_map(|port| Some((port, far_part(&network, port)?)));
            lines.push(away.collect::<Vec<_>>());
            networks.push(network);
        }
        let refused = |error: io::Error| {
            LabError::new(
                ErrorName::FabricFailed,
                format!("the fabric's loops cannot start: {error}"),
                "see `twinnet doctor`",
            )
        };
        let wakes = (0..parts).map(|_| event_descriptor()).collect::<io::Result<Vec<OwnedFd>>>().map_err(refused)?;
        let crossings = Crossings::between(&lines, &wakes).map_err(refused)?;
        let Some(first) = networks.first() else { return Err(refused(io::ErrorKind::InvalidInput.into())) };
        let places = Arc::new(Places::new(&first.names, part_of, parts));
        let nodes = (0..parts).map(|part| part_of.iter().filter(|of| **of == part).count()).collect();
        let (expected_shares, links_cut) = (partition.shares.clone(), partition.cut_links.len());
        let layout = Arc::new(Layout { why, nodes, expected_shares, links_cut });
        let mut of_part: Vec<Vec<HostInterface>> = (0..parts).map(|_| Vec::new()).collect();
        for interface in interfaces {
            let part = part_of.get(interface.node).copied().unwrap_or(0);
            of_part[part].push(interface);
        }
        let mut loops = Vec::with_capacity(parts);
        let each = networks.into_iter().zip(of_part).zip(crossings).zip(wakes).enumerate();
        for (part, (((network, interfaces), crossings), wake)) in each {
            let place = Place { part, crossings };
            loops.push(RealtimeFabric::start_part(network, interfaces, clock, options, place, wake)?);
        }
        Ok(Self { loops, places, layout, clock, order: Mutex::default() })
    }

    /// Gives several parts their shares of a request, each with descriptors of its own.
    fn ask_several(&self, asked: Vec<(usize, Request)>, descriptors: &[OwnedFd], responder: Responder) {
        let parts: Vec<usize> = asked.iter().map(|(part, _)| *part).collect();
        let begin = self.clock.now() + AHEAD;
        let _in_one_order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        for ((part, request), responder) in asked.into_iter().zip(responders(&parts, &self.places, responder)) {
            self.loops[part].order(match request {
                Request::SamplesStart(asked) => Order::Sample { asked: *asked, begin, responder },
                request => {
                    // One that cannot be had again is missed by name.
                    let descriptors = descriptors.iter().filter_map(|one| one.try_clone().ok()).collect();
                    Order::Call(Call { request, descriptors, responder })
                }
            });
        }
    }

    /// Asks all parts for their records.
    fn take_record(&self, responder: Responder) {
        let layout = Arc::clone(&self.layout);
        let finish = move |records| responder.send(Ok(Reply::Fidelity(Box::new(told(records, &layout)))));
        for (fabric, take) in self.loops.iter().zip(gather(self.loops.len(), finish)) {
            fabric.order(Order::TakeRecord(Box::new(take)));
        }
    }
}

impl Service for PartedFabric {
    fn submit(&self, call: Call) {
        let Call { request, descriptors, responder } = call;
        if matches!(request, Request::Fidelity(_)) {
            return self.take_record(responder);
        }
        match self.places.route(request) {
            Route::One(part, request) => self.loops[part].submit(Call { request, descriptors, responder }),
            Route::Several(asked) => self.ask_several(asked, &descriptors, responder),
        }
    }
}

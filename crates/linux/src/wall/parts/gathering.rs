//! Answers of several parts, joined to one.
//!
//! Each part counts what it did itself, so what is counted is the sum of all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use twinnet_lab::protocol::{Answer, DirectionRow, PortRow, Reply, SamplesTold};

use crate::service::{ErrorName, LabError, Responder};
use crate::wall::parts::routing::Places;

/// Something that several give a piece of, until all have.
struct Pieces<T> {
    pieces: Vec<Option<T>>,
    left: usize,
    finish: Option<Box<dyn FnOnce(Vec<T>) + Send>>,
}

/// For each of `count` a function that takes its piece; when the last has, `finish` has them all in order.
pub(crate) fn gather<T: Send + 'static>(
    count: usize,
    finish: impl FnOnce(Vec<T>) + Send + 'static,
) -> Vec<impl FnOnce(T) + Send + 'static> {
    let pieces = (0..count).map(|_| None).collect();
    let all = Arc::new(Mutex::new(Pieces { pieces, left: count, finish: Some(Box::new(finish)) }));
    let take = |place: usize| {
        let all = Arc::clone(&all);
        move |piece: T| {
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.pieces[place] = Some(piece);
            all.left -= 1;
            if all.left > 0 {
                return;
            }
            let pieces = std::mem::take(&mut all.pieces).into_iter().flatten().collect();
            let finish = all.finish.take();
            drop(all);
            if let Some(finish) = finish {
                finish(pieces);
            }
        }
    };
    (0..count).map(take).collect()
}

/// A responder for each of the parts `asked`; `responder` gets their answers joined.
pub(crate) fn responders(asked: &[usize], places: &Arc<Places>, responder: Responder) -> Vec<Responder> {
    let (parts, places) = (asked.to_vec(), Arc::clone(places));
    let joined = move |answers: Vec<Answer>| responder.send(join(parts.into_iter().zip(answers), &places));
    gather(asked.len(), joined).into_iter().map(Responder::new).collect()
}

/// Joins the answers of parts. A refusal of one is that of all: they know the same network, and refuse the same.
fn join(answers: impl Iterator<Item = (usize, Answer)>, places: &Places) -> Answer {
    let mut whole: Option<Reply> = None;
    for (part, answer) in answers {
        let reply = answer?;
        whole = Some(match whole {
            None => reply,
            Some(before) => join_two(before, reply, part, places)?,
        });
    }
    whole.ok_or_else(|| LabError::new(ErrorName::NoAnswer, "no part was asked", ""))
}

/// Joins what is known so far with the reply of `part`.
fn join_two(before: Reply, reply: Reply, part: usize, places: &Places) -> Answer {
    Ok(match (before, reply) {
        (Reply::Done {}, Reply::Done {}) => Reply::Done {},
        (Reply::Finished { finished: one }, Reply::Finished { finished: other }) => {
            Reply::Finished { finished: one && other }
        }
        (Reply::Apps(mut rows), Reply::Apps(more)) => {
            rows.extend(more);
            Reply::Apps(rows)
        }
        (Reply::Controllers(mut rows), Reply::Controllers(more)) => {
            rows.extend(more);
            Reply::Controllers(rows)
        }
        (Reply::Interfaces(mut rows), Reply::Interfaces(more)) => {
            rows.extend(more);
            Reply::Interfaces(rows)
        }
        (Reply::Shown { frames, left_out }, Reply::Shown { frames: more, left_out: others }) => {
            Reply::Shown { frames: frames + more, left_out: left_out + others }
        }
        (Reply::Tunnels(mut rows), Reply::Tunnels(more)) => {
            rows.extend(more);
            Reply::Tunnels(rows)
        }
        (Reply::Links(mut rows), Reply::Links(more)) => {
            for (row, other) in rows.iter_mut().zip(more) {
                join_direction(&mut row.ab, other.ab, part, places);
                join_direction(&mut row.ba, other.ba, part, places);
            }
            Reply::Links(rows)
        }
        (Reply::LinkCounters(mut one), Reply::LinkCounters(more)) => {
            for (row, other) in one.rows.iter_mut().zip(more.rows) {
                join_direction(row, other, part, places);
            }
            Reply::LinkCounters(one)
        }
        (Reply::Ports(rows), Reply::Ports(more)) => Reply::Ports(
            rows.into_iter()
                .zip(more)
                .map(|(row, other)| {
                    let counters = row.counters.plus(&other.counters);
                    let known = if places.port(&row.port) == part { other } else { row };
                    PortRow { counters, ..known }
                })
                .collect(),
        ),
        // All parts are given all samplers, in one order.
        (Reply::Sampler { sampler: one }, Reply::Sampler { sampler: other }) if one == other => {
            Reply::Sampler { sampler: one }
        }
        (Reply::Samples(one), Reply::Samples(other)) => Reply::Samples(join_samples(one, other)),
        (one, other) => {
            let message = format!("parts of the fabric answered differently: {one:?} and {other:?}");
            return Err(LabError::new(ErrorName::Internal, message, "report it"));
        }
    })
}

/// Joins the state of a direction, which its sender knows.
fn join_direction(row: &mut DirectionRow, other: DirectionRow, part: usize, places: &Places) {
    let counters = row.counters.plus(&other.counters);
    if places.port(&row.port) == part {
        *row = other;
    }
    row.counters = counters;
}

/// Adds up interval by interval. A part that has not seen the end of the last interval yet ends the series of all.
fn join_samples(one: SamplesTold, other: SamplesTold) -> SamplesTold {
    let added = |column: Vec<u64>, more: &[u64]| column.into_iter().zip(more).map(|(one, other)| one + other).collect();
    let columns = |port: String, columns: BTreeMap<&'static str, Vec<u64>>| {
        let others = other.ports.get(&port);
        let more = |name: &str| others.and_then(|others| others.get(name)).map_or(&[][..], Vec::as_slice);
        let columns = columns.into_iter().map(|(name, column)| (name, added(column, more(name)))).collect();
        (port, columns)
    };
    SamplesTold {
        interval_ps: one.interval_ps,
        start_ps: one.start_ps,
        full: one.full || other.full,
        ports: one.ports.into_iter().map(|(port, told)| columns(port, told)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinnet_units::{Duration, Time};

    #[test]
    fn the_last_piece_finishes_the_whole_in_order() {
        let (done, is_done) = std::sync::mpsc::channel();
        let mut takers = gather(3, move |pieces: Vec<u8>| done.send(pieces).unwrap());
        for place in [1, 1, 0] {
            takers.remove(place)(place as u8 + 10 * takers.len() as u8);
        }
        assert_eq!(is_done.recv().unwrap(), [0, 21, 11]);
    }

    #[test]
    fn a_part_that_is_gone_answers_for_all() {
        let (done, is_done) = std::sync::mpsc::channel();
        let names = twinnet_lab::Names::default();
        let places = Arc::new(Places::new(&names, &[], 2));
        let answer = Responder::new(move |answer| done.send(answer).unwrap());
        let mut both = responders(&[0, 1], &places, answer);
        both.remove(0).send(Ok(Reply::Done {}));
        drop(both);
        assert_eq!(is_done.recv().unwrap().unwrap_err().name, "NoAnswer");
    }

    #[test]
    fn samples_are_added_up_as_far_as_all_have_come() {
        let told = |frames: &[u64]| SamplesTold {
            interval_ps: Duration::from_ms(1),
            start_ps: Time::ZERO,
            full: false,
            ports: BTreeMap::from([("s1-eth1".to_owned(), BTreeMap::from([("frames", frames.to_vec())]))]),
        };
        assert_eq!(join_samples(told(&[1, 2, 3]), told(&[10, 0])), told(&[11, 2]));
    }
}

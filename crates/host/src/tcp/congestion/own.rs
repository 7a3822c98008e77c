//! Congestion controls that whoever runs the lab brings along, by name.
//!
//! A name stands for one algorithm in the whole process: who registers derives it from what the algorithm is, so that
//! two labs side by side cannot mean two things by it.

use std::sync::{Arc, PoisonError, RwLock};

use super::{Algorithm, CongestionControl};

/// Begins a connection: the algorithm that it is to say it is, the initial window in segments, and a seed.
pub type Start = dyn Fn(Algorithm, u32, u64) -> Box<dyn CongestionControl> + Send + Sync;

static KNOWN: RwLock<Vec<(String, Arc<Start>)>> = RwLock::new(Vec::new());

/// The longest name that a congestion control can have, in bytes (Linux's `TCP_CA_NAME_MAX` without its last zero).
pub const LONGEST_NAME: usize = 15;

/// Lets model hosts of this process use the congestion control `name`. One of that name is replaced for the
/// connections that begin from now on.
///
/// # Errors
/// The name is empty, too long, or that of an algorithm of ours; the text says so.
pub fn register(name: &str, start: Arc<Start>) -> Result<(), String> {
    if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("{name:?} is no name of 1 to {LONGEST_NAME} letters"));
    }
    if Algorithm::built_in(name).is_some() {
        return Err(format!("{name:?} is one of model hosts' own"));
    }
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    match known.iter_mut().find(|(one, _)| one == name) {
        Some((_, there)) => *there = start,
        None => known.push((name.to_owned(), start)),
    }
    Ok(())
}

/// The place of the algorithm `name` among those that were registered.
pub(super) fn place(name: &str) -> Option<u32> {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    known.iter().position(|(one, _)| one == name).and_then(|place| u32::try_from(place).ok())
}

/// Begins a connection with the algorithm at `place`.
pub(super) fn start(place: u32, initial_window: u32, random: u64) -> Option<Box<dyn CongestionControl>> {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    let start = known.get(place as usize).map(|(_, start)| Arc::clone(start));
    // What it does may register another.
    drop(known);
    start.map(|start| start(Algorithm::Own(place), initial_window, random))
}

#[cfg(test)]
mod tests {
    use super::super::NewReno;
    use super::*;

    #[test]
    fn a_registered_name_is_found_and_stands_for_the_newest_of_its_name() {
        let with = |window: u32| -> Arc<Start> { Arc::new(move |_, _, _| Box::new(NewReno::new(window))) };
        assert!(Algorithm::by_name("timid-1").is_none());
        register("timid-1", with(3)).unwrap();
        let algorithm = Algorithm::by_name("timid-1").unwrap();
        assert_eq!(algorithm.start(10, 1).window(), 3);
        register("timid-1", with(4)).unwrap();
        assert_eq!(Algorithm::by_name("timid-1"), Some(algorithm));
        assert_eq!(algorithm.start(10, 1).window(), 4);
    }

    #[test]
    fn a_name_that_no_socket_option_takes_and_one_of_ours_are_refused() {
        let reno = || -> Arc<Start> { Arc::new(|_, window, _| Box::new(NewReno::new(window))) };
        assert!(register("sixteen-letters-", reno()).unwrap_err().contains("1 to 15"));
        assert!(register("two words", reno()).is_err());
        assert!(register("bbr", reno()).unwrap_err().contains("own"));
    }
}

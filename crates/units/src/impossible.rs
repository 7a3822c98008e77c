//! States that cannot be. Meeting one is a fault of the program: tests end there, and in production it is counted and
//! told with what was measured, instead of being passed over in silence.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// The number of times an impossible state was met in this process.
static MET: AtomicU64 = AtomicU64::new(0);
/// The one that was met first.
static FIRST: OnceLock<&'static str> = OnceLock::new();

/// Returns the number of times this process has met a state that cannot be: 0, or there is a fault in the program.
#[must_use]
pub fn met() -> u64 {
    MET.load(Ordering::Relaxed)
}

/// The first such state, with its place in the source.
#[must_use]
pub fn first() -> Option<&'static str> {
    FIRST.get().copied()
}

/// Counts an impossible state, and tells the first on standard error. Use [`impossible!`](crate::impossible!), which
/// adds the place.
///
/// # Panics
/// With debug assertions, as in tests.
#[cold]
pub fn tell(what: &'static str) {
    // Told once: the same fault may come with every frame.
    if MET.fetch_add(1, Ordering::Relaxed) == 0 {
        tracing::error!("a state that cannot be, a fault of twinnet; please report it: {what}");
    }
    FIRST.get_or_init(|| what);
    debug_assert!(false, "a state that cannot be: {what}");
}

/// Counts a state that cannot be, in words: `let Some(x) = y else { return impossible!("a flow without a table") };`.
#[macro_export]
macro_rules! impossible {
    ($what:literal) => {
        $crate::impossible::tell(concat!($what, " (", file!(), ":", line!(), ")"))
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_impossible_state_is_counted_and_told_with_its_place_and_ends_a_test() {
        let before = super::met();
        let ended = std::panic::catch_unwind(|| impossible!("a test that says so"));
        assert_eq!(ended.is_err(), cfg!(debug_assertions));
        assert_eq!(super::met(), before + 1);
        assert!(super::first().is_some_and(|first| first.starts_with("a test that says so (crates/units/src/")));
    }
}

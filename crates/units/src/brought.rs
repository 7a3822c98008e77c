//! What whoever runs a lab brings along, found by name.

use std::sync::{Arc, PoisonError, RwLock};

/// Things of one kind, by their names in this process.
pub struct Brought<T: ?Sized>(RwLock<Vec<(String, Arc<T>)>>);

impl<T: ?Sized> Brought<T> {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(RwLock::new(Vec::new()))
    }

    /// Adds `one`; what had its name is replaced.
    pub fn add(&self, name: &str, one: Arc<T>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match known.iter_mut().find(|(known, _)| known == name) {
            Some((_, there)) => *there = one,
            None => known.push((name.to_owned(), one)),
        }
    }

    /// Returns what is called `name`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Arc<T>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(known, _)| known == name).map(|(_, one)| Arc::clone(one))
    }
}

impl<T: ?Sized> Default for Brought<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_a_name_is_found() {
        let known: Brought<str> = Brought::new();
        known.add("a", Arc::from("first"));
        known.add("b", Arc::from("other"));
        known.add("a", Arc::from("second"));
        assert_eq!(known.find("a").as_deref(), Some("second"));
        assert!(known.find("c").is_none());
    }
}

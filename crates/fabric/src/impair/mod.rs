//! What happens to frames between two ports beyond time: jitter, loss, duplication, corruption, reordering.

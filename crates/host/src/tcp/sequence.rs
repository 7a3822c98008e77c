//! Sequence numbers: 32 bits on the wire that wrap, 64 bits inside that never do.

/// The number inside of the first sequence number of a stream. It lies one turn above zero, so that what is
/// slightly older than the beginning has a number too.
pub(super) fn begin(wire: u32) -> u64 {
    (1 << 32) + u64::from(wire)
}

/// The number inside that `wire` means: the one nearest to `near` (RFC 9293, 3.4).
pub(super) fn extend(wire: u32, near: u64) -> u64 {
    let distance = wire.wrapping_sub(near as u32) as i32;
    near.saturating_add_signed(i64::from(distance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_extend_across_the_wrap_in_both_directions() {
        let near = begin(u32::MAX - 1);
        assert_eq!(extend(3, near), near + 5);
        assert_eq!(extend(u32::MAX - 11, near), near - 10);
        let wrapped = near + 5;
        assert_eq!(extend(u32::MAX - 1, wrapped), near);
    }
}

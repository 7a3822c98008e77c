//! Named random streams: every element of a network draws from its own, so that adding one never shifts the others.

use rand::Rng as _;
use rand_pcg::Pcg64Mcg;

/// The generator of every stream: PCG XSL-RR 128/64 (MCG), whose output is the same on every machine.
pub type Rng = Pcg64Mcg;

/// The stream of the element `name` in a run with `seed`.
///
/// The name is hashed by FNV-1a (128 bits) and mixed with the seed by `SplitMix64`'s finaliser; neither depends on
/// the machine, the Rust version or the order in which elements are made.
#[must_use]
pub fn stream(seed: u64, name: &str) -> Rng {
    let name = fnv_1a(name.as_bytes());
    let high = mix(upper_half(name) ^ mix(seed.wrapping_add(GOLDEN)));
    let low = mix(lower_half(name).wrapping_add(high));
    Rng::new(u128::from(high) << 64 | u128::from(low))
}

/// A stream of its own for a part of an element, drawn from the element's.
pub fn branch(parent: &mut Rng) -> Rng {
    let (high, low) = (mix(parent.next_u64()), mix(parent.next_u64()));
    Rng::new(u128::from(high) << 64 | u128::from(low))
}

/// The next draw as a double in [0, 1): 53 bits, an exact conversion.
#[allow(clippy::cast_precision_loss)]
#[inline]
pub fn unit(rng: &mut Rng) -> f64 {
    const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
    (rng.next_u64() >> 11) as f64 * STEP
}

/// Returns `true` if an event of `probability` happens.
#[inline]
pub fn happens(rng: &mut Rng, probability: f64) -> bool {
    unit(rng) < probability
}

/// 2^64 divided by the golden ratio, `SplitMix64`'s increment.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// G. Fowler, L. Noll, K.-P. Vo, *FNV hash*, variant 1a of 128 bits.
fn fnv_1a(bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6C62_272E_07BB_0142_62B8_2175_6295_C58D;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013B;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

/// The next number of a `SplitMix64` generator whose state is `state`.
#[inline]
pub const fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GOLDEN);
    mix(*state)
}

/// The finaliser of `SplitMix64`: every input bit changes every output bit (G. Steele, D. Lea, C. Flood, *Fast
/// splittable pseudorandom number generators*, OOPSLA 2014).
#[must_use]
#[inline]
pub const fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[allow(clippy::cast_possible_truncation)]
const fn upper_half(bits: u128) -> u64 {
    (bits >> 64) as u64
}

#[allow(clippy::cast_possible_truncation)]
const fn lower_half(bits: u128) -> u64 {
    bits as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(mut rng: Rng, count: usize) -> Vec<u64> {
        (0..count).map(|_| rng.next_u64()).collect()
    }

    #[test]
    fn the_hash_agrees_with_its_published_vectors() {
        assert_eq!(fnv_1a(b""), 0x6C62_272E_07BB_0142_62B8_2175_6295_C58D);
        assert_eq!(fnv_1a(b"a"), 0xD228_CB69_6F1A_8CAF_7891_2B70_4E4A_8964);
    }

    #[test]
    fn a_stream_is_the_same_on_every_machine() {
        assert_eq!(draws(stream(1, "s1-eth1"), 3), PINNED);
    }

    #[test]
    fn same_seed_and_name_give_the_same_sequence_and_others_do_not() {
        let reference = draws(stream(7, "h1"), 100);
        assert_eq!(draws(stream(7, "h1"), 100), reference);
        for other in [stream(8, "h1"), stream(7, "h2"), stream(7, "h1 "), stream(7, ""), stream(0, "h1")] {
            assert!(draws(other, 100).iter().zip(&reference).all(|(a, b)| a != b));
        }
    }

    #[test]
    fn streams_of_neighbouring_names_and_seeds_are_not_correlated() {
        // With 20,000 independent uniform pairs the correlation has a standard deviation of 1/sqrt(20000) = 0.0071.
        let pairs = [("h1", "h2", 7, 7), ("h1", "h1", 7, 8), ("s1-eth1", "s1-eth2", 0, 0), ("a", "b", 1, 2)];
        for (name, other_name, seed, other_seed) in pairs {
            let (mut one, mut other) = (stream(seed, name), stream(other_seed, other_name));
            let sum: f64 = (0..20_000).map(|_| (unit(&mut one) - 0.5) * (unit(&mut other) - 0.5)).sum();
            let correlation = sum / 20_000.0 * 12.0;
            assert!(correlation.abs() < 4.0 * 0.0071, "{name} and {other_name}: {correlation}");
        }
    }

    /// Computed apart from this code.
    const PINNED: [u64; 3] = [13_972_428_669_669_981_516, 17_195_505_429_410_336_675, 12_833_943_779_901_430_986];
}

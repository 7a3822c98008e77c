//! The nearest of the words that are known, for who wrote another.

use super::other_tools;

/// Names that are shown for a word that no single slip explains.
const SHOWN: usize = 3;
/// Longer words are compared by their beginning: what was given may be of any length.
const LONGEST: usize = 64;

/// Returns what to write instead of `given`: those of `known` that another tool calls so, the one that is a single slip
/// away, or else the three nearest.
pub(super) fn remedy<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> String {
    let given = other_tools::spelt(given);
    let mut ranked: Vec<(usize, &str)> = known.map(|name| (distance(&given, name), name)).collect();
    ranked.sort_unstable();
    ranked.dedup();
    let here: Vec<_> = other_tools::names_here(&given)
        .iter()
        .filter(|name| ranked.iter().any(|(_, known)| known == *name))
        .map(|name| format!("{name:?}"))
        .collect();
    if !here.is_empty() {
        return format!("did you mean {}?", here.join(" or "));
    }
    match ranked.first() {
        None => "there is none".to_owned(),
        Some(&(0 | 1, name)) => format!("did you mean {name:?}?"),
        Some(_) => {
            let names: Vec<_> = ranked.iter().take(SHOWN).map(|(_, name)| format!("{name:?}")).collect();
            format!("the nearest are {}", names.join(", "))
        }
    }
}

/// Slips between two words: letters added, lost or changed, and neighbours swapped. The order of the parts between
/// underscores counts as one slip (`src_nw` for `nw_src`).
fn distance(given: &str, known: &str) -> usize {
    let sorted = |word: &str| {
        let mut parts: Vec<_> = word.split('_').collect();
        parts.sort_unstable();
        parts.join("_")
    };
    slips(given, known).min(1 + slips(&sorted(given), &sorted(known)))
}

/// The distance of optimal string alignment.
fn slips(a: &str, b: &str) -> usize {
    let (a, b): (Vec<_>, Vec<_>) = (a.chars().take(LONGEST).collect(), b.chars().take(LONGEST).collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::remedy;

    const NAMES: [&str; 6] = ["nw_src", "nw_dst", "tp_src", "tp_dst", "dl_vlan", "output"];

    fn of(given: &str) -> String {
        remedy(given, NAMES.into_iter())
    }

    #[test]
    fn one_slip_is_answered_with_the_word_that_was_meant() {
        for (given, meant) in [
            ("nw_sr", "nw_src"),
            ("tp_dts", "tp_dst"),
            ("src_nw", "nw_src"),
            ("OUTPUT", "output"),
            ("outptu", "output"),
        ] {
            assert_eq!(of(given), format!("did you mean {meant:?}?"));
        }
    }

    #[test]
    fn a_word_further_away_is_answered_with_the_three_nearest() {
        assert_eq!(of("dst_ipv4"), r#"the nearest are "tp_dst", "nw_dst", "dl_vlan""#);
    }

    #[test]
    fn a_word_of_another_tool_is_answered_with_ours() {
        for (given, ours) in [
            ("dstport", r#""tp_dst""#),
            ("dst_port", r#""tp_dst""#),
            ("--sport", r#""tp_src""#),
            ("ipv4_src", r#""nw_src""#),
            ("src", r#""nw_src""#),
            ("host", r#""nw_src" or "nw_dst""#),
            ("nw.dst", r#""nw_dst""#),
        ] {
            assert_eq!(of(given), format!("did you mean {ours}?"));
        }
    }

    #[test]
    fn a_word_of_any_length_is_answered() {
        assert!(of(&"x".repeat(100_000)).starts_with("the nearest are "));
        assert!(of("").starts_with("the nearest are "));
    }
}

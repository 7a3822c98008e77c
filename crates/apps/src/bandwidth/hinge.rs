//! The rate at which a delay begins to rise: the bend of a line that is level up to one rate, and above it rises as the
//! overload.

/// The rate at which the mean delays of chirps of this shape begin to rise, by least squares.
///
/// Of all rates between the lowest and the highest it is the one for which delays are fitted best by a constant and a
/// rise, not negative, in proportion to the sum of `gap * max(0, rate - bend)`. There is one delay more than there are
/// gaps. `None` of a chirp without a gap; the highest rate where nothing rises.
#[must_use]
pub fn bend(delays: &[f64], rates: &[f64], gaps: &[f64]) -> Option<f64> {
    /// Rates that are tried: errors of half a step are below all others.
    const STEPS: u32 = 200;
    let count = rates.len().min(gaps.len()).min(delays.len().checked_sub(1)?);
    let (low, high) = (*rates.first()?, *rates.get(count.checked_sub(1)?)?);
    // Without a rise there is no better fit than a level.
    let level = squares_of_fit(&vec![0.0; count + 1], &delays[..=count]);
    let mut best = (level, high);
    for step in 0..STEPS {
        let bend = low + (high - low) * f64::from(step) / f64::from(STEPS);
        let mut overload = 0.0;
        let load: Vec<f64> = std::iter::once(0.0)
            .chain((0..count).map(|place| {
                overload += gaps[place] * (rates[place] - bend).max(0.0);
                overload
            }))
            .collect();
        let squares = squares_of_fit(&load, &delays[..=count]);
        if squares < best.0 {
            best = (squares, bend);
        }
    }
    Some(best.1)
}

/// The sum of squares that a line with a slope that is not negative leaves.
fn squares_of_fit(x: &[f64], y: &[f64]) -> f64 {
    let count = x.len() as f64;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(x), mean(y));
    let pairs = || x.iter().zip(y).map(|(x, y)| (x - mean_x, y - mean_y));
    let (xx, xy, yy) = pairs().fold((0.0, 0.0, 0.0), |(xx, xy, yy), (x, y)| (xx + x * x, xy + x * y, yy + y * y));
    if xx > 0.0 && xy > 0.0 {
        yy - xy * xy / xx
    } else {
        yy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bend_of_a_fluid_path_is_its_available_bandwidth() {
        let rates: Vec<f64> = (0..17).map(|place| 10.0 * 1.1_f64.powi(place)).collect();
        let gaps: Vec<f64> = rates.iter().map(|rate| 8000.0 / rate).collect();
        let mut delay = 0.0;
        let rises = rates.iter().zip(&gaps).map(|(rate, gap)| {
            delay += gap * (rate - 25.0_f64).max(0.0) / 40.0;
            delay
        });
        let delays: Vec<f64> = std::iter::once(0.0).chain(rises).collect();
        let found = bend(&delays, &rates, &gaps).unwrap();
        assert!((found - 25.0).abs() < 0.2, "{found}");
    }

    #[test]
    fn level_delays_give_the_highest_rate() {
        assert_eq!(bend(&[0.0; 4], &[1.0, 2.0, 4.0], &[1.0; 3]), Some(4.0));
        assert_eq!(bend(&[0.0], &[], &[]), None);
    }
}

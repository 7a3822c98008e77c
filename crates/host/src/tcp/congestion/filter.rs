//! The extreme of a quantity over a sliding window, in three samples (Kathleen Nichols' filter, as in Linux's
//! `lib/win_minmax.c`).
//!
//! The best sample is kept with the second and the third best that came after it. When the best grows too old the
//! next takes its place; a new best ends all others. The answer is exact while the quantity grows better, and at
//! most a quarter of the window late when it grows worse.

/// Extreme of values of type `V` over a window of times of type `u64`, in whatever unit the caller counts.
#[derive(Clone, Copy, Debug)]
pub struct Windowed<V> {
    length: u64,
    better: fn(&V, &V) -> bool,
    /// Times and values: best, second and third, each later than the one before or the same.
    kept: [(u64, V); 3],
}

impl<V: Copy + PartialOrd> Windowed<V> {
    /// The largest value of the last `length`, beginning with `value` at `time`.
    #[must_use]
    pub fn largest(length: u64, time: u64, value: V) -> Self {
        Self { length, better: |new, old| new >= old, kept: [(time, value); 3] }
    }

    /// The least value of the last `length`, beginning with `value` at `time`.
    #[must_use]
    pub fn least(length: u64, time: u64, value: V) -> Self {
        Self { length, better: |new, old| new <= old, kept: [(time, value); 3] }
    }

    /// The extreme.
    #[must_use]
    pub fn get(&self) -> V {
        self.kept[0].1
    }

    /// Takes `value`, measured at `time`, and gives the extreme. Times never go back.
    pub fn update(&mut self, time: u64, value: V) -> V {
        let new = (time, value);
        let better = self.better;
        if better(&value, &self.kept[0].1) || time.saturating_sub(self.kept[2].0) > self.length {
            self.kept = [new; 3];
            return value;
        }
        if better(&value, &self.kept[1].1) {
            self.kept[1] = new;
            self.kept[2] = new;
        } else if better(&value, &self.kept[2].1) {
            self.kept[2] = new;
        }
        self.age(new);
        self.get()
    }

    /// Lets the best go when the window has passed it, and spreads second and third over the window so that a
    /// successor is there.
    fn age(&mut self, new: (u64, V)) {
        let [best, second, third] = self.kept;
        let span = new.0.saturating_sub(best.0);
        if span > self.length {
            self.kept = [second, third, new];
            if new.0.saturating_sub(second.0) > self.length {
                self.kept = [third, new, new];
            }
        } else if second.0 == best.0 && span > self.length / 4 {
            self.kept = [best, new, new];
        } else if third.0 == second.0 && span > self.length / 2 {
            self.kept[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_is_exact_while_it_grows_and_is_forgotten_after_the_window() {
        let mut filter = Windowed::largest(10, 0, 0_u32);
        assert_eq!((0..5).map(|n| filter.update(n, 100 + u32::try_from(n).unwrap())).last(), Some(104));
        let forgotten = (5..40).find(|&n| filter.update(n, 50) < 104);
        assert_eq!(forgotten, Some(15), "104 came at 4 and holds for ten");
        assert_eq!(filter.get(), 50);
    }

    #[test]
    fn the_least_follows_a_true_window_within_a_quarter_of_it() {
        let length = 40;
        let mut filter = Windowed::least(length, 0, 1000_u64);
        let value = |n: u64| 500 + (n * 2_654_435_761) % 499 + (n / 200) * 300;
        for n in 0..2000 {
            let least = filter.update(n, value(n));
            let over = |span: u64| (n.saturating_sub(span)..=n).map(value).min().unwrap();
            assert!(least >= over(length), "never better than the window itself at {n}");
            assert!(least <= over(length / 4), "never worse than the newest quarter at {n}");
        }
    }

    #[test]
    fn a_silence_longer_than_the_window_forgets_everything() {
        let mut filter = Windowed::largest(10, 0, 7);
        assert_eq!(filter.update(100, 3), 3);
    }
}

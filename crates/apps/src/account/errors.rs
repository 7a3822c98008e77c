//! The errors that an app met: each text once with its number, in bounded memory.

/// Different texts that are kept; more are only counted.
const MOST_TEXTS: usize = 16;

/// Errors by text.
#[derive(Clone, Debug, Default)]
pub struct ErrorTally {
    counted: Vec<(String, u64)>,
    others: u64,
}

impl ErrorTally {
    /// Counts one error.
    pub fn add(&mut self, error: impl ToString) {
        self.add_many(error, 1);
    }

    /// Counts `number` errors of the same text.
    pub fn add_many(&mut self, error: impl ToString, number: u64) {
        if number == 0 {
            return;
        }
        let text = error.to_string();
        if let Some((_, count)) = self.counted.iter_mut().find(|(known, _)| *known == text) {
            *count += number;
        } else if self.counted.len() < MOST_TEXTS {
            self.counted.push((text, number));
        } else {
            self.others += number;
        }
    }

    /// One line for each text, in the order in which they first came; the number of times when it is more than one.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .counted
            .iter()
            .map(|(text, count)| if *count == 1 { text.clone() } else { format!("{text} ({count} times)") })
            .collect();
        if self.others > 0 {
            lines.push(format!("{} more errors of other kinds", self.others));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_counted_and_their_number_is_bounded() {
        let mut errors = ErrorTally::default();
        errors.add("refused");
        errors.add("reset");
        errors.add("refused");
        assert_eq!(errors.lines(), ["refused (2 times)", "reset"]);
        for number in 0..100 {
            errors.add(number);
        }
        assert_eq!(errors.lines().len(), MOST_TEXTS + 1);
        assert_eq!(errors.lines()[MOST_TEXTS], "86 more errors of other kinds");
    }
}

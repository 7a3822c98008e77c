//! Results as named columns, for whoever stores or shows them.

/// The values of a column. A missing number is [`i64::MIN`] or NaN.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Whole numbers.
    Whole(Vec<i64>),
    /// Other numbers.
    Real(Vec<f64>),
    /// Words.
    Text(Vec<String>),
}

/// Columns of one length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Name and values.
    pub columns: Vec<(&'static str, Column)>,
}

/// A missing whole number.
pub(crate) const MISSING: i64 = i64::MIN;

impl Table {
    /// Adds a column of whole numbers.
    pub(crate) fn whole(&mut self, name: &'static str, values: impl Iterator<Item = i64>) {
        self.columns.push((name, Column::Whole(values.collect())));
    }

    /// Adds a column of counts; more than fit are as many as fit.
    pub(crate) fn count(&mut self, name: &'static str, values: impl Iterator<Item = u64>) {
        self.whole(name, values.map(|value| i64::try_from(value).unwrap_or(i64::MAX)));
    }

    /// Adds a column of other numbers.
    pub(crate) fn real(&mut self, name: &'static str, values: impl Iterator<Item = f64>) {
        self.columns.push((name, Column::Real(values.collect())));
    }

    /// Adds a column of words.
    pub(crate) fn text(&mut self, name: &'static str, values: impl Iterator<Item = String>) {
        self.columns.push((name, Column::Text(values.collect())));
    }

    /// The column of this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|(one, _)| *one == name).map(|(_, column)| column)
    }
}

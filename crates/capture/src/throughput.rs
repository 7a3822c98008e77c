//! Packets and bytes over time, at every layer.

use std::collections::BTreeMap;

use crate::table::Table;

/// The most intervals that are kept, counting only those in which a packet passed.
pub(crate) const MOST: usize = 4 << 20;
/// Gaps of more intervals than this are left as gaps, not filled with zeros.
const LONGEST_FILL: i64 = 1 << 20;

/// The sums of what passed in one interval.
#[derive(Clone, Copy, Default)]
struct Sums {
    packets: u64,
    wire: u64,
    link: u64,
    network: u64,
    payload: u64,
}

/// Sums per interval, counted from the time of the first packet.
pub(crate) struct Throughput {
    interval_ns: i64,
    zero_ns: Option<i64>,
    done: BTreeMap<i64, Sums>,
    /// The interval that is being filled, apart from the others for speed.
    current: (i64, Sums),
    begin_ns: i64,
    pub(crate) not_kept: u64,
}

impl Throughput {
    pub(crate) fn new(interval_ns: i64) -> Self {
        let current = (0, Sums::default());
        Self { interval_ns, zero_ns: None, done: BTreeMap::new(), current, begin_ns: 0, not_kept: 0 }
    }

    /// Counts a packet.
    #[inline]
    pub(crate) fn count(&mut self, time_ns: i64, bytes: [u32; 4]) {
        let since = time_ns.saturating_sub(self.begin_ns);
        if !(0..self.interval_ns).contains(&since) || self.zero_ns.is_none() {
            self.go_to(time_ns);
        }
        let [wire, link, network, payload] = bytes;
        let sums = &mut self.current.1;
        sums.packets += 1;
        sums.wire += u64::from(wire);
        sums.link += u64::from(link);
        sums.network += u64::from(network);
        sums.payload += u64::from(payload);
    }

    #[cold]
    fn go_to(&mut self, time_ns: i64) {
        let zero = *self.zero_ns.get_or_insert(time_ns);
        self.put_back();
        let number = time_ns.saturating_sub(zero).div_euclid(self.interval_ns);
        self.begin_ns = zero.saturating_add(number.saturating_mul(self.interval_ns));
        self.current = (number, self.done.remove(&number).unwrap_or_default());
    }

    fn put_back(&mut self) {
        let (number, sums) = std::mem::take(&mut self.current);
        if sums.packets == 0 {
            return;
        }
        if self.done.len() < MOST {
            self.done.insert(number, sums);
        } else {
            self.not_kept += sums.packets;
        }
    }

    /// The table; intervals without packets have zeros. With it, whether a gap was too long to be filled.
    pub(crate) fn table(mut self) -> (Table, bool) {
        self.put_back();
        let mut rows: Vec<(i64, Sums)> = Vec::with_capacity(self.done.len());
        let mut gaps = false;
        for (&number, &sums) in &self.done {
            if let Some(&(before, _)) = rows.last() {
                if number.saturating_sub(before) <= LONGEST_FILL && rows.len() < 2 * MOST {
                    rows.extend((before + 1..number).map(|empty| (empty, Sums::default())));
                } else {
                    gaps = true;
                }
            }
            rows.push((number, sums));
        }
        let zero = self.zero_ns.unwrap_or(0);
        let mut table = Table::default();
        table.whole(
            "start_ns",
            rows.iter().map(|(number, _)| zero.saturating_add(number.saturating_mul(self.interval_ns))),
        );
        table.real("time_s", rows.iter().map(|(number, _)| *number as f64 * self.interval_ns as f64 / 1e9));
        table.count("packets", rows.iter().map(|(_, sums)| sums.packets));
        table.count("wire_bytes", rows.iter().map(|(_, sums)| sums.wire));
        table.count("link_bytes", rows.iter().map(|(_, sums)| sums.link));
        table.count("network_bytes", rows.iter().map(|(_, sums)| sums.network));
        table.count("payload_bytes", rows.iter().map(|(_, sums)| sums.payload));
        (table, gaps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Column;

    fn column(table: &Table, name: &str) -> Vec<i64> {
        match table.column(name) {
            Some(Column::Whole(values)) => values.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn intervals_count_from_the_first_packet_even_when_the_clock_steps_back() {
        let mut throughput = Throughput::new(10);
        for time in [105, 114, 115, 138, 92] {
            throughput.count(time, [4, 3, 2, 1]);
        }
        let (table, gaps) = throughput.table();
        assert_eq!(column(&table, "start_ns"), [85, 95, 105, 115, 125, 135]);
        assert_eq!(column(&table, "packets"), [1, 0, 2, 1, 0, 1]);
        assert_eq!(column(&table, "wire_bytes"), [4, 0, 8, 4, 0, 4]);
        assert!(!gaps);
    }

    #[test]
    fn a_leap_of_years_does_not_fill_the_memory() {
        let mut throughput = Throughput::new(1);
        throughput.count(0, [1; 4]);
        throughput.count(i64::MAX, [1; 4]);
        throughput.count(i64::MIN, [1; 4]);
        let (table, gaps) = throughput.table();
        assert_eq!(column(&table, "packets"), [1, 1, 1]);
        assert!(gaps);
    }
}

//! Writes under way, where they are served here: doors are told of each one's end when it is that late.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use larder_policy::doors::Doors;

/// A write: when it ends, how long it takes, whose it is, what serves it, its bytes and what is ahead of it. The first to end comes first.
type Write = Reverse<(u64, u64, usize, bool, u64, u16)>;

/// Writes that have begun. Times are nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct UnderWay {
    writes: BinaryHeap<Write>,
}

impl UnderWay {
    /// It is so late.
    pub(super) fn until(&mut self, now: f64, doors: &mut Doors) {
        let now_ns = nanoseconds(now);
        while let Some(&Reverse((end_ns, took_ns, tenant, by_ssd, bytes, ahead))) = self.writes.peek()
            && end_ns <= now_ns
        {
            doors.set_clock(end_ns);
            doors.ended(tenant, by_ssd, bytes, ahead, Some(took_ns));
            self.writes.pop();
        }
        doors.set_clock(now_ns);
    }

    /// A write begins now that will take so many seconds.
    pub(super) fn begin(&mut self, doors: &mut Doors, tenant: usize, by_ssd: bool, bytes: u64, seconds: f64) {
        let ahead = doors.began(tenant, by_ssd, bytes);
        let took_ns = nanoseconds(seconds);
        self.writes.push(Reverse((doors.now_ns() + took_ns, took_ns, tenant, by_ssd, bytes, ahead)));
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.writes.capacity() * size_of::<Write>()
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_policy::doors::{KINDS, Terms};

    /// A burst of writes past the SSD, of which four a millisecond are served: the next one, which is not worth its price in the mean, goes to the SSD while they wait, and no longer.
    #[test]
    fn a_write_goes_the_other_way_while_others_wait() {
        let (mut doors, mut under_way) = (Doors::new(1 << 10), UnderWay::default());
        let gains = Some(Box::new([-5e-3; KINDS]));
        doors.open(0, &Terms { shares: [0.0; KINDS], gains, ..Terms::default() });
        let mut key = 0;
        let mut burst = |doors: &mut Doors, under_way: &mut UnderWay, now: f64| {
            let mut entered = 0;
            for at in 0..400 {
                under_way.until(now, doors);
                key += 10;
                let enters = doors.ask(0, true, [key].into_iter()).1;
                entered += u64::from(enters);
                under_way.begin(doors, 0, enters, 4096, f64::from(1 + at / 8) * 2e-3);
            }
            entered
        };
        // Nothing is known of what the backing can.
        assert_eq!(burst(&mut doors, &mut under_way, 1.0), 0);
        // 5 ms and the one to be sure are what 24 writes take, beside the 2 ms of its own.
        let entered = burst(&mut doors, &mut under_way, 2.0);
        assert!((340..=380).contains(&entered), "{entered}");
        under_way.until(3.0, &mut doors);
        assert!(!doors.ask(0, true, [7].into_iter()).1);
        assert!(under_way.writes.is_empty());
        // Without gains nothing changes.
        doors.open(0, &Terms { shares: [0.0; KINDS], ..Terms::default() });
        assert_eq!(burst(&mut doors, &mut under_way, 4.0), 0);
    }
}

//! What is counted of guests' requests: per volume how many of each kind, their bytes and errors; per tenant how long reads, writes and flushes took.
//!
//! A request takes from the start of the loop's turn in which it came to the end of the turn in which its reply was ready: the clock is read once per turn
//! anyway, and a reply leaves at the end of its turn. A **hit** is one that the cache alone answered; a **miss** one that had to wait for data from or to the
//! backing, also where it waited for a fill that another request had begun. So under `wt` and `ro` every write is a miss.

use crate::histogram::Histogram;
use crate::stats::Served;
use larder_engine::{Kind, RequestKind, SHAPES, TenantId, VolumeId};

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCount {
    /// Those that have ended.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those that ended with an error.
    pub errors: u64,
}

/// The requests of a volume's guests, by kind, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestStats {
    /// Reads.
    pub read: RequestCount,
    /// Writes.
    pub write: RequestCount,
    /// Flushes.
    pub flush: RequestCount,
    /// Discards.
    pub discard: RequestCount,
    /// Write-zeroes.
    pub write_zeroes: RequestCount,
}

impl RequestStats {
    fn of(&mut self, kind: RequestKind) -> &mut RequestCount {
        match kind {
            RequestKind::Read => &mut self.read,
            RequestKind::Write => &mut self.write,
            RequestKind::Flush => &mut self.flush,
            RequestKind::Discard => &mut self.discard,
            RequestKind::WriteZeroes { .. } => &mut self.write_zeroes,
        }
    }

    /// A request has ended.
    #[inline]
    pub(crate) fn ended(&mut self, kind: RequestKind, bytes: u64, failed: bool) {
        let count = self.of(kind);
        count.requests += 1;
        count.bytes += bytes;
        count.errors += u64::from(failed);
    }
}

/// How long the requests of a tenant's guests took that ended well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Reads that the cache answered.
    pub read_hit: Histogram,
    /// Reads that waited for the backing.
    pub read_miss: Histogram,
    /// Writes that the cache took.
    pub write_hit: Histogram,
    /// Writes that waited for the backing.
    pub write_miss: Histogram,
    /// Flushes.
    pub flush: Histogram,
}

impl Latencies {
    #[inline]
    fn of(&mut self, kind: RequestKind, missed: bool) -> Option<&mut Histogram> {
        match (kind, missed) {
            (RequestKind::Read, false) => Some(&mut self.read_hit),
            (RequestKind::Read, true) => Some(&mut self.read_miss),
            (RequestKind::Write, false) => Some(&mut self.write_hit),
            (RequestKind::Write, true) => Some(&mut self.write_miss),
            (RequestKind::Flush, _) => Some(&mut self.flush),
            (RequestKind::Discard | RequestKind::WriteZeroes { .. }, _) => None,
        }
    }
}

/// A guest's request in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    /// The frontend's name for it.
    pub cookie: u64,
    /// When it came, on the reactor's clock.
    pub started_ns: u64,
    pub bytes: u64,
    pub volume: VolumeId,
    pub kind: RequestKind,
    /// It had to wait for the backing.
    pub missed: bool,
    /// What its tenant's door took it for.
    pub asked: Kind,
}

/// A request whose reply is ready, and leaves at the end of this turn.
#[derive(Clone, Copy, Debug)]
struct Answered {
    started_ns: u64,
    tenant: TenantId,
    kind: RequestKind,
    missed: bool,
    asked: Kind,
}

/// The latencies of a reactor's tenants. A tenant that asked for nothing yet takes no memory.
#[derive(Debug, Default)]
pub(crate) struct Clocked {
    answered: Vec<Answered>,
    tenants: Vec<Option<Box<Latencies>>>,
    /// By shape, where there are doors.
    shaped: Option<Vec<Option<Box<Shaped>>>>,
}

/// Requests by what served them (read hits, read misses, write hits, write misses) and by [`Kind::shape_served`].
pub(crate) type Shaped = [[Served; SHAPES]; 4];

impl Clocked {
    /// A request ends well in this turn.
    #[inline]
    pub fn answered(&mut self, tenant: TenantId, flight: &Flight) {
        let Flight { started_ns, kind, missed, asked, .. } = *flight;
        self.answered.push(Answered { started_ns, tenant, kind, missed, asked });
    }

    /// The turn ends now.
    #[inline]
    pub fn end_turn(&mut self, now_ns: u64) {
        for index in 0..self.answered.len() {
            let Answered { started_ns, tenant, kind, missed, asked } = self.answered[index];
            let elapsed = now_ns.saturating_sub(started_ns);
            if let Some(histogram) = self.of(tenant).of(kind, missed) {
                histogram.record(elapsed);
            }
            if let Some(shaped) = &mut self.shaped {
                note_shape(shaped, tenant, kind, missed, asked.shape_served(), elapsed);
            }
        }
        self.answered.clear();
    }

    #[inline]
    fn of(&mut self, tenant: TenantId) -> &mut Latencies {
        let index = usize::from(tenant.0);
        if index >= self.tenants.len() {
            self.tenants.resize_with(index + 1, || None);
        }
        self.tenants[index].get_or_insert_default()
    }

    /// Requests are told apart by their shapes from now on, or no longer.
    pub fn set_shapes(&mut self, shapes: bool) {
        match shapes {
            true => _ = self.shaped.get_or_insert_default(),
            false => self.shaped = None,
        }
    }

    /// A tenant's requests by their shapes, since they are told apart.
    pub fn shaped(&self, tenant: TenantId) -> Option<&Shaped> {
        self.shaped.as_ref()?.get(usize::from(tenant.0))?.as_deref()
    }

    /// How many of a tenant's reads hit and missed, and of its writes, and how long they took.
    pub fn served(&self, tenant: TenantId) -> [Served; 4] {
        let Some(Some(known)) = self.tenants.get(usize::from(tenant.0)) else { return Default::default() };
        [&known.read_hit, &known.read_miss, &known.write_hit, &known.write_miss]
            .map(|histogram| Served { requests: histogram.count(), total_ns: histogram.sum_ns() })
    }

    /// Those of each tenant that has any.
    pub fn snapshot(&self) -> Vec<(TenantId, Box<Latencies>)> {
        let of = |(tenant, latencies): (u16, &Option<Box<Latencies>>)| {
            Some((TenantId(tenant), latencies.clone()?))
        };
        (0..).zip(&self.tenants).filter_map(of).collect()
    }
}

/// A read or a write has ended.
fn note_shape(
    shaped: &mut Vec<Option<Box<Shaped>>>,
    tenant: TenantId,
    kind: RequestKind,
    missed: bool,
    shape: usize,
    elapsed_ns: u64,
) {
    let by = match kind {
        RequestKind::Read => usize::from(missed),
        RequestKind::Write => 2 + usize::from(missed),
        _ => return,
    };
    let index = usize::from(tenant.0);
    if index >= shaped.len() {
        shaped.resize_with(index + 1, || None);
    }
    let served = &mut shaped[index].get_or_insert_default()[by][shape];
    served.requests += 1;
    served.total_ns += elapsed_ns;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(kind: RequestKind, started_ns: u64, missed: bool) -> Flight {
        let asked = Kind::of(kind == RequestKind::Write, 2, false, 0, false);
        Flight { cookie: 0, started_ns, bytes: 4096, volume: VolumeId(0), kind, missed, asked }
    }

    #[test]
    fn requests_take_until_the_end_of_the_turn_and_only_tenants_that_ask_take_memory() {
        let mut clocked = Clocked::default();
        clocked.answered(TenantId(2), &flight(RequestKind::Read, 100, false));
        clocked.answered(TenantId(2), &flight(RequestKind::Write, 200, true));
        clocked.answered(TenantId(2), &flight(RequestKind::Flush, 300, false));
        clocked.answered(TenantId(2), &flight(RequestKind::Discard, 300, false));
        clocked.end_turn(5_000);
        clocked.end_turn(9_000);
        let snapshot = clocked.snapshot();
        assert_eq!(snapshot.len(), 1);
        let (tenant, latencies) = &snapshot[0];
        let sums = [
            latencies.read_hit,
            latencies.read_miss,
            latencies.write_hit,
            latencies.write_miss,
            latencies.flush,
        ]
        .map(|histogram| (histogram.count(), histogram.sum_ns()));
        assert_eq!((*tenant, sums), (TenantId(2), [(1, 4_900), (0, 0), (0, 0), (1, 4_800), (1, 4_700)]));
    }

    #[test]
    fn requests_are_told_apart_by_shape_where_that_is_wanted() {
        let mut clocked = Clocked::default();
        let turn = |clocked: &mut Clocked| {
            clocked.answered(TenantId(1), &flight(RequestKind::Read, 100, true));
            clocked.answered(TenantId(1), &flight(RequestKind::Write, 100, false));
            clocked.answered(TenantId(1), &flight(RequestKind::Flush, 100, false));
            clocked.end_turn(400);
        };
        turn(&mut clocked);
        assert!(clocked.shaped(TenantId(1)).is_none());
        clocked.set_shapes(true);
        turn(&mut clocked);
        turn(&mut clocked);
        let shaped = clocked.shaped(TenantId(1)).unwrap();
        let shape = Kind::of(false, 2, false, 0, false).shape();
        let served: Vec<_> = shaped.iter().map(|by| (by[shape].requests, by[shape].total_ns)).collect();
        assert_eq!(served, [(0, 0), (2, 600), (2, 600), (0, 0)]);
        assert_eq!(shaped.iter().flatten().map(|served| served.requests).sum::<u64>(), 4);
        clocked.set_shapes(false);
        assert!(clocked.shaped(TenantId(1)).is_none());
    }

    #[test]
    fn errors_are_counted_among_the_requests() {
        let mut stats = RequestStats::default();
        stats.ended(RequestKind::Read, 4096, false);
        stats.ended(RequestKind::Read, 512, true);
        stats.ended(RequestKind::WriteZeroes { no_hole: true }, 1 << 20, false);
        assert_eq!(stats.read, RequestCount { requests: 2, bytes: 4608, errors: 1 });
        assert_eq!(stats.write_zeroes, RequestCount { requests: 1, bytes: 1 << 20, errors: 0 });
        assert_eq!((stats.write, stats.flush, stats.discard), Default::default());
    }
}

//! Centaur's admission control (section VI-A): which reservations can be kept together.

use crate::bounds::Bounds;
use crate::centaur::curves::Vm;
use crate::{Reservation, Tenant};

/// What became of a tenant's reservation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// It has none.
    None,
    /// The tenant is idle: nothing can be said, and nothing is needed.
    Idle,
    /// It is kept, with at least so many blocks.
    Kept {
        /// The size at which the curve meets the target.
        needed: u64,
    },
    /// There is not enough for it: this is the most that the tenant could have, in seconds or IOPS.
    Refused {
        /// Beside the reservations before it, and everybody's least.
        best: f64,
        /// Requests per second that came of a tenant that may send no more than that.
        came: Option<f64>,
    },
    /// The plan was tried so many times, and did not converge to the target.
    GivenUp {
        /// The most that was measured meanwhile, in seconds or IOPS.
        best: f64,
    },
}

/// The verdicts, where those on the tenants whose reservations ask for admission are made anew. `order` names these, the first
/// ones first.
pub(super) fn admit(
    tenants: &[Tenant<'_>],
    vms: &[Option<Vm<'_>>],
    bounds: &[Bounds],
    cache_blocks: u64,
    order: &[usize],
    mut verdicts: Vec<Verdict>,
) -> Vec<Verdict> {
    let mut spare = cache_blocks - bounds.iter().map(|bounds| bounds.least).sum::<u64>();
    for &at in order {
        let Some(reservation) = tenants[at].goals.reservation else { continue };
        verdicts[at] = match &vms[at] {
            None => Verdict::Idle,
            Some(vm) => verdict(vm, reservation, bounds[at], spare),
        };
        if let Verdict::Kept { needed } = verdicts[at] {
            spare -= needed.saturating_sub(bounds[at].least);
        }
    }
    verdicts
}

fn verdict(vm: &Vm<'_>, reservation: Reservation, bounds: Bounds, spare: u64) -> Verdict {
    let most = bounds.most.min(bounds.least + spare);
    // The size that is needed goes by equation 2 (section V-B). Beside it stands what that leaves out: no size is enough
    // for more than the SSD answers.
    let (reached, best, came) = match reservation {
        Reservation::Latency(_) => (true, vm.gives(reservation, most), None),
        Reservation::Iops(iops) => {
            let iops_max = vm.iops_max(most);
            (iops_max >= iops, vm.gives(reservation, most).min(iops_max), vm.paced())
        }
    };
    match vm.needed(reservation) {
        Some(needed) if needed <= most && reached => Verdict::Kept { needed },
        _ => Verdict::Refused { best, came },
    }
}

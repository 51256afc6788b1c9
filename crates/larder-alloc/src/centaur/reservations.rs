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
    },
    /// The plan was tried so many times, and did not converge to the target.
    GivenUp,
}

/// One verdict for each tenant. `order` names the tenants whose reservations ask for admission, the first ones first: who has
/// a reservation and is not named was given up before.
pub(super) fn admit(
    tenants: &[Tenant<'_>],
    vms: &[Option<Vm<'_>>],
    bounds: &[Bounds],
    cache_blocks: u64,
    order: &[usize],
) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = tenants
        .iter()
        .map(|tenant| tenant.goals.reservation.map_or(Verdict::None, |_| Verdict::GivenUp))
        .collect();
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
    match vm.needed(reservation) {
        Some(needed) if needed <= most => Verdict::Kept { needed },
        _ => Verdict::Refused { best: vm.gives(reservation, most) },
    }
}

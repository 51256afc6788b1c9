//! What the paper says about its co-runs, held against what was found.

use super::CoRun;
use crate::reproduce::claim::Claim;
use crate::reproduce::larc::Verdict;

/// What S-CAVE may cost where it brings nothing.
const OVERHEAD: f64 = 0.032;

/// All of them; the co-runs come in the order of the paper.
pub fn judge(co_runs: &[CoRun]) -> Vec<Claim> {
    let [strong, mixed, weak] = co_runs else { return Vec::new() };
    vec![isolation(strong), gain(mixed), unaffected(mixed), overhead(weak)]
}

fn isolation(run: &CoRun) -> Claim {
    let claim = Claim::new(
        "isolation",
        "strong + strong: the VM that suffers most suffers less than under CLOCK",
        "2.25 → 1.72 times slower",
    );
    let worst = |allocator| run.slowdown(allocator, 0).max(run.slowdown(allocator, 1));
    let (clock, scave) = (worst("unified"), worst("scave"));
    let because = if scave < clock { "the worse-off VM gains" } else { "the worse-off VM gains nothing" };
    claim.found(format!("{clock:.2} → {scave:.2} times slower"), Verdict::of(scave < clock, 0, 1), because)
}

fn gain(run: &CoRun) -> Claim {
    let claim = Claim::new(
        "gain",
        "strong + weak: both VMs together do more than under CLOCK",
        "482 → 831 IOPS (1.72 times)",
    );
    let (clock, scave) = (run.total_iops("unified"), run.total_iops("scave"));
    let factor = scave / clock.max(f64::EPSILON);
    claim.found(
        format!("{clock:.0} → {scave:.0} IOPS ({factor:.2} times)"),
        Verdict::of(factor >= 1.1, usize::from(factor > 1.0), 1),
        format!("the strong VM does {:.2} times as much; 1.1 times in all would be enough", of_strong(run)),
    )
}

fn of_strong(run: &CoRun) -> f64 {
    run.iops("scave", 0) / run.iops("unified", 0).max(f64::EPSILON)
}

fn unaffected(run: &CoRun) -> Claim {
    let claim =
        Claim::new("unaffected", "strong + weak: the weak VM hardly feels it", "2.57 → 2.52 rounds (-1.9 %)");
    let change = run.iops("scave", 1) / run.iops("unified", 1).max(f64::EPSILON) - 1.0;
    claim.found(
        format!("{:+.1} %", change * 100.0),
        Verdict::of(change >= -0.05, 0, 1),
        "up to 5 % less would be hardly",
    )
}

fn overhead(run: &CoRun) -> Claim {
    let claim = Claim::new(
        "overhead",
        "weak + weak: at most 3.2 % is lost where nothing can be gained",
        "3.2 and 1.3 %",
    );
    let lost = [0, 1].map(|vm| 1.0 - run.iops("scave", vm) / run.iops("unified", vm).max(f64::EPSILON));
    let kept = lost.iter().filter(|&&lost| lost <= OVERHEAD).count();
    claim.found(
        format!("{:.1} and {:.1} %", lost[0] * 100.0, lost[1] * 100.0),
        Verdict::of(kept == 2, kept, 2),
        format!("{kept} of 2 VMs lose no more"),
    )
}

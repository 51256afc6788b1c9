//! What the thesis concludes from its tables, held against what was found.

use super::gaussian::Row;
use super::{Pair, real};
use crate::reproduce::claim::Claim;
use crate::reproduce::larc::Verdict;

/// Hit ratios that differ by no more do not differ: two points, as much as the thesis's own "no significant change".
const SAME: f64 = 0.02;

/// All of them.
pub fn judge(by_rate: &[Row], by_sigma: &[Row], real: &[real::Row]) -> Vec<Claim> {
    vec![
        steady(
            Claim::new("rate_divided", "4.3: divided, container 1 does not feel 2's rate", "78.3 to 79.6 %"),
            by_rate,
        ),
        falling(
            Claim::new("rate_unified", "4.3: unified, it loses as 2's rate grows", "68.2 to 41.3 %"),
            by_rate,
        ),
        better_divided(
            Claim::new(
                "rate_overall",
                "4.3: overall, dividing is better at every rate",
                "by 2.8 to 16.5 points",
            ),
            by_rate,
        ),
        steady(
            Claim::new("sigma_divided", "4.4: divided, container 1 does not feel 2's σ", "79.4 to 80.2 %"),
            by_sigma,
        ),
        falling(
            Claim::new("sigma_unified", "4.4: unified, it loses as 2's σ grows", "79.4 to 58.5 %"),
            by_sigma,
        ),
        turning(by_sigma),
        server(real),
        readers(real),
    ]
}

fn first(rows: &[Row]) -> Vec<Pair> {
    rows.iter().map(|row| row.here[0]).collect()
}

fn range(values: &[f64]) -> String {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{:.1} to {:.1} %", low * 100.0, high * 100.0)
}

fn steady(claim: Claim, rows: &[Row]) -> Claim {
    let ratios: Vec<_> = first(rows).iter().map(|pair| pair.divided).collect();
    let spread = ratios.iter().copied().fold(0.0, f64::max) - ratios.iter().copied().fold(1.0, f64::min);
    let verdict = Verdict::of(spread <= SAME, 0, 1);
    claim.found(range(&ratios), verdict, format!("it moves by {:.1} points", spread * 100.0))
}

fn falling(claim: Claim, rows: &[Row]) -> Claim {
    let ratios: Vec<_> = first(rows).iter().map(|pair| pair.unified).collect();
    let falls = ratios.windows(2).filter(|pair| pair[1] < pair[0]).count();
    let all = ratios.len().saturating_sub(1);
    let ends = [ratios.first(), ratios.last()].map(|ratio| ratio.copied().unwrap_or_default());
    let here = format!("{:.1} to {:.1} %", ends[0] * 100.0, ends[1] * 100.0);
    let lost = (ends[0] - ends[1]) * 100.0;
    claim.found(
        here,
        Verdict::of(falls == all, falls, all),
        format!("it falls in {falls} of {all} steps, by {lost:.1} points in all"),
    )
}

fn better_divided(claim: Claim, rows: &[Row]) -> Claim {
    let gains: Vec<_> = rows.iter().map(|row| row.here[2].divided - row.here[2].unified).collect();
    let better = gains.iter().filter(|&&gain| gain > 0.0).count();
    let told: Vec<_> = gains.iter().map(|gain| format!("{:+.1}", gain * 100.0)).collect();
    claim.found(
        format!("by {} points", told.join(", ")),
        Verdict::of(better == gains.len(), better, gains.len()),
        format!("dividing is better in {better} of {} rows", gains.len()),
    )
}

/// In the middle of table 4.4 one cache is better, at its end it is worse.
fn turning(rows: &[Row]) -> Claim {
    let claim = Claim::new(
        "sigma_turns",
        "4.4: overall, one cache is better at σ = 150,000 and 250,000, and worse at 500,000",
        "+2.1, +0.7, -8.7 points",
    );
    let gain = |sigma| {
        let row = rows.iter().find(|row| row.paper.sigma == sigma);
        row.map_or(0.0, |row| row.here[2].unified - row.here[2].divided)
    };
    let gains = [150_000, 250_000, 500_000].map(gain);
    let right = gains[..2].iter().filter(|&&gain| gain > 0.0).count() + usize::from(gains[2] < 0.0);
    let told = gains.map(|gain| format!("{:+.1}", gain * 100.0)).join(", ");
    claim.found(
        format!("{told} points"),
        Verdict::of(right == gains.len(), right, gains.len()),
        format!("{right} of the three signs are the thesis's"),
    )
}

fn server(rows: &[real::Row]) -> Claim {
    let claim =
        Claim::new("server", "4.5: dividing saves the web server", "hit ratio 86.9 % in place of 15.9 %");
    let Some(row) = rows.first() else { return claim };
    let Pair { divided, unified } = row.here;
    claim.found(
        format!("{:.1} % in place of {:.1} %", divided * 100.0, unified * 100.0),
        Verdict::of(divided > 0.0 && divided >= 2.0 * unified, usize::from(divided > unified), 1),
        format!(
            "{:.1} times as many hits; twice as many would be enough",
            divided / unified.max(f64::EPSILON)
        ),
    )
}

fn readers(rows: &[real::Row]) -> Claim {
    let claim = Claim::new("readers", "4.5: the random readers lose little by it", "1.3 to 2.4 points");
    let lost: Vec<_> = rows.iter().skip(1).map(|row| row.here.unified - row.here.divided).collect();
    let little = lost.iter().filter(|&&lost| lost <= 0.05).count();
    let told: Vec<_> = lost.iter().map(|lost| format!("{:.1}", lost * 100.0)).collect();
    claim.found(
        format!("{} points", told.join(", ")),
        Verdict::of(little == lost.len(), little, lost.len()),
        format!("{little} of {} lose no more than 5 points", lost.len()),
    )
}

//! What the paper claims over Centaur, held against what was found.

use super::Compared;
use crate::reproduce::claim::Claim;
use crate::reproduce::larc::{Verdict, percent};

/// All of them; the limited cache comes first.
pub fn judge(compared: &[Compared]) -> Vec<Claim> {
    let [limited, unlimited] = compared else { return Vec::new() };
    let same = unlimited.latency_saved();
    vec![
        at_least(
            Claim::new("latency", "limited cache: lower latency", "by 17 % (section 6.5)"),
            Some(limited.latency_saved()),
            0.17,
        ),
        at_least(
            Claim::new(
                "per_cost",
                "limited cache: more performance per allotted cache",
                "by 30 % (section 6.5)",
            ),
            limited.per_cost_gained(),
            0.30,
        ),
        at_least(
            Claim::new("writes", "fewer writes to the SSD", "by 65 % (section 6.6)"),
            limited.writes_saved(),
            0.65,
        ),
        at_least(
            Claim::new("allotted", "unlimited cache: less cache allotted", "by 29 % (appendix A)"),
            unlimited.cache_saved(),
            0.29,
        ),
        Claim::new("same", "unlimited cache: the same performance", "the same (appendix A)").found(
            format!("latency {:+.1} %", -same * 100.0),
            Verdict::of(same >= -0.05, 0, 1),
            "up to 5 % higher counts as the same; lower is better",
        ),
    ]
}

/// By so much or more; in part where the direction is right.
fn at_least(claim: Claim, here: Option<f64>, paper: f64) -> Claim {
    let Some(here) = here else {
        return claim.found(
            "nothing to compare",
            Verdict::Untested,
            "a cache that is not used says nothing of it",
        );
    };
    let because = match here {
        _ if here >= paper => "as much or more".to_owned(),
        _ if here > 0.0 => format!("the direction is right, {} is not reached", percent(paper)),
        _ => "Centaur is better here".to_owned(),
    };
    claim.found(
        format!("by {}", percent(here)),
        Verdict::of(here >= paper, if here > 0.0 { 2 } else { 0 }, 2),
        because,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_holds_in_full_in_part_or_not() {
        let verdict = |here| at_least(Claim::new("id", "", ""), here, 0.17).verdict;
        assert_eq!(verdict(None), Verdict::Untested);
        assert_eq!(
            [0.2, 0.17, 0.1, -0.1].map(Some).map(verdict),
            [Verdict::Holds, Verdict::Holds, Verdict::InPart, Verdict::Fails]
        );
    }
}

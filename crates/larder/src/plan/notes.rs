//! What has to be known to read the figures of a plan.

use super::offer::Offer;

/// Which offers need no budget of SSD writes, so that their figures are those without one.
pub fn unlimited(offers: &[Offer]) -> Option<String> {
    let free: Vec<_> =
        offers.iter().filter(|offer| offer.budget_per_day.is_none()).map(Offer::name).collect();
    let (whose, they) = match &free[..] {
        [] => return None,
        [one] => (one.clone(), "is it"),
        all if all.len() == offers.len() => ("each of them".into(), "is it"),
        [most @ .., last] => (format!("{} and {last}", most.join(", ")), "are they"),
    };
    Some(format!(
        "Without a budget of SSD writes (write_budget = \"unlimited\"): {whose}; on no day {they} written more than allowed. Under a budget, which is spent over the day, less is written, \
         and requests may take longer."
    ))
}

#[cfg(test)]
mod tests {
    use super::super::endurance::Endurance;
    use super::*;

    #[test]
    fn those_without_a_budget_are_named() {
        let offer = |gib: u64, budget_per_day| Offer {
            budget_per_day,
            ..Offer::bare(gib << 30, Endurance::Dwpd(1.0), 1e-3)
        };
        let told = |budgets: &[Option<f64>]| {
            let offers: Vec<_> = (1..).zip(budgets).map(|(gib, &budget)| offer(gib, budget)).collect();
            unlimited(&offers)
        };
        assert_eq!(told(&[Some(1.0), Some(2.0)]), None);
        let is = |budgets: &[Option<f64>], whose: &str| {
            let text = told(budgets).expect("a note");
            assert!(text.contains(&format!("\"unlimited\"): {whose}; on no day ")), "{text}");
        };
        is(&[None, Some(2.0)], "1 GiB at 1 DWPD");
        is(&[None, Some(2.0), None, None], "1 GiB at 1 DWPD, 3 GiB at 1 DWPD and 4 GiB at 1 DWPD");
        is(&[None, None], "each of them");
    }
}

//! What a partition that has all of its quota borrows: a block of another one for each that enters.
//!
//! A lender is looked for once for each batch of blocks that had no room, and ever more seldom if none is found: there may be a thousand to look at.

/// Blocks for which one looks once.
pub const BATCH: u32 = 64;

/// Times in a row that nobody was found that count.
const VAIN: u32 = 4;

/// What a partition borrows of the ones `L`.
#[derive(Clone, Copy, Debug)]
pub struct Borrows<L> {
    /// Blocks for which it had no room since it looked.
    wanted: u32,
    /// Times in a row that it found nobody.
    vain: u32,
    loan: Option<Loan<L>>,
}

#[derive(Clone, Copy, Debug)]
struct Loan<L> {
    from: L,
    /// So many more.
    left: u32,
    /// Blocks that the lender had used.
    used: u64,
}

impl<L> Default for Borrows<L> {
    fn default() -> Self {
        Self { wanted: 0, vain: 0, loan: None }
    }
}

impl<L: Copy> Borrows<L> {
    /// There is no room for a block: true if it is time to look for a lender.
    pub fn wants_one(&mut self) -> bool {
        self.wanted += 1;
        self.wanted >= BATCH << self.vain
    }

    /// Somebody was found, who has used so many blocks until now ([`Residents::used`](crate::residents::Residents::used)); or nobody.
    pub fn found(&mut self, lender: Option<(L, u64)>) {
        self.wanted = 0;
        self.vain = if lender.is_some() { 0 } else { VAIN.min(self.vain + 1) };
        self.loan = lender.map(|(from, used)| Loan { from, left: BATCH, used });
    }

    /// Who lends the next one. Not who has used many blocks since it was found, as `used` tells: it is idle no longer.
    pub fn lender(&mut self, used: impl Fn(L) -> u64) -> Option<L> {
        self.loan = self.loan.filter(|loan| used(loan.from) < loan.used + u64::from(BATCH));
        self.loan.map(|loan| loan.from)
    }

    /// It did, or had none to give.
    pub fn lent(&mut self, did: bool) {
        let loan = self.loan.map(|loan| Loan { left: loan.left - 1, ..loan });
        self.loan = loan.filter(|loan| did && loan.left > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_looks_once_for_a_batch_and_more_seldom_in_vain() {
        let mut borrows = Borrows::<u8>::default();
        let until_looks = |borrows: &mut Borrows<u8>| (1..).find(|_| borrows.wants_one()).expect("some time");
        for (wanted, times) in [(64, 1), (128, 1), (256, 1), (512, 1), (1024, 3)] {
            for _ in 0..times {
                assert_eq!(until_looks(&mut borrows), wanted);
                borrows.found(None);
            }
        }
        borrows.found(Some((7, 0)));
        assert_eq!(until_looks(&mut borrows), 64);
    }

    #[test]
    fn a_loan_ends_with_the_batch_or_with_who_lends() {
        let mut borrows = Borrows::default();
        assert_eq!(borrows.lender(|_| 0), None);
        borrows.found(Some(('a', 1000)));
        for _ in 0..BATCH {
            assert_eq!(borrows.lender(|_| 1063), Some('a'));
            borrows.lent(true);
        }
        assert_eq!(borrows.lender(|_| 1063), None);
        // Who has none to give.
        borrows.found(Some(('a', 1000)));
        borrows.lent(false);
        assert_eq!(borrows.lender(|_| 1000), None);
        // Who uses its own again.
        borrows.found(Some(('a', 1000)));
        assert_eq!(borrows.lender(|_| 1064), None);
        assert_eq!(borrows.lender(|_| 1000), None);
    }
}

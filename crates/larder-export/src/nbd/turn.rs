//! What connections may ask in one turn of the reactor that costs it time at once. The rest has its turn in the next.

use super::limits::{STATUS_PER_CONNECTION_TURN, STATUS_PER_TURN};

/// The present turn, for all connections.
#[derive(Debug, Default)]
pub(super) struct Turn {
    number: u64,
    status: usize,
}

/// What one connection had of its last turn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TurnShare {
    number: u64,
    status: usize,
}

impl Turn {
    /// The next turn begins.
    pub fn begin(&mut self) {
        self.number += 1;
        self.status = 0;
    }

    /// True where a connection may ask for the status of blocks in this turn.
    #[inline]
    pub fn allows_status(&self, share: TurnShare) -> bool {
        let had = if share.number == self.number { share.status } else { 0 };
        self.status < STATUS_PER_TURN && had < STATUS_PER_CONNECTION_TURN
    }

    /// A connection did so.
    pub fn note_status(&mut self, share: &mut TurnShare) {
        if share.number != self.number {
            *share = TurnShare { number: self.number, status: 0 };
        }
        share.status += 1;
        self.status += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queries that a connection gets through in what is left of a turn.
    fn asks(turn: &mut Turn, share: &mut TurnShare) -> usize {
        (0..100)
            .take_while(|_| {
                let allowed = turn.allows_status(*share);
                if allowed {
                    turn.note_status(share);
                }
                allowed
            })
            .count()
    }

    #[test]
    fn a_flood_of_status_queries_is_spread_over_turns() {
        let (mut turn, mut shares) = (Turn::default(), [TurnShare::default(); 3]);
        for _ in 0..3 {
            let asked: Vec<usize> = shares.iter_mut().map(|share| asks(&mut turn, share)).collect();
            assert_eq!(asked, [4, 4, 0]);
            turn.begin();
        }
    }
}

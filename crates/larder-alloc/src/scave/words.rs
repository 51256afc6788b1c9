//! What a time window of S-CAVE did to a tenant, and the sentence that tells it.

use crate::words::grouped;

/// What happened to a tenant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// Lines 2 to 5: it is the only one.
    Alone,
    /// Lines 7 to 10: so many blocks of the cache are free.
    Free { free: u64, cache: u64 },
    /// Lines 12 to 39.
    Limited(Limited),
}

/// What the lines for tenants with limits did to one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Limited {
    /// Its rECS, if it is known.
    pub effective: Option<f64>,
    pub score: f64,
    /// Blocks that it got for the highest score.
    pub raised: Option<u64>,
    /// What it got for the lowest score.
    pub lowest: Option<Lowest>,
    /// Blocks that it gave for the deficit.
    pub given: u64,
}

/// What the lowest score brings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Lowest {
    /// So many blocks less, for the `count`th time since the last increase.
    Less { blocks: u64, count: u32 },
    /// So many blocks given back, after `count` decreases.
    Back { blocks: u64, count: u32 },
}

impl Step {
    /// Why a tenant gets `quota` blocks.
    pub fn words(&self, quota: u64) -> String {
        let quota = grouped(quota);
        match self {
            Self::Alone => format!("the only tenant: no limit but {quota} blocks"),
            Self::Free { free, cache } => format!(
                "{} of {} blocks are free, more than 5 %: no limit but {quota} blocks",
                grouped(*free),
                grouped(*cache)
            ),
            Self::Limited(limited) => format!("{}: {quota} blocks", limited.words()),
        }
    }
}

impl Limited {
    fn words(&self) -> String {
        let effective = self.effective.map_or("not known yet".to_owned(), |known| format!("{known:.3}"));
        let mut parts = vec![format!("rECS {effective}, score {:+.4}", self.score)];
        parts.extend(self.raised.map(|blocks| format!("the highest: + {}", grouped(blocks))));
        parts.extend(self.lowest.map(Lowest::words));
        if self.given > 0 {
            parts.push(format!("- {} for 5 % of free space", grouped(self.given)));
        }
        parts.join(", ")
    }
}

impl Lowest {
    fn words(self) -> String {
        match self {
            Self::Less { blocks, count } => {
                format!("the lowest: - {} (decrease {count} since the last increase)", grouped(blocks))
            }
            Self::Back { blocks, count } => {
                format!("the lowest, but after {count} decreases: + {}", grouped(blocks))
            }
        }
    }
}

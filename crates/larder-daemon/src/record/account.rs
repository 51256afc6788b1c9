//! The account of a recording: what the daemon was like while guests' requests were recorded, what these took, and what was decided. With it and the trace `larder simulate --like` does again what
//! the daemon did.

use std::io;
use std::path::Path;

use larder_alloc::control::Shaped;
use larder_alloc::{Measured, Timed};
use serde::{Deserialize, Serialize};

/// How a daemon stood when a recording of it began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// The configuration in effect, as `larder.toml` would have it.
    pub config: String,
    /// Blocks of the cache.
    pub cache_blocks: u32,
    /// Seconds between decisions.
    pub epoch_seconds: f64,
    /// When the recording began, in seconds since the loop did.
    pub began_seconds: f64,
    /// Where the tenants stood then.
    pub tenants: Vec<DecidedTenant>,
    /// What chose the blocks of the samples by which tenants are analyzed.
    #[serde(default)]
    pub seed: Option<u64>,
    /// The volumes that there were, with the numbers that those blocks were chosen by.
    #[serde(default)]
    pub volumes: Vec<NumberedVolume>,
    /// How far the budget of SSD writes was used up, where there was one.
    #[serde(default)]
    pub period: Option<Period>,
}

/// A volume as the loop knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedVolume {
    /// Its name.
    pub name: String,
    /// Its number.
    pub number: u16,
}

/// A decision about all tenants, and what was measured since the one before. Where tenants are learned anew ([`Decided::is_renewal`]) nothing was decided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Decided {
    /// When, in seconds since the loop began.
    pub seconds: f64,
    /// The tenants.
    pub tenants: Vec<DecidedTenant>,
    /// What was written to the SSD since the decision before, where there is a budget of such writes: as it was counted last, no more than half a second before.
    #[serde(default)]
    pub written: WrittenSsd,
}

/// What was written to the SSD, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenSsd {
    /// Of tenants' blocks.
    pub data_bytes: u64,
    /// Of the cache's own records.
    pub record_bytes: u64,
}

/// The period of the budget of SSD writes that was under way when a recording began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Period {
    /// When it began, in seconds since the loop did.
    pub began_seconds: f64,
    /// Bytes written in it.
    pub written_bytes: f64,
    /// It is the first: the cache was cold, and the budget is spent faster.
    pub first: bool,
}

/// A tenant's part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DecidedTenant {
    /// Its name.
    pub name: String,
    /// Blocks that it may hold.
    pub quota_blocks: u32,
    /// What its writes do.
    pub write_policy: String,
    /// Replacement and admission.
    pub caching: String,
    /// Why, in a sentence.
    pub reason: String,
    /// Its requests since the decision before.
    pub measured: MeasuredRequests,
    /// Its rate of requests had changed: what was known of it does not count any more.
    #[serde(default)]
    pub renewed: bool,
}

impl Decided {
    /// True if tenants are learned anew from then on, and all stand as before.
    pub fn is_renewal(&self) -> bool {
        self.tenants.iter().any(|tenant| tenant.renewed)
    }
}

/// Requests by what served them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeasuredRequests {
    /// Reads that the cache served alone.
    pub read_hits: Took,
    /// Reads that needed the backing.
    pub read_misses: Took,
    /// Writes that the cache took alone.
    pub cached_writes: Took,
    /// Writes that went to the backing.
    pub backing_writes: Took,
    /// The same by their shapes, where writes to the SSD have a price.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shapes: Vec<TookShaped>,
}

/// Requests of one shape that were served in one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TookShaped {
    /// What served them: 0 for read hits, 1 for read misses, 2 for cached writes, 3 for writes to the backing.
    pub served: usize,
    /// Twice the power of two of their blocks, rounded up, and one more where they went on where another one ended that was served likewise (`Kind::shape_served`).
    pub shape: usize,
    /// What they took.
    #[serde(flatten)]
    pub took: Took,
}

/// Some requests, and the seconds that they took together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Took {
    /// How many.
    pub requests: u64,
    /// Seconds, added up.
    pub seconds: f64,
}

impl MeasuredRequests {
    /// Of what the loop measured.
    pub fn of(measured: &Measured) -> Self {
        let took = |timed: Timed| Took { requests: timed.count, seconds: timed.seconds };
        Self {
            read_hits: took(measured.read_hits),
            read_misses: took(measured.read_misses),
            cached_writes: took(measured.cached_writes),
            backing_writes: took(measured.backing_writes),
            shapes: Vec::new(),
        }
    }

    /// The same where it is known by shapes, too.
    #[must_use]
    pub fn with_shapes(mut self, shaped: &Shaped) -> Self {
        for (served, shapes) in shaped.iter().enumerate() {
            for (shape, timed) in shapes.iter().enumerate().filter(|(_, timed)| timed.count > 0) {
                let took = Took { requests: timed.count, seconds: timed.seconds };
                self.shapes.push(TookShaped { served, shape, took });
            }
        }
        self
    }

    /// What was measured by shapes, where that is told.
    pub fn shaped(&self) -> Option<Box<Shaped>> {
        let mut shaped = Box::new(Shaped::default());
        for told in &self.shapes {
            // An account of another version may know others.
            if let Some(timed) = shaped.get_mut(told.served).and_then(|shapes| shapes.get_mut(told.shape)) {
                *timed = Timed { count: told.took.requests, seconds: told.took.seconds };
            }
        }
        (!self.shapes.is_empty()).then_some(shaped)
    }

    /// As the loop measures.
    pub fn measured(&self) -> Measured {
        let timed = |took: Took| Timed { count: took.requests, seconds: took.seconds };
        Measured {
            read_hits: timed(self.read_hits),
            read_misses: timed(self.read_misses),
            cached_writes: timed(self.cached_writes),
            backing_writes: timed(self.backing_writes),
            ..Measured::default()
        }
    }
}

/// All of it, as it is kept in a file (JSON).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// Version of the command that wrote it.
    pub version: String,
    /// The trace; a relative path is from the folder of the account.
    pub trace: String,
    /// How it began.
    pub setup: Setup,
    /// What was decided meanwhile, and when tenants were learned anew, in order.
    pub decisions: Vec<Decided>,
}

impl Account {
    /// Another decision, or more tenants of the last one.
    pub fn decided(&mut self, decided: Decided) {
        match self.decisions.last_mut().filter(|last| last.seconds == decided.seconds) {
            Some(last) => last.tenants.extend(decided.tenants),
            None => self.decisions.push(decided),
        }
    }

    /// As JSON.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        std::fs::write(path, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_by_shapes_is_told_and_read_again() {
        let mut shaped = Shaped::default();
        (shaped[1][4], shaped[3][15]) = (Timed { count: 3, seconds: 0.5 }, Timed { count: 1, seconds: 0.25 });
        let measured = Measured { read_misses: Timed { count: 4, seconds: 0.75 }, ..Measured::default() };
        let told = serde_json::to_string(&MeasuredRequests::of(&measured).with_shapes(&shaped));
        let read: MeasuredRequests = serde_json::from_str(&told.expect("JSON")).expect("what was told");
        assert_eq!((read.measured(), read.shaped().as_deref()), (measured, Some(&shaped)));
    }

    #[test]
    fn accounts_without_shapes_and_with_others_are_read() {
        let mut read = MeasuredRequests::of(&Measured::default());
        assert!(read.shaped().is_none() && !serde_json::to_string(&read).expect("JSON").contains("shapes"));
        let took = Took { requests: 1, seconds: 1.0 };
        read.shapes =
            vec![TookShaped { served: 9, shape: 0, took }, TookShaped { served: 0, shape: 99, took }];
        assert_eq!(read.shaped().as_deref(), Some(&Shaped::default()));
    }
}

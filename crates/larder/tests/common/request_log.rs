//! What a client asked of an export, and what was answered: the log of `nbdkit`'s log filter between the two.
//!
//! A request is logged before it is passed on, and its end before the client hears of it. So a flush that is logged after the end of a write
//! covers it.

use std::collections::HashMap;

/// What became of the blocks that were written. Blocks are those of a size that is told, and each is written at most once.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Blocks whose write was passed on.
    pub tried: Vec<u64>,
    /// Blocks whose write had ended, without error, when a flush began that ended without error.
    pub flushed: Vec<u64>,
    /// Flushes that ended without error.
    pub flushes: u64,
}

impl Written {
    /// Read a log; its last line may be cut short.
    pub fn from_log(text: &str, block: u64) -> Self {
        let mut reader = Reader { block, ..Reader::default() };
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            reader.line(line);
        }
        let Reader { tried, mut answered, covered, flushes, .. } = reader;
        answered.truncate(covered);
        Self { tried, flushed: answered, flushes }
    }
}

#[derive(Default)]
struct Reader {
    block: u64,
    /// Requests under way, by connection and number: a write's block, or how many writes a flush covers.
    writes: HashMap<String, u64>,
    flushing: HashMap<String, usize>,
    tried: Vec<u64>,
    answered: Vec<u64>,
    covered: usize,
    flushes: u64,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, _, connection, what, id, ..] = words[..] else { return };
        let (request, value) = (format!("{connection} {id}"), |name: &str| value(&words, name));
        match what {
            "Write" => {
                let offset = value("offset=0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
                let block = offset.unwrap_or_else(|| panic!("no offset: {line}")) / self.block;
                self.writes.insert(request, block);
                self.tried.push(block);
            }
            "Flush" => drop(self.flushing.insert(request, self.answered.len())),
            "...Write" if value("return=") == Some("0") => self.answered.push(self.writes[&request]),
            "...Flush" if value("return=") == Some("0") => {
                self.covered = self.covered.max(self.flushing[&request]);
                self.flushes += 1;
            }
            _ => {}
        }
    }
}

/// The word that begins so, without its beginning.
fn value<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(name))
}

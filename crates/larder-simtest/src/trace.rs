//! What has happened in a history, line by line, for people: only where somebody wants to read it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// The last lines of a history, or none at all.
#[derive(Clone, Debug, Default)]
pub struct Trace(Option<Rc<RefCell<Lines>>>);

#[derive(Debug)]
struct Lines {
    lines: VecDeque<String>,
    keep: usize,
}

impl Trace {
    /// Keep the last lines, so many.
    pub fn last(keep: usize) -> Self {
        Self(Some(Rc::new(RefCell::new(Lines { lines: VecDeque::new(), keep }))))
    }

    /// Another line, if anyone wants it.
    pub fn line(&self, line: impl FnOnce() -> String) {
        if let Some(kept) = &self.0 {
            let mut kept = kept.borrow_mut();
            if kept.lines.len() == kept.keep {
                kept.lines.pop_front();
            }
            kept.lines.push_back(line());
        }
    }

    /// The lines, in order.
    pub fn lines(&self) -> Vec<String> {
        self.0.as_ref().map_or_else(Vec::new, |kept| kept.borrow().lines.iter().cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        let trace = Trace::last(2);
        (0..5).for_each(|n| trace.clone().line(|| n.to_string()));
        assert_eq!(trace.lines(), ["3", "4"]);
        Trace::default().line(|| unreachable!("nobody wants it"));
    }
}

//! Algorithm 2 of the container thesis: what a container's cache does when it is given another size.

/// What is to be done about a cache that has another size now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resize {
    /// The blocks that it may hold from now on.
    pub size: u32,
    /// The blocks that leave now: so many from the head of its eviction list, to the list of free ones.
    pub evict: u32,
}

/// Algorithm 2 (section 3.3.3) for a cache that may hold `current` blocks, holds `occupied`, and is given `new`: one
/// that grows, or that has not filled its new size yet, evicts nothing.
///
/// In the listing the branch that evicts does not set the size; without that the cache would fill up again, so it is
/// set here.
pub fn resize(current: u32, occupied: u32, new: u32) -> Resize {
    let grows = new > current; // Line 2.
    let is_roomy = new > occupied; // Line 5.
    let evict = if grows || is_roomy { 0 } else { occupied - new }; // Lines 8 to 12.
    Resize { size: new, evict } // Lines 3 and 6.
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of the listing, on a container whose cache may hold 100 blocks, and on whatever it holds.
    #[test]
    fn algorithm_2_line_by_line() {
        // Line 2: 150 > 100. Line 3: the size is 150.
        assert_eq!(resize(100, 80, 150), Resize { size: 150, evict: 0 });
        // Line 2: 90 is not above 100. Line 5: 90 > 80. Line 6: the size is 90, and nothing has to leave.
        assert_eq!(resize(100, 80, 90), Resize { size: 90, evict: 0 });
        // Line 5: 81 > 80.
        assert_eq!(resize(100, 80, 81), Resize { size: 81, evict: 0 });
        // Line 5: 60 is not above 80. Line 8: 80 > 60, 79 > 60, ... 61 > 60: lines 9 to 11 twenty times.
        assert_eq!(resize(100, 80, 60), Resize { size: 60, evict: 20 });
        // Line 5: 80 is not above 80. Line 8: 80 is not above 80 either, and the loop ends at once.
        assert_eq!(resize(100, 80, 80), Resize { size: 80, evict: 0 });
        // Line 2: 100 is not above 100; line 5 does not hold in a full cache; line 8 finds nothing to do.
        assert_eq!(resize(100, 100, 100), Resize { size: 100, evict: 0 });
        // Line 5: 0 is not above 0.
        assert_eq!(resize(100, 0, 0), Resize { size: 0, evict: 0 });
        assert_eq!(resize(100, 100, 0), Resize { size: 0, evict: 100 });
        // A cache that still holds more than it may grows: line 3 alone. One that stays evicts what is too much.
        assert_eq!(resize(100, 130, 110), Resize { size: 110, evict: 0 });
        assert_eq!(resize(100, 130, 100), Resize { size: 100, evict: 30 });
    }
}

//! The stack against a list of its places.

use proptest::prelude::*;

use super::*;

/// The places from the top: a block, or none in a hole.
#[derive(Clone, Default)]
struct Plain {
    places: Vec<Option<BlockId>>,
}

impl Plain {
    fn depth(&self, block: BlockId) -> u32 {
        self.places.iter().position(|&place| place == Some(block)).map_or(NEVER, |at| at as u32 + 1)
    }

    fn access(&mut self, block: BlockId) -> u32 {
        let depth = self.depth(block);
        let hole = self.places.iter().position(Option::is_none);
        match (self.places.iter().position(|&place| place == Some(block)), hole) {
            (Some(at), Some(hole)) if hole < at => {
                self.places[at] = None;
                self.places.remove(hole);
            }
            (Some(at), _) => drop(self.places.remove(at)),
            (None, Some(hole)) => drop(self.places.remove(hole)),
            (None, None) => {}
        }
        self.places.insert(0, Some(block));
        depth
    }

    fn remove(&mut self, block: BlockId) -> u32 {
        self.places.iter_mut().filter(|place| **place == Some(block)).for_each(|place| *place = None);
        0
    }

    fn blocks(&self) -> Vec<BlockId> {
        self.places.iter().copied().flatten().collect()
    }
}

fn check(stack: &Stack, plain: &Plain, blocks: u32) {
    for block in 0..blocks {
        assert_eq!(stack.depth(block), plain.depth(block), "block {block}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn depths_are_those_of_a_list(steps in prop::collection::vec((0..5u8, 0u32..40), 0..3000), divisor in 1u32..4) {
        let (mut stack, mut plain) = (Stack::new(), Plain::default());
        for &(what, block) in &steps {
            let depth = plain.depth(block);
            match what {
                0 => prop_assert_eq!((stack.remove(block), plain.remove(block)), (depth, 0)),
                _ => prop_assert_eq!((stack.access(block), plain.access(block)), (depth, depth)),
            }
        }
        check(&stack, &plain, 40);
        let renumbered: Vec<_> = (0..40).map(|old| if old % divisor == 0 { old / divisor } else { NEVER }).collect();
        stack.retain(&renumbered);
        let mut order: Vec<_> = (0..40).filter(|&block| stack.depth(block) != NEVER).collect();
        order.sort_unstable_by_key(|&block| stack.depth(block));
        let stayed: Vec<_> = plain.blocks().iter().filter(|&block| block % divisor == 0).map(|block| block / divisor).collect();
        prop_assert_eq!(order, stayed);
        // Of the holes, the same share.
        let holes = (plain.places.len() - plain.blocks().len()) * renumbered.iter().filter(|&&now| now != NEVER).count() / 40;
        let after = stack.slots.iter().filter(|&&slot| slot != NEVER).count();
        prop_assert_eq!(stack.timeline().live() as usize, after + holes);
    }

    #[test]
    fn a_stack_that_forgets_nothing_stays_as_it_is(
        steps in prop::collection::vec((0..5u8, 0u32..20), 0..200), later in prop::collection::vec((0..5u8, 0u32..20), 0..100),
    ) {
        let (mut stack, mut plain) = (Stack::new(), Plain::default());
        for (at, &(what, block)) in steps.iter().chain(&later).enumerate() {
            if at == steps.len() {
                stack.retain(&(0..20).collect::<Vec<_>>());
            }
            let _ = if what == 0 { (stack.remove(block), plain.remove(block)) } else { (stack.access(block), plain.access(block)) };
            check(&stack, &plain, 20);
        }
    }
}

//! The cache is given up: that is written down before a guest's write goes past it, or is answered.
//!
//! From then on no mark on the device says which of its clean blocks are stale, and it may be there again at the next start. Somebody looks after it soon
//! (`larder_daemon`'s keeper), but the process may be killed before.

use larder_engine::{Engine, SessionMark};

/// Makes it durable, elsewhere, that no clean block of this session may be trusted any more. It is waited for.
pub(crate) type Tell = Box<dyn FnMut(SessionMark) + Send>;

/// Whether it was, and who is to be told.
#[derive(Default)]
pub(crate) struct GivenUp {
    is: bool,
    pub tell: Option<Tell>,
}

impl GivenUp {
    /// Look before what the engine wants is carried out. A cache that is not kept is not used again after a start.
    #[inline]
    pub fn look(&mut self, engine: &Engine) {
        if engine.cache_failed() != self.is {
            self.changed(engine);
        }
    }

    #[cold]
    fn changed(&mut self, engine: &Engine) {
        self.is = engine.cache_failed();
        if let (true, Some(mark), Some(tell)) = (self.is, engine.session(), &mut self.tell) {
            tell(mark);
        }
    }
}

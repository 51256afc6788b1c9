//! Panics as values: in a simulation a panic says what was broken.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static TOLD: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Run this; what it says where it panics is the error, and is not printed.
pub(crate) fn caught<R>(run: impl FnOnce() -> R) -> Result<R, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| if CATCHING.get() { tell(info) } else { others(info) }));
    });
    CATCHING.set(true);
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    CATCHING.set(false);
    result.map_err(|_| TOLD.take())
}

fn tell(info: &PanicHookInfo<'_>) {
    let place = info.location().map(|place| format!(" ({}:{})", place.file(), place.line()));
    let words = info.payload_as_str().unwrap_or("a panic");
    TOLD.set(format!("{words}{}", place.unwrap_or_default()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_with_its_place() {
        assert_eq!(caught(|| 5), Ok(5));
        let told = caught(|| panic!("{} is wrong", 7)).unwrap_err();
        assert!(told.starts_with("7 is wrong (") && told.contains("caught.rs:"), "{told}");
    }
}

//! `larder cache` on stopped caches, sound, dirty and damaged ones.

mod check;
mod dump;
mod format;
#[path = "../../../larder-io/src/offline/tests/image.rs"]
mod image;
mod repair;
mod sample;
mod writeback;

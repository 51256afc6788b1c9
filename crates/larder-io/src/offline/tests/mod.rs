//! Saving dirty blocks under power cuts and errors; what is no cache, and what is a damaged one.

mod damage;
mod device;
mod files;
mod image;
mod ordered;
mod saving;
mod start;
mod world;

use crate::sim;

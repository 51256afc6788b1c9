//! Tests of the format as a whole: histories with crashes, every flipped bit, garbage, repair, and what it all costs.

mod arrivals;
mod cost;
mod disk;
mod drafts;
mod earlier;
mod flips;
mod history;
mod holes;
mod images;
mod model;
mod state;
mod tools;
mod writers;

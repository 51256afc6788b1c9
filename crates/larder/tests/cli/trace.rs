//! `larder trace`, from the outside: small traces with their whole output, and the real ones where they are at hand.

mod bench;
mod convert;
mod cut;
mod errors;
mod files;
mod head;
mod help;
mod info;
mod merge;
mod real;
mod split;

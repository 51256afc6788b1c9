//! Data that says where it belongs: each 8 bytes are a mix of seed, generation and position.

use std::fs;
use std::path::Path;

/// The bytes at `offset` of a volume with this seed, as written in this generation. `offset` and `len` are multiples of 8.
pub fn stamp(seed: u64, generation: u64, offset: u64, len: u64) -> Vec<u8> {
    let words = offset / 8..(offset + len) / 8;
    words.flat_map(|word| mix(seed << 56 ^ generation << 32 ^ word).to_le_bytes()).collect()
}

/// A file full of the stamps of generation 0.
pub fn write_file(path: &Path, seed: u64, bytes: u64) {
    fs::write(path, stamp(seed, 0, 0, bytes)).expect("a file of stamps");
}

/// The first byte where two buffers differ; their lengths must agree.
pub fn first_difference(left: &[u8], right: &[u8]) -> Option<usize> {
    assert_eq!(left.len(), right.len(), "lengths");
    if left == right { None } else { left.iter().zip(right).position(|(a, b)| a != b) }
}

/// A number from 0 to `limit` (not included) that `state` determines, and that changes it.
pub fn random(state: &mut u64, limit: u64) -> u64 {
    *state = state.wrapping_add(1);
    mix(*state) % limit
}

/// `splitmix64`'s finisher: every bit of the input changes about half of the output's.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

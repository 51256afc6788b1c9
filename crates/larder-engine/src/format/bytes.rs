//! Numbers in bytes, little endian: the one way in which the format writes them.

#[inline]
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

#[inline]
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

#[inline]
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

/// The `N` bytes from `at`, which lie within `bytes`: callers decode pieces of a fixed size, or have looked.
#[inline]
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("pieces have the size of what they hold")
}

#[inline]
pub(super) fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&value);
}

/// True where nothing was ever written.
pub(super) fn is_blank(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().all(|&word| u64::from_ne_bytes(word) == 0) && rest.iter().all(|&byte| byte == 0)
}

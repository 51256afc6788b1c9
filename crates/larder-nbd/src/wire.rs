//! Big-endian reading and writing, and the gathering of messages that arrive in pieces.

/// Reads fields from a message; `None` once it is too short.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn remaining(&self) -> usize {
        self.0.len()
    }
}

/// Collects a message of known length from chunks of any size. Holds no more than that length.
#[derive(Debug, Default)]
pub(crate) struct Gather(Vec<u8>);

impl Gather {
    /// Move bytes from the front of `input` until `need` are here. True once they are.
    pub(crate) fn fill(&mut self, input: &mut &[u8], need: usize) -> bool {
        let count = need.saturating_sub(self.0.len()).min(input.len());
        let (taken, rest) = input.split_at(count);
        self.0.extend_from_slice(taken);
        *input = rest;
        self.0.len() >= need
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Appends big-endian fields.
pub(crate) trait Put {
    fn put_u16(&mut self, value: u16);
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
}

impl Put for Vec<u8> {
    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_be_bytes());
    }
}

/// The longest prefix of `text` that is at most `bytes_max` long and ends between characters.
pub(crate) fn truncated(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gather_takes_no_more_than_it_needs() {
        let mut gather = Gather::default();
        let mut input = &b"ab"[..];
        assert!(!gather.fill(&mut input, 3));
        input = b"cd";
        assert!(gather.fill(&mut input, 3));
        assert_eq!((gather.bytes(), input), (&b"abc"[..], &b"d"[..]));
    }

    #[test]
    fn truncation_keeps_characters_whole() {
        assert_eq!(truncated("aé", 2), "a");
        assert_eq!(truncated("aé", 3), "aé");
    }

    #[test]
    fn a_short_message_is_none() {
        let mut reader = Reader::new(&[0, 1, 2]);
        assert_eq!(reader.u16(), Some(1));
        assert_eq!(reader.u32(), None);
        assert_eq!(reader.bytes(2), None);
        assert_eq!(reader.bytes(reader.remaining()), Some(&[2][..]));
    }
}

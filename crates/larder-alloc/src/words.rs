//! Numbers as people read them.

/// Decimal digits in groups of three: `1,234,567`.
pub(crate) fn grouped(number: impl Into<u64>) -> String {
    let digits = number.into().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        let numbers = [0u64, 7, 999, 1000, 65_536, 1_234_567, u64::MAX];
        let expected = ["0", "7", "999", "1,000", "65,536", "1,234,567", "18,446,744,073,709,551,615"];
        assert_eq!(numbers.map(grouped), expected);
    }
}

//! Shares and gains as the paper gives them: in per cent, with one digit after the point.

/// `94.5 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", digits(share))
}

/// `94.5`, for a column whose heading has the sign.
pub fn digits(share: f64) -> String {
    match format!("{:.1}", share * 100.0) {
        zero if zero == "-0.0" => "0.0".into(),
        digits => digits,
    }
}

/// `+277.3`, `-0.4`, `0.0`, for a column whose heading has the sign; `-` for none.
pub fn signed(gain: Option<f64>) -> String {
    let Some(gain) = gain else { return "-".into() };
    match digits(gain) {
        digits if digits == "0.0" || digits.starts_with('-') => digits,
        digits => format!("+{digits}"),
    }
}

/// A share that is chosen, not measured: `5 %`, `0.5 %`, `0.0012 %`.
pub fn short(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = if percent >= 0.995 { 1 } else { 4 };
    let text = format!("{percent:.decimals$}");
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_digit_after_the_point() {
        assert_eq!([0.945, 1.0, -0.00001, -0.031].map(percent), ["94.5 %", "100.0 %", "0.0 %", "-3.1 %"]);
        let gains = [None, Some(2.773), Some(-0.004), Some(0.0001), Some(-0.0001)].map(signed);
        assert_eq!(gains, ["-", "+277.3", "-0.4", "0.0", "0.0"]);
        assert_eq!(
            [0.05, 0.0999987, 0.005, 0.000012, 0.5].map(short),
            ["5 %", "10 %", "0.5 %", "0.0012 %", "50 %"]
        );
    }
}

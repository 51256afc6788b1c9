//! A pause that is most of a run: where a time in a trace is wrong, whoever reads what is reckoned by the second should know.

use std::time::Duration;

use larder_daemon::units::HumanDuration;
use larder_sim::tenants::Pause;

/// A pause is told if it is so many times as long as the rest of the run.
const MOST: f64 = 10.0;

/// Shorter ones are none: seconds.
const LEAST: f64 = 60.0;

/// What to say of the longest pause of a run of so many seconds, if anything.
pub fn told(longest: Option<Pause>, run_seconds: f64) -> Option<String> {
    let Pause { from_seconds, seconds } = longest?;
    if seconds < LEAST || seconds < MOST * (run_seconds - seconds) {
        return None;
    }
    let words = |seconds: f64| {
        let whole = Duration::try_from_secs_f64(seconds.round()).unwrap_or(Duration::MAX);
        HumanDuration(whole).to_string()
    };
    let (from, length) = (words(from_seconds), words(seconds));
    Some(format!(
        "No request comes for {length}, from {from} after the start on: all that is told by the second or the day reckons with that. If a time in a trace is wrong \
         (`larder trace info` tells the longest pause), cut it there with `larder trace cut --to`."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_that_is_most_of_a_run_is_told() {
        let pause = |seconds| Some(Pause { from_seconds: 810.2, seconds });
        assert_eq!(
            [told(None, 1e9), told(pause(8000.0), 8900.0), told(pause(59.0), 59.0)],
            [None, None, None]
        );
        let text = told(pause(86_400.0 * 14_662.0), 86_400.0 * 14_662.0 + 900.0).expect("most of it");
        assert!(
            text.starts_with("No request comes for 14662d 0h, from 13m 30s after the start on: "),
            "{text}"
        );
        assert!(told(pause(1e300), 1e300).is_some());
    }
}

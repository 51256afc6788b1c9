//! What texts mean, and what is said of those that mean nothing.

use super::*;
use proptest::prelude::*;

fn spec(text: &str) -> GeneratorSpec {
    text.parse().unwrap()
}

fn message(text: &str) -> String {
    text.parse::<GeneratorSpec>().unwrap_err().to_string()
}

#[test]
fn a_spec_is_what_the_library_generates() {
    let workload = Workload {
        pattern: Pattern::Zipf { theta: 1.0 },
        requests: 1000,
        first_byte: 10 * 8192,
        bytes: 500 * 8192,
        request_bytes: 8192,
        read_share: 0.7,
        interval_ns: 5000,
    };
    let text =
        "zipf: theta=1.0, blocks=500, requests=1_000, read=0.7, block=8KiB, first=10, interval=5us, seed=3";
    let spec = spec(text);
    assert!(spec.open().eq(Generator::new(&[workload], 0, 3).unwrap()));
    assert_eq!((spec.requests(), spec.to_string().as_str()), (1000, text));
    assert_eq!(spec.volumes(), [Volume::new("gen", 0)]);
}

#[test]
fn a_mix_is_what_the_library_generates() {
    let workload = MixWorkload {
        shares: ClassShares { cr: 0.1, cw: 0.15, rar: 0.25, raw: 0.25, war: 0.15, waw: 0.1 },
        footprint_blocks: 250,
        requests: 1000,
        read_share: None,
        distances: crate::Distances::Uniform { low: 1, high: 50 },
        block_bytes: 4096,
        first_byte: 0,
        interval_ns: 1_000_000,
    };
    let shares = "cr=0.1,cw=0.15,rar=0.25,raw=0.25,war=0.15,waw=0.1";
    for footprint in ["", "footprint=250,read=0.6,"] {
        let text = format!("mix:{shares},{footprint}requests=1000,distance=uniform(1,50),seed=9");
        assert!(spec(&text).open().eq(ClassMix::new(&workload, 0, 9).unwrap()));
    }
}

#[test]
fn phases_follow_each_other_in_time_with_seeds_of_their_own() {
    let spec = spec(
        "uniform:blocks=1000,requests=20 + uniform:blocks=1000,requests=0 \
         + uniform:blocks=1000,requests=20,interval=2ms + mix:cr=1,requests=5,distance=fixed(0),first=7",
    );
    let requests: Vec<_> = spec.open().collect();
    assert_eq!((spec.requests(), requests.len()), (45, 45));
    let times: Vec<_> = requests.iter().map(|request| request.time_ns / 1_000_000).collect();
    let expected = (0..20).chain((20..60).step_by(2)).chain(60..65);
    assert!(times.iter().copied().eq(expected), "{times:?}");
    assert!(!requests[..20].iter().zip(&requests[20..40]).all(|(a, b)| a.offset == b.offset));
    let last: Vec<_> = requests[40..].iter().map(|request| request.offset / 4096).collect();
    assert_eq!(last, [7, 8, 9, 10, 11]);
}

#[test]
fn a_loop_takes_all_blocks_or_its_length() {
    let offsets = |text| spec(text).open().map(|request| request.offset / 4096).collect::<Vec<_>>();
    assert_eq!(offsets("loop:blocks=3,requests=5"), [0, 1, 2, 0, 1]);
    assert_eq!(offsets("loop:blocks=3,length=2,requests=5"), [0, 1, 0, 1, 0]);
}

#[test]
fn errors_name_the_phase_and_what_stood_there() {
    for (text, expected) in [
        (
            "",
            r#"phase 1: "" is no pattern; there are zipf, ycsb, uniform, gaussian, sequential, loop and mix"#,
        ),
        ("uniform:blocks=1,requests=1+zip:blocks=1", r#"phase 2: "zip" is no pattern"#),
        ("uniform:blocks=1", "phase 1: requests is missing"),
        ("uniform:requests=1", "phase 1: blocks is missing"),
        ("zipf:blocks=1,requests=1", "phase 1: theta is missing"),
        ("mix:cr=1,requests=1", "phase 1: distance is missing"),
        (
            "uniform:blocks=1,requests=1,skew=1",
            r#"there is no key "skew" here; there are blocks, block, requests,"#,
        ),
        ("uniform:blocks", r#""blocks" is not of the form key=value"#),
        ("uniform:blocks=1,blocks=2", "blocks is given twice"),
        ("uniform:blocks=-1,requests=1", r#"blocks is "-1", expected a whole number"#),
        ("uniform:blocks=1,requests=1,block=4k", r#"block is "4k", expected a size such as 4096 or 64KiB"#),
        ("uniform:blocks=1,requests=1,interval=1h", r#"interval is "1h", expected a time"#),
        (
            "mix:cr=1,requests=1,distance=gamma(1)",
            r#"distance is "gamma(1)", expected fixed(distance), uniform"#,
        ),
        ("zipf:theta=-1,blocks=1,requests=1", "phase 1: a Zipf pattern takes a theta above 0"),
        (
            "mix:cr=0.5,requests=1,distance=fixed(1)",
            "phase 1: the shares of the six classes add up to 0.5, not to 1",
        ),
        ("uniform:blocks=18446744073709551615,requests=1", "pass the end of any volume"),
        ("uniform:blocks=1,requests=1,first=18446744073709551615", "pass the end of any volume"),
    ] {
        let message = message(text);
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn requests_beyond_counting_are_no_trouble() {
    let spec =
        spec("uniform:blocks=1,requests=18446744073709551615,interval=18446744073s+loop:blocks=1,requests=1");
    assert_eq!(spec.requests(), u64::MAX);
    assert_eq!(spec.open().take(3).last().unwrap().time_ns, u64::MAX);
}

/// Each is refused, or gives its first requests at once: nothing is prepared in proportion to a number.
#[test]
fn absurd_numbers_take_no_time_and_no_memory() {
    let numbers = [0, 1, 1 << 26, 1 << 30, (1 << 32) - 1, 1 << 32, 1 << 53, 1 << 63, u64::MAX];
    let patterns =
        ["zipf:theta=1,", "ycsb:theta=0.99,", "zipf:theta=1e-300,", "uniform:", "loop:", "sequential:"];
    let mixes = ["fixed(18446744073709551615)", "exponential(1e308)", "lognormal(1e308,1e308)"];
    for requests in numbers {
        for blocks in numbers {
            let phases =
                patterns.map(|pattern| format!("{pattern}blocks={blocks},requests={requests},block=1B"));
            let mix =
                |law| format!("mix:cw=0.5,waw=0.5,footprint={blocks},requests={requests},distance={law}");
            for text in phases.into_iter().chain(mixes.map(mix)) {
                if let Ok(spec) = text.parse::<GeneratorSpec>() {
                    assert!(spec.open().take(3).count() as u64 <= requests, "{text}");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC{0,80}") {
        let _ = text.parse::<GeneratorSpec>();
    }

    #[test]
    fn any_fields_make_a_workload_or_an_error(
        text in "(loop:|uniform:|sequential:|gaussian:centre=0.5,deviation=0.[0-9],)\
                 blocks=[0-9]{1,2},requests=[0-9]{1,2}\
                 (,(raw|distance|seed|first|read|interval|block|length)=[0-9.(),:+-]{0,4}){0,2}",
    ) {
        if let Ok(spec) = text.parse::<GeneratorSpec>() {
            prop_assert_eq!(spec.open().count() as u64, spec.requests());
        }
    }
}

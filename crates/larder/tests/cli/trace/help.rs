//! What `larder trace` tells of itself.

use super::bench::Bench;

#[test]
fn every_command_has_help_and_an_example() {
    let bench = Bench::new();
    let (help, _) = bench.good("--help");
    for word in ["gen:zipf:", "--format", "gzip, zstd, xz, bzip2"] {
        assert!(help.contains(word), "{word}: {help}");
    }
    for (command, words) in [
        ("info", &["--format", "--block", "--json"][..]),
        ("convert", &["--format", "--to", "--force", "--strict", ".oracleGeneral"]),
        ("head", &["--format", "--requests", "--json"]),
        ("split", &["--by", "--every", "--out-dir", "--to", "--compress", "--force", "--strict"]),
        ("merge", &["--out", "--align", "--to", "--force", "--strict"]),
        ("cut", &["--from", "--to", "--requests", "--volume", "--tenant", "--range", "--out-format"]),
    ] {
        assert!(help.contains(&format!("\n  {command} ")), "{command}: {help}");
        let (text, _) = bench.good(&format!("{command} --help"));
        assert!(text.contains(&format!("Examples:\n  larder trace {command} ")), "{text}");
        for word in words {
            assert!(text.contains(word), "{command}: {word}: {text}");
        }
    }
}

/// The formats that the help names are those that there are.
#[test]
fn the_help_names_every_format() {
    let (help, _) = Bench::new().good("--help");
    for format in larder_trace::Format::ALL {
        let is_word = |word: &str| word.trim_end_matches(',') == format.as_str();
        assert!(help.split_whitespace().any(is_word), "{format}: {help}");
    }
}

//! Names of files after names in a trace, which may hold anything.

use std::collections::HashSet;

/// Longest name that is kept whole, in bytes: there has to be room for an end.
const BYTES_MAX: usize = 180;

/// The names given so far: no two are the same, on file systems that ignore case either.
#[derive(Debug, Default)]
pub struct Names {
    used: HashSet<String>,
}

impl Names {
    /// A name like `name` that any file system takes.
    pub fn file_name(&mut self, name: &str) -> String {
        let safe = safe(name);
        let numbered = (2u64..).map(|number| format!("{safe}-{number}"));
        let mut free = std::iter::once(safe.clone())
            .chain(numbered)
            .filter(|name| !self.used.contains(&name.to_ascii_lowercase()));
        // There is always a number that no name has.
        let free = free.next().unwrap_or_default();
        self.used.insert(free.to_ascii_lowercase());
        free
    }
}

/// Letters and digits of ASCII, and what else harms nowhere; no dot at the beginning.
fn safe(name: &str) -> String {
    let letter = |(at, letter): (usize, char)| match letter {
        '.' if at > 0 => '.',
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => letter,
        '-' if at > 0 => '-',
        _ => '_',
    };
    let safe: String = name.chars().take(BYTES_MAX).enumerate().map(letter).collect();
    if safe.is_empty() { "unnamed".to_owned() } else { safe }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_stay_readable() {
        let mut names = Names::default();
        let given = ["web_1", "8,0", "../etc/passwd", "", "WEB_1", "-rf", "8:0", ".x", "a.b-c", "é"];
        let expected =
            ["web_1", "8_0", "_._etc_passwd", "unnamed", "WEB_1-2", "_rf", "8_0-2", "_x", "a.b-c", "_"];
        assert_eq!(given.map(|name| names.file_name(name)), expected);
    }

    proptest! {
        #[test]
        fn every_name_is_safe_and_its_own(given in prop::collection::vec("\\PC{0,300}|[aA-]{0,3}", 1..40)) {
            let mut names = Names::default();
            let files: Vec<_> = given.iter().map(|name| names.file_name(name)).collect();
            for file in &files {
                prop_assert!(!file.is_empty() && file.len() <= 200 && !file.starts_with(['.', '-']), "{}", file);
                prop_assert!(file.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)), "{}", file);
            }
            let distinct: HashSet<_> = files.iter().map(|file| file.to_ascii_lowercase()).collect();
            prop_assert_eq!(distinct.len(), files.len());
        }
    }
}

//! Manual pages and completions: one page for every command, without a complaint of man or mandoc; completions that bash takes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::LIMIT;
use crate::common::daemon::larder;
use crate::common::process::{program, run, run_within};

/// The pages that there should be for a command and all below it, by the help texts.
fn expected(words: &[String], folder: &Path, into: &mut BTreeSet<String>) {
    let mut command = larder();
    command.args(&words[1..]).arg("--help");
    let help = run(&mut command, folder);
    into.insert(format!("{}.1", words.join("-")));
    let listed = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let listed = listed.split("\n\n").next().unwrap_or_default();
    // Texts that go over several lines are indented further.
    let names =
        listed.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    for name in names.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help") {
        expected(&[words, &[name.to_owned()]].concat(), folder, into);
    }
}

#[test]
fn every_command_has_a_page_that_is_clean() {
    let folder = tempfile::tempdir().expect("a folder");
    run(larder().args(["generate", "--date", "2026-01-02"]).arg(folder.path()), folder.path());
    let mut pages = BTreeSet::new();
    expected(&["larder".to_owned()], folder.path(), &mut pages);
    assert!(pages.len() > 30, "{pages:?}");
    let man = folder.path().join("man");
    let names = fs::read_dir(&man).expect("pages").map(|entry| entry.expect("a page").file_name());
    let found: BTreeSet<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    assert_eq!(found, pages);

    for page in &pages {
        let path = man.join(page);
        let lint = run_within(
            LIMIT,
            program("mandoc").args(["-T", "lint", "-W", "warning"]).arg(&path),
            folder.path(),
        );
        assert_eq!(lint.stdout, "", "{page}");
        let mut shown = program("man");
        shown.env("MANWIDTH", "120").env("LC_ALL", "C.UTF-8").args(["--warnings", "-l"]).arg(&path);
        let shown = run_within(LIMIT, &mut shown, folder.path());
        assert!(shown.status.success() && shown.stderr.is_empty(), "{page}: {}", shown.stderr);
        assert!(shown.stdout.contains("SYNOPSIS"), "{page}: {}", shown.stdout);
    }
}

#[test]
fn bash_completes_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    run(larder().args(["generate", "--date", "2026-01-02"]).arg(folder.path()), folder.path());
    let completions = folder.path().join("completions");
    assert!(completions.join("_larder").is_file() && completions.join("larder.fish").is_file());
    let script = format!(
        ". {}; COMP_WORDS=(larder sta); COMP_CWORD=1; _larder larder sta larder; echo \"${{COMPREPLY[*]}}\"",
        completions.join("larder.bash").display()
    );
    let said = run(program("bash").args(["-c", &script]), folder.path());
    assert_eq!(said.trim(), "status");
}

#[test]
fn a_folder_that_cannot_be_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("a file");
    let mut command: Command = larder();
    let outcome = run_within(
        LIMIT,
        command.args(["generate", "--date", "2026-01-02"]).arg(file.join("x")),
        folder.path(),
    );
    assert_eq!(outcome.status.code(), Some(1));
    assert!(outcome.stderr.contains("file/x/man cannot be written"), "{}", outcome.stderr);
}

//! `larder generate`: manual pages and completions of shells, from the same definitions as the command line.

use std::fs;
use std::io;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::cli::{Cli, Generate};
use crate::output::cannot_write;
use crate::problem::Problem;

/// Shells that get completions.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Write all of them.
pub fn generate(options: &Generate) -> Result<(), Problem> {
    let (pages, completions) = (options.folder.join("man"), options.folder.join("completions"));
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error: io::Error| cannot_write(&path, &error)
    };
    for folder in [&pages, &completions] {
        fs::create_dir_all(folder).map_err(failed(folder))?;
    }
    let mut whole = Cli::command().disable_help_subcommand(true);
    whole.build();
    write_pages(&whole, &options.date, &pages).map_err(failed(&pages))?;
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut Cli::command(), "larder", &completions)
            .map_err(failed(&completions))?;
    }
    Ok(())
}

/// A page for a command, and for each command below it.
fn write_pages(command: &Command, date: &str, folder: &Path) -> io::Result<()> {
    let shown = command.get_subcommands().filter(|below| !below.is_hide_set());
    shown.into_iter().try_for_each(|below| write_pages(below, date, folder))?;
    let source = concat!("larder ", env!("CARGO_PKG_VERSION"));
    let page = Man::new(command.clone()).manual("Larder").source(source).date(date);
    let mut text = Vec::new();
    page.render(&mut text)?;
    // The line breaks around an empty line say nothing, and mandoc says so.
    let text = String::from_utf8_lossy(&text).replace(".br\n\n.br\n", ".sp\n");
    fs::write(folder.join(page.get_filename()), text)
}

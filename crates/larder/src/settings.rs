//! `larder set` and `larder config diff`: change a running daemon, and see what was changed.

use larder_daemon::control::Request;
use larder_daemon::server::Set;
use larder_daemon::settings::Changed;

use crate::cli;
use crate::output::tell;
use crate::problem::Problem;
use crate::status;

/// `larder set KEY=VALUE…`.
pub fn set(options: &cli::Set) -> Result<(), Problem> {
    let is_pair = |text: &&String| {
        text.split_once('=').is_some_and(|(key, _)| !key.is_empty()) && !text.contains(char::is_whitespace)
    };
    if let Some(other) = options.pairs.iter().find(|pair| !is_pair(pair)) {
        let help = "write KEY=VALUE, such as allocator=centaur or latency=2ms";
        return Err(Problem::new(format_args!("\"{other}\" is no setting"), help));
    }
    let socket = status::socket(&options.daemon)?;
    let line = Request::set_line(options.tenant.as_deref(), &options.pairs);
    let set: Set = status::obeyed(&socket, &line)?;
    tell_all(&set)
}

/// `larder config diff`.
pub fn diff(options: &cli::ConfigDiff) -> Result<(), Problem> {
    let socket = status::socket(&options.daemon)?;
    let set: Set = status::obeyed(&socket, "differences")?;
    if options.json {
        return tell(format_args!("{:#}", serde_json::json!(set)));
    }
    tell_all(&set)
}

fn tell_all(set: &Set) -> Result<(), Problem> {
    if set.changed.is_empty() {
        return tell("everything is as larder.toml says");
    }
    for Changed { tenant, key, file, now } in &set.changed {
        let whose = tenant.as_ref().map_or("[control]".into(), |name| format!("tenant {name}"));
        tell(format_args!("{whose}: {key} = {now} (larder.toml: {file})"))?;
    }
    Ok(())
}

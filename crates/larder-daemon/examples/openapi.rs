//! Writes the description of the HTTP API: `cargo run -p larder-daemon --example openapi > docs/openapi.json`.

fn main() -> Result<(), serde_json::Error> {
    println!("{}", larder_daemon::api::document().to_pretty_json()?);
    Ok(())
}

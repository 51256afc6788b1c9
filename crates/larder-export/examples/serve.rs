//! The smallest whole server: volumes `v0`, `v1`, … behind one cache file, offered on one Unix socket until standard input ends.
//!
//! `cargo run --release -p larder-export --example serve -- CACHE CACHE_MIB REACTORS SOCKET BACKING...`

use larder_engine::{TenantId, WritePolicy};
use larder_export::nbd::{Export, ExportTable, NbdFrontend};
use larder_export::vhost::VhostFrontend;
use larder_export::{Exports, ListenAddress, Listener, bind};
use larder_io::{Backing, CachePlan, CacheSpec, ReactorBuilder, ReactorConfig, SharedPool, mailbox};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [cache, mib, reactors, socket, backings @ ..] = &arguments[..] else {
        return Err("usage: serve CACHE CACHE_MIB REACTORS SOCKET BACKING...".into());
    };
    let spec = CacheSpec { path: PathBuf::from(cache), size: mib.parse::<u64>()? << 20, block_bytes: 4096 };
    let cache = CachePlan::check(spec)?.format()?;
    let pool = SharedPool::new(cache.blocks());
    let quota = cache.blocks() / u32::try_from(backings.len())?.max(1);

    let mut builders = Vec::new();
    for index in 0..reactors.parse()? {
        let config = ReactorConfig { name: format!("reactor-{index}"), ..ReactorConfig::default() };
        builders.push(ReactorBuilder::new(config, &cache, pool.clone())?);
    }
    let mut exports = Vec::new();
    for (index, backing) in backings.iter().enumerate() {
        let reactor = index % builders.len();
        exports.push(add_volume(&mut builders[reactor], reactor, index, backing, quota)?);
    }
    let listener = bind(&ListenAddress::Unix(PathBuf::from(socket)))?;
    run(builders, listener, ExportTable::new(exports))
}

/// A volume with a tenant of its own.
fn add_volume(
    builder: &mut ReactorBuilder,
    reactor: usize,
    index: usize,
    backing: &str,
    quota: u32,
) -> Result<Export, Box<dyn Error>> {
    let tenant: TenantId = builder.add_tenant(quota, WritePolicy::WriteThrough)?;
    let volume = builder.add_volume(tenant, Backing::open(backing)?)?;
    let info = builder.volume(volume).ok_or("the volume was just added")?;
    let (name, description, identity) = (format!("v{index}"), backing.to_owned(), backing.to_owned());
    Ok(Export { name, description, identity, reactor, volume, info })
}

/// Start the reactors, the first one with the listener; stop them when standard input ends.
fn run(
    builders: Vec<ReactorBuilder>,
    listener: Listener,
    table: Arc<ExportTable>,
) -> Result<(), Box<dyn Error>> {
    let (handles, inboxes): (Vec<_>, Vec<_>) =
        builders.iter().map(|_| mailbox()).collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    let mut listeners = Some((listener, table));
    let mut threads = Vec::new();
    for (index, (builder, inbox)) in builders.into_iter().zip(inboxes).enumerate() {
        let nbd = NbdFrontend::new(index, handles.clone(), listeners.take().into_iter().collect());
        let frontend = Exports::new(nbd, VhostFrontend::new(handles[index].clone(), Vec::new()));
        threads.push(builder.spawn(frontend, inbox)?);
    }
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    for handle in &handles {
        handle.stop(Duration::from_secs(10))?;
    }
    for thread in threads {
        thread.join()?;
    }
    Ok(())
}

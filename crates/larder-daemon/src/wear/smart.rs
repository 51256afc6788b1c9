//! What a disk tells of its own wear, by `smartctl --json` (smartmontools).
//!
//! NVMe disks have a health log that all makers fill alike. SATA disks have a page of statistics (`devstat`) that newer ones fill alike, and attributes whose meaning is their maker's: of
//! these only those are taken whose name says the unit.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use utoipa::ToSchema;

/// How long a disk may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// An NVMe "data unit" is a thousand sectors of 512 bytes, whatever the sectors of the disk.
const DATA_UNIT_BYTES: u64 = 512_000;

/// A disk's own figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DiskWear {
    /// Its node.
    pub path: String,
    /// Its model.
    pub model: Option<String>,
    /// Its size in bytes.
    pub size_bytes: Option<u64>,
    /// How much of its endurance is used, by its own account: 0 when it is new, 1 when its maker promises nothing more; it may go on beyond.
    pub used_ratio: Option<f64>,
    /// Bytes that were written to it in its life, by anybody.
    pub written_bytes: Option<u64>,
    /// Seconds for which it was powered on.
    pub power_on_seconds: Option<u64>,
    /// Its own verdict on its health; false: it expects to fail.
    pub healthy: Option<bool>,
}

/// A disk did not tell.
#[derive(Debug, Error)]
pub enum SmartError {
    /// No smartmontools, most likely.
    #[error("smartctl cannot be run: {0} (apt install smartmontools)")]
    Run(#[source] io::Error),
    /// It took too long.
    #[error("smartctl did not answer for {}", .0.display())]
    Silent(PathBuf),
    /// It says why not.
    #[error("smartctl: {}: {why}", path.display())]
    Refused {
        /// The disk's node.
        path: PathBuf,
        /// In its words.
        why: String,
    },
    /// It says something else than JSON.
    #[error("smartctl's answer for {} is not understood: {source}", path.display())]
    Garbled {
        /// The disk's node.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// The disk has no such figures: a virtual one, or behind a controller.
    #[error("{} tells nothing of its wear", .0.display())]
    Nothing(PathBuf),
}

/// Ask a disk.
///
/// # Errors
/// When `smartctl` cannot be run or is refused, or the disk has nothing to tell.
pub fn ask(path: &Path) -> Result<DiskWear, SmartError> {
    understood(path, &run(path)?)
}

/// What `smartctl` prints.
fn run(path: &Path) -> Result<String, SmartError> {
    // Its exit code tells of the disk's health, and of the past: what it prints counts.
    let mut child = Command::new("smartctl")
        .args(["--json=c", "--info", "--health", "--attributes", "--log=devstat"])
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(SmartError::Run)?;
    let mut stdout = child.stdout.take().ok_or_else(|| SmartError::Silent(path.to_owned()))?;
    let (told, text) = channel();
    let read = move || {
        let mut text = String::new();
        // Nobody may be waiting any more.
        let _ = told.send(stdout.read_to_string(&mut text).map(|_| text));
    };
    thread::Builder::new().name("smartctl".into()).spawn(read).map_err(SmartError::Run)?;
    let text = text.recv_timeout(PATIENCE);
    if text.is_err() {
        // One that hangs in the disk stays until that answers.
        let _ = child.kill();
        return Err(SmartError::Silent(path.to_owned()));
    }
    let _ = child.wait();
    text.map_err(|_| SmartError::Silent(path.to_owned()))?.map_err(SmartError::Run)
}

/// What a text of `smartctl` tells of the disk at `path`.
fn understood(path: &Path, text: &str) -> Result<DiskWear, SmartError> {
    let garbled = |source| SmartError::Garbled { path: path.to_owned(), source };
    let told: Value = serde_json::from_str(text).map_err(garbled)?;
    let sector = told["logical_block_size"].as_u64().unwrap_or(512);
    let hours = told["power_on_time"]["hours"].as_u64();
    let wear = DiskWear {
        path: path.display().to_string(),
        model: ["model_name", "scsi_model_name"].iter().find_map(|key| Some(told[*key].as_str()?.to_owned())),
        size_bytes: told["user_capacity"]["bytes"].as_u64(),
        used_ratio: used_percent(&told).map(|percent| percent as f64 / 100.0),
        written_bytes: written_bytes(&told, sector),
        power_on_seconds: hours.map(|hours| hours * 3600),
        healthy: told["smart_status"]["passed"].as_bool(),
    };
    if wear.used_ratio.is_some() || wear.written_bytes.is_some() {
        return Ok(wear);
    }
    // Bits 0 and 1: it could not even open the disk.
    let failed = told["smartctl"]["exit_status"].as_u64().unwrap_or(0) & 3 != 0;
    let why =
        told["smartctl"]["messages"].as_array().and_then(|messages| messages.first()?["string"].as_str());
    match why.filter(|_| failed) {
        Some(why) => Err(SmartError::Refused { path: path.to_owned(), why: why.to_owned() }),
        None => Err(SmartError::Nothing(path.to_owned())),
    }
}

fn used_percent(told: &Value) -> Option<u64> {
    let nvme = told["nvme_smart_health_information_log"]["percentage_used"].as_u64();
    let scsi = told["scsi_percentage_used_endurance_indicator"].as_u64();
    // Newer versions of smartctl work it out themselves for those that they know.
    let general = told["endurance_used"]["current_percent"].as_u64();
    nvme.or(scsi).or_else(|| statistic(told, "Percentage Used Endurance Indicator")).or(general)
}

fn written_bytes(told: &Value, sector: u64) -> Option<u64> {
    let nvme = told["nvme_smart_health_information_log"]["data_units_written"].as_u64();
    let units = [
        ("Total_LBAs_Written", sector),
        ("Host_Writes_32MiB", 32 << 20),
        ("Host_Writes_GiB", 1 << 30),
        ("Total_Writes_GiB", 1 << 30),
        ("Lifetime_Writes_GiB", 1 << 30),
    ];
    let statistic = statistic(told, "Logical Sectors Written").map(|sectors| sectors.saturating_mul(sector));
    let attribute =
        || units.iter().find_map(|(name, unit)| Some(attribute(told, name)?.saturating_mul(*unit)));
    nvme.map(|units| units.saturating_mul(DATA_UNIT_BYTES)).or(statistic).or_else(attribute)
}

/// A value of the statistics of a SATA disk.
fn statistic(told: &Value, name: &str) -> Option<u64> {
    let pages = told["ata_device_statistics"]["pages"].as_array()?;
    let mut rows = pages.iter().filter_map(|page| page["table"].as_array()).flatten();
    let row = rows.find(|row| row["name"] == name && row["flags"]["valid"] != false)?;
    row["value"].as_u64()
}

/// The raw value of an attribute of a SATA disk.
fn attribute(told: &Value, name: &str) -> Option<u64> {
    let table = told["ata_smart_attributes"]["table"].as_array()?;
    table.iter().find(|row| row["name"] == name)?["raw"]["value"].as_u64()
}

#[cfg(test)]
mod tests;

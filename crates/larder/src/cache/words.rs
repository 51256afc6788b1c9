//! Counts of blocks, volumes and findings in words.

use larder_daemon::units::HumanSize;
use larder_engine::format::{BlockId, Finding, Severity, VolumeTable};

use crate::number::grouped;

/// `1 block`, `1,234 blocks`.
pub fn counted(count: u64, one: &str) -> String {
    format!("{} {one}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// `1.5 MiB (1,572,865 bytes)`, and `2 MiB` where that is exact.
pub fn size(bytes: u64) -> String {
    let human = HumanSize(bytes).to_string();
    match human.contains('.') {
        true => format!("{human} ({} bytes)", grouped(bytes)),
        false => human,
    }
}

/// `12 dirty blocks (48 KiB)`.
pub fn blocks(count: u64, kind: &str, block_bytes: u32) -> String {
    let size = HumanSize(count.saturating_mul(block_bytes.into()));
    format!("{} ({size})", counted(count, &format!("{kind}block")))
}

/// A volume by its name, where the volume table has it.
pub fn volume(volumes: &VolumeTable, id: u16) -> String {
    volumes.get(id).map_or_else(|| format!("volume {id}"), |volume| format!("volume {}", volume.name))
}

/// A block with its volume's name.
pub fn block(volumes: &VolumeTable, block: BlockId) -> String {
    format!("block {} of {}", block.block, volume(volumes, block.volume))
}

/// How bad a finding is, in one word: as in JSON.
pub fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Clean => "clean",
        Severity::Dirty => "dirty",
    }
}

/// What a severity means.
pub fn meaning(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "nothing is known to be lost",
        Severity::Clean => "clean blocks are lost; the backings have them",
        Severity::Dirty => "dirty data may be lost",
    }
}

/// How many findings there are, those that are not listed included.
pub fn count(findings: &[Finding]) -> u64 {
    let of = |finding: &Finding| if let Finding::More { count, .. } = finding { *count } else { 1 };
    findings.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_exact() {
        assert_eq!(size(600 << 20), "600 MiB");
        assert_eq!(size((600 << 20) + 512), "600.0 MiB (629,146,112 bytes)");
        assert_eq!(size(512), "512 B");
    }
}

//! Replies to options, encoded.

use super::options::{InfoRequest, Refusal};
use crate::consts::{
    EXPORT_NAME_ZEROES, FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, INIT_MAGIC, OPTION_MAGIC, OPTION_REPLY_MAGIC,
    STRING_BYTES_MAX, info, rep,
};
use crate::wire::{Put, truncated};
use crate::{ExportInfo, Exports};

/// Exports that an error names.
const NAMED_IN_ERROR_MAX: usize = 16;

/// What a server sends first.
pub(super) fn greeting(out: &mut Vec<u8>) {
    out.put_u64(INIT_MAGIC);
    out.put_u64(OPTION_MAGIC);
    out.put_u16(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES);
}

/// Replies to one option.
pub(super) struct Answer<'a> {
    option: u32,
    out: &'a mut Vec<u8>,
}

impl<'a> Answer<'a> {
    pub fn new(option: u32, out: &'a mut Vec<u8>) -> Self {
        Self { option, out }
    }

    pub fn ack(&mut self) {
        self.reply(rep::ACK, &[]);
    }

    pub fn refuse(&mut self, refusal: &Refusal) {
        self.reply(refusal.reply, &[truncated(&refusal.message, STRING_BYTES_MAX).as_bytes()]);
    }

    /// One export of a list.
    pub fn server(&mut self, name: &str) {
        let length = u32::try_from(name.len()).unwrap_or(u32::MAX);
        self.reply(rep::SERVER, &[&length.to_be_bytes(), name.as_bytes()]);
    }

    pub fn meta_context(&mut self, id: u32, name: &str) {
        self.reply(rep::META_CONTEXT, &[&id.to_be_bytes(), name.as_bytes()]);
    }

    /// Everything that `INFO` and `GO` tell of an export, except the closing acknowledgement.
    /// Block sizes are told in any case: a client that has not asked may ignore them.
    pub fn export(&mut self, request: &InfoRequest<'_>, name: &str, export: &ExportInfo, flags: u16) {
        self.info(info::EXPORT, &[&export.size.to_be_bytes(), &flags.to_be_bytes()]);
        if request.name {
            self.info(info::NAME, &[name.as_bytes()]);
        }
        if request.description {
            self.info(info::DESCRIPTION, &[truncated(&export.description, STRING_BYTES_MAX).as_bytes()]);
        }
        let block = export.block;
        self.info(
            info::BLOCK_SIZE,
            &[&block.min.to_be_bytes(), &block.preferred.to_be_bytes(), &block.max.to_be_bytes()],
        );
    }

    fn info(&mut self, kind: u16, fields: &[&[u8]]) {
        let kind = kind.to_be_bytes();
        let all: Vec<&[u8]> = std::iter::once(&kind[..]).chain(fields.iter().copied()).collect();
        self.reply(rep::INFO, &all);
    }

    fn reply(&mut self, kind: u32, fields: &[&[u8]]) {
        let length = fields.iter().map(|field| field.len()).sum::<usize>();
        self.out.put_u64(OPTION_REPLY_MAGIC);
        self.out.put_u32(self.option);
        self.out.put_u32(kind);
        self.out.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
        fields.iter().for_each(|field| self.out.extend_from_slice(field));
    }
}

/// The answer to `EXPORT_NAME`, which has no header.
pub(super) fn export_name(out: &mut Vec<u8>, size: u64, flags: u16, no_zeroes: bool) {
    out.put_u64(size);
    out.put_u16(flags);
    if !no_zeroes {
        out.extend_from_slice(&[0; EXPORT_NAME_ZEROES]);
    }
}

/// What a client that asked for the wrong export is told.
pub(super) fn unknown_export(name: &str, exports: &dyn Exports) -> Refusal {
    let count = exports.count();
    let mut message = format!("there is no export named {:?} here", truncated(name, 256));
    if count == 0 {
        message.push_str("; there is none at all");
    } else {
        let names: Vec<String> = (0..count.min(NAMED_IN_ERROR_MAX))
            .map(|index| format!("{:?}", truncated(exports.name(index), 64)))
            .collect();
        message.push_str(&format!("; there is {}", names.join(", ")));
    }
    if count > NAMED_IN_ERROR_MAX {
        message.push_str(&format!(" and {} more", count - NAMED_IN_ERROR_MAX));
    }
    Refusal::new(rep::ERR_UNKNOWN, message)
}

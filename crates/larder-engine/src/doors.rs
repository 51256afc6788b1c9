//! Which requests may write to the cache device, where such writes have their price.
//!
//! Who knows what may be written and what requests are worth tells for each tenant which share of which kind of its requests enters ([`Doors`]), and learns what was offered. What does not
//! enter is served like what the tenant's limit keeps out (`allowance.rs`): what is cached is read there, absent blocks stay absent, and what is written goes to the backing alone. Tenants that
//! movers fill have no doors: their blocks enter for what a mover knows of them. Nor have writes to ordered volumes, where one that passes by waits for all that is older.

use std::num::NonZeroU64;

use crate::{Engine, Request, RequestKind, TenantId, VolumeId};
use larder_policy::doors::{Doors, KINDS, Kind, Terms};

/// What a request is taken for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    pub kind: Kind,
    /// Nothing is written to the cache device for it.
    pub closed: bool,
    /// A write whose end doors are told of, with how long it took since this moment of their clock.
    pub began_ns: Option<NonZeroU64>,
    /// What was ahead of it then, in 64 KiB.
    pub ahead: u16,
}

/// Blocks that requests of a tenant brought, by the [`Kind::index`] of the requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedBlocks {
    /// Those that were written to the cache device, or would have been if the doors had been open.
    pub blocks: [u64; KINDS],
    /// Those of writes that were let in.
    pub taken: [u64; KINDS],
    /// Those of them that were cached before.
    pub resident: [u64; KINDS],
}

impl Default for OfferedBlocks {
    fn default() -> Self {
        Self { blocks: [0; KINDS], taken: [0; KINDS], resident: [0; KINDS] }
    }
}

/// The doors of all tenants, and what was offered.
#[derive(Debug)]
pub(crate) struct Offered {
    doors: Doors,
    /// By tenant; none of one that has asked for nothing.
    blocks: Vec<Option<Box<OfferedBlocks>>>,
}

impl Offered {
    pub(crate) fn memory_bytes(&self) -> usize {
        self.doors.memory_bytes() + self.blocks.iter().flatten().count() * size_of::<OfferedBlocks>()
    }

    fn of(&mut self, tenant: usize) -> &mut OfferedBlocks {
        if tenant >= self.blocks.len() {
            self.blocks.resize_with(tenant + 1, || None);
        }
        self.blocks[tenant].get_or_insert_default()
    }
}

/// What doors know a block by: neighbours follow each other.
#[inline]
fn key(volume: VolumeId, block: u64) -> u64 {
    u64::from(volume.0) << 48 | block
}

impl Engine {
    /// Have doors that remember accesses to so many blocks, all of them open at first, or none any more: then everything enters that a tenant's limit allows. Doors that there are stay.
    pub fn set_doors(&mut self, remembered: Option<u32>) {
        let new = |blocks| Box::new(Offered { doors: Doors::new(blocks), blocks: Vec::new() });
        match remembered {
            Some(blocks) => _ = self.offered.get_or_insert_with(|| new(blocks)),
            None => self.offered = None,
        }
    }

    /// True where there are doors.
    pub fn has_doors(&self) -> bool {
        self.offered.is_some()
    }

    /// Let a tenant's requests enter on these terms from now on. Without doors nothing changes.
    pub fn open_doors(&mut self, tenant: TenantId, terms: &Terms) {
        if let Some(offered) = &mut self.offered {
            offered.doors.open(tenant.0.into(), terms);
        }
    }

    /// It is so late, in nanoseconds since any moment: doors know by that how long writes wait, and partitions that lend how long nobody asked for what they hold. Who does not tell has such as do not.
    #[inline]
    pub fn set_clock(&mut self, now_ns: u64) {
        self.clock_ns = now_ns;
        if let Some(offered) = &mut self.offered {
            offered.doors.set_clock(now_ns);
        }
    }

    /// What requests of a tenant brought since there are doors. `None` of one that has asked for nothing.
    pub fn offered(&self, tenant: TenantId) -> Option<&OfferedBlocks> {
        self.offered.as_ref()?.blocks.get(usize::from(tenant.0))?.as_deref()
    }

    /// A request arrives: what it is taken for.
    #[inline]
    pub(crate) fn ask(&mut self, request: &Request) -> Asked {
        match self.offered {
            None => Asked::default(),
            Some(_) => self.ask_doors(request),
        }
    }

    /// A block will soon be asked for.
    #[inline]
    pub(crate) fn expect_at_doors(&self, volume: VolumeId, block: u64) {
        if let Some(offered) = &self.offered {
            offered.doors.expect(key(volume, block));
        }
    }

    fn ask_doors(&mut self, request: &Request) -> Asked {
        let &Request { volume, kind, offset, len, .. } = request;
        let write = match kind {
            RequestKind::Read => false,
            RequestKind::Write => true,
            _ => return Asked::default(),
        };
        if len == 0 || self.is_moved(volume) {
            return Asked::default();
        }
        let (tenant, blocks) = (self.tenant_of(volume), self.blocks_of(offset, offset + len));
        // A read or write is of less than 4 GiB.
        let count = (blocks.end - blocks.start) as usize;
        let first = key(volume, blocks.start);
        let Some(offered) = &mut self.offered else { return Asked::default() };
        let (kind, enters) = offered.doors.ask(tenant, write, (0..count).map(|at| first + at as u64));
        if write {
            offered.of(tenant).blocks[kind.index()] += count as u64;
        }
        let writes_back = write && self.writes_back(volume);
        let closed = !(enters || writes_back && self.is_ordered(volume));
        // Without a clock nothing is known of how long they take; where the backing takes all of them it does not matter.
        let began = self.offered.as_mut().filter(|_| writes_back).and_then(|offered| {
            let now_ns = NonZeroU64::new(offered.doors.now_ns())?;
            Some((now_ns, offered.doors.began(tenant, !closed, len)))
        });
        let (began_ns, ahead) = began.map_or((None, 0), |(now_ns, ahead)| (Some(now_ns), ahead));
        Asked { kind, closed, began_ns, ahead }
    }

    /// A request of so many bytes has ended, but for what makes it durable.
    #[inline]
    pub(crate) fn ended_at_doors(&mut self, volume: VolumeId, asked: Asked, bytes: u64, well: bool) {
        let (Some(began_ns), tenant) = (asked.began_ns, self.tenant_of(volume)) else { return };
        if let Some(Offered { doors, .. }) = self.offered.as_deref_mut() {
            let took_ns = well.then(|| doors.now_ns().saturating_sub(began_ns.get()));
            doors.ended(tenant, !asked.closed, bytes, asked.ahead, took_ns);
        }
    }

    /// A block of a read is not cached.
    #[inline]
    pub(crate) fn offer_read(&mut self, tenant: usize, asked: Asked) {
        if let Some(offered) = &mut self.offered {
            offered.of(tenant).blocks[asked.kind.index()] += 1;
        }
    }

    /// A block is written that is cached, or not.
    #[inline]
    pub(crate) fn offer_write(&mut self, volume: VolumeId, asked: Asked, is_cached: bool) {
        if self.offered.is_none() {
            return;
        }
        let tenant = self.tenant_of(volume);
        if let Some(offered) = self.offered.as_mut().filter(|_| !asked.closed) {
            let offered = offered.of(tenant);
            offered.taken[asked.kind.index()] += 1;
            offered.resident[asked.kind.index()] += u64::from(is_cached);
        }
    }

    /// A block is not written to the cache device, since its request is worth less than others.
    pub(crate) fn turn_away(&mut self, tenant: usize) {
        self.tenants[tenant].stats.turned_away_blocks += 1;
    }
}

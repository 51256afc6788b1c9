//! The six request classes: what an access does to a block, after what was done to it last.

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// It reads.
    Read,
    /// It writes.
    Write,
}

/// What an access does, after what was done last to the same block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestClass {
    /// CR: a first read.
    ColdRead,
    /// CW: a first write.
    ColdWrite,
    /// RAR: a read after a read.
    ReadAfterRead,
    /// RAW: a read after a write.
    ReadAfterWrite,
    /// WAR: a write after a read.
    WriteAfterRead,
    /// WAW: a write after a write.
    WriteAfterWrite,
}

impl RequestClass {
    /// The class of an access after `last`, the last access to the same block, if there was one.
    pub fn of(last: Option<AccessKind>, now: AccessKind) -> Self {
        use AccessKind::{Read, Write};
        match (last, now) {
            (None, Read) => Self::ColdRead,
            (None, Write) => Self::ColdWrite,
            (Some(Read), Read) => Self::ReadAfterRead,
            (Some(Write), Read) => Self::ReadAfterWrite,
            (Some(Read), Write) => Self::WriteAfterRead,
            (Some(Write), Write) => Self::WriteAfterWrite,
        }
    }
}

/// Block accesses by request class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// First reads.
    pub cr: u64,
    /// First writes.
    pub cw: u64,
    /// Reads after a read.
    pub rar: u64,
    /// Reads after a write.
    pub raw: u64,
    /// Writes after a read.
    pub war: u64,
    /// Writes after a write.
    pub waw: u64,
}

impl ClassCounts {
    /// Count one access.
    pub fn count(&mut self, class: RequestClass) {
        *match class {
            RequestClass::ColdRead => &mut self.cr,
            RequestClass::ColdWrite => &mut self.cw,
            RequestClass::ReadAfterRead => &mut self.rar,
            RequestClass::ReadAfterWrite => &mut self.raw,
            RequestClass::WriteAfterRead => &mut self.war,
            RequestClass::WriteAfterWrite => &mut self.waw,
        } += 1;
    }

    /// All accesses.
    pub fn total(&self) -> u64 {
        self.cr + self.cw + self.rar + self.raw + self.war + self.waw
    }

    /// Accesses that a cache can serve: RAR and RAW.
    pub fn useful(&self) -> u64 {
        self.rar + self.raw
    }

    /// ECI-Cache's `writeRatio` (section 5.2): the share of WAW and WAR among all accesses, 0 where there were none.
    /// The paper divides by requests; here a request counts once for every block that it touches, on both sides.
    pub fn write_ratio(&self) -> f64 {
        match self.total() {
            0 => 0.0,
            total => (self.waw + self.war) as f64 / total as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AccessKind::{Read, Write};

    #[test]
    fn each_pair_has_its_class() {
        let mut counts = ClassCounts::default();
        let pairs = [
            (None, Read),
            (None, Write),
            (Some(Read), Read),
            (Some(Write), Read),
            (Some(Read), Write),
            (Some(Write), Write),
        ];
        for (times, (last, now)) in pairs.into_iter().enumerate() {
            for _ in 0..=times {
                counts.count(RequestClass::of(last, now));
            }
        }
        assert_eq!(counts, ClassCounts { cr: 1, cw: 2, rar: 3, raw: 4, war: 5, waw: 6 });
        assert_eq!((counts.total(), counts.useful()), (21, 7));
        assert_eq!(counts.write_ratio(), 11.0 / 21.0);
    }

    #[test]
    fn nothing_has_a_write_ratio_of_zero() {
        assert_eq!(ClassCounts::default().write_ratio(), 0.0);
    }
}

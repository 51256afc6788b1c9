//! A command as requests to a server: cut to what it takes, translated to what it can do.

use crate::command::{Command, CommandKind};
use larder_engine::IoError;
use larder_nbd::client::Connected;
use larder_nbd::consts::{PAYLOAD_BYTES_MAX, cflag, tflag};
use larder_nbd::{self as nbd, ErrorCode};

/// Zeroes for servers that cannot make them.
static ZEROES: [u8; ZEROES_BYTES as usize] = [0; ZEROES_BYTES as usize];
const ZEROES_BYTES: u32 = 128 << 10;

/// What a server does and takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Abilities {
    flush: bool,
    fua: bool,
    trim: bool,
    zeroes: bool,
    /// Bytes of one request at most.
    piece: u32,
}

impl Abilities {
    pub fn of(agreed: &Connected) -> Self {
        let has = |flag| agreed.flags & flag != 0;
        let max = agreed.block.max.min(PAYLOAD_BYTES_MAX);
        let unit = agreed.block.min.max(512);
        Self {
            flush: has(tflag::SEND_FLUSH),
            fua: has(tflag::SEND_FUA),
            trim: has(tflag::SEND_TRIM),
            zeroes: has(tflag::SEND_WRITE_ZEROES),
            piece: (max / unit * unit).max(unit),
        }
    }

    /// The server announced write-zeroes, and then refused it.
    pub fn give_up_zeroes(&mut self) {
        self.zeroes = false;
    }
}

/// A command under way.
#[derive(Debug)]
pub(super) struct Job {
    pub command: Command,
    form: nbd::Command,
    flags: u16,
    /// Bytes that no request was made for yet.
    left: u64,
    piece: u32,
    /// Requests without reply.
    open: u32,
    begun: bool,
    /// It is in the queue of jobs with requests to make.
    pub queued: bool,
    /// A flush has to follow, and is not sent yet.
    flush_after: bool,
    /// Where it succeeds, the server has promised to keep what it wrote.
    durable: bool,
    /// What the flush covers that was sent for it.
    pub covers: Option<u64>,
    result: Result<(), IoError>,
}

/// One request of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub form: nbd::Command,
    pub flags: u16,
    pub offset: u64,
    pub length: u32,
    /// Where its payload is, or goes. Null where it has none.
    pub memory: *mut u8,
}

/// What remains of a job after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Other requests are open.
    Wait,
    /// It has requests to make again.
    Continue,
    /// It has ended.
    End(Result<(), IoError>),
}

impl Job {
    /// `None` where the server has nothing to do: the command succeeds at once.
    pub fn new(command: Command, server: Abilities) -> Option<Self> {
        let (form, left) = match command.kind {
            CommandKind::Read => (nbd::Command::Read, command.len),
            CommandKind::Write => (nbd::Command::Write, command.len),
            CommandKind::Flush if server.flush => (nbd::Command::Flush, 0),
            CommandKind::Discard if server.trim => (nbd::Command::Trim, command.len),
            CommandKind::WriteZeroes { .. } if server.zeroes => (nbd::Command::WriteZeroes, command.len),
            CommandKind::WriteZeroes { .. } => (nbd::Command::Write, command.len),
            CommandKind::Flush | CommandKind::Discard => return None,
        };
        let zeroes = matches!(command.kind, CommandKind::WriteZeroes { .. });
        let piece =
            if zeroes && form == nbd::Command::Write { server.piece.min(ZEROES_BYTES) } else { server.piece };
        let durable = command.fua && matches!(form, nbd::Command::Write | nbd::Command::WriteZeroes);
        let fua = if durable && server.fua { cflag::FUA } else { 0 };
        let no_hole = match command.kind {
            CommandKind::WriteZeroes { no_hole: true } if form == nbd::Command::WriteZeroes => cflag::NO_HOLE,
            _ => 0,
        };
        let flush_after = form == nbd::Command::Flush || durable && !server.fua && server.flush;
        Some(Self {
            command,
            form,
            flags: fua | no_hole,
            left,
            piece,
            open: 0,
            begun: false,
            queued: false,
            flush_after,
            durable: durable && (server.fua || server.flush),
            covers: None,
            result: Ok(()),
        })
    }

    /// The next request, if one can be made before replies come. Without one, the job leaves the queue. `mark`: what a flush that is sent
    /// now covers.
    pub fn next_piece(&mut self, mark: u64) -> Option<Piece> {
        let piece = self.make_piece();
        if piece.is_some_and(|piece| piece.form == nbd::Command::Flush) {
            self.covers = Some(mark);
        }
        self.begun = true;
        self.queued = piece.is_some();
        piece
    }

    fn make_piece(&mut self) -> Option<Piece> {
        if self.result.is_err() {
            return None;
        }
        if self.left == 0 {
            return self.next_flush();
        }
        let length = self.left.min(u64::from(self.piece)) as u32;
        let at = self.command.len - self.left;
        self.left -= u64::from(length);
        self.open += 1;
        let memory = match (self.command.kind, self.form) {
            (CommandKind::Read | CommandKind::Write, _) => self.command.memory.at(at as usize),
            // Only ever read from.
            (_, nbd::Command::Write) => ZEROES.as_ptr().cast_mut(),
            _ => std::ptr::null_mut(),
        };
        Some(Piece { form: self.form, flags: self.flags, offset: self.command.offset + at, length, memory })
    }

    fn next_flush(&mut self) -> Option<Piece> {
        if !self.flush_after || self.open > 0 {
            return None;
        }
        self.flush_after = false;
        self.open += 1;
        Some(Piece {
            form: nbd::Command::Flush,
            flags: 0,
            offset: 0,
            length: 0,
            memory: std::ptr::null_mut(),
        })
    }

    /// One of the requests was answered.
    pub fn answered(&mut self, result: Result<(), ErrorCode>, server: &mut Abilities) -> Next {
        self.open = self.open.saturating_sub(1);
        let result = match result {
            Err(ErrorCode::NotSupported) if self.form == nbd::Command::Trim => Ok(()),
            other => other.map_err(error_of),
        };
        self.result = self.result.and(result);
        match self.result {
            Err(_) if self.open > 0 => Next::Wait,
            Err(IoError::NotSupported) if self.form == nbd::Command::WriteZeroes => {
                self.write_instead(server)
            }
            Err(error) => Next::End(Err(error)),
            Ok(()) if self.left > 0 || self.open == 0 && self.flush_after => Next::Continue,
            Ok(()) if self.open > 0 => Next::Wait,
            Ok(()) => Next::End(Ok(())),
        }
    }

    /// Begin again, with zeroes as data.
    fn write_instead(&mut self, server: &mut Abilities) -> Next {
        server.give_up_zeroes();
        self.form = nbd::Command::Write;
        self.flags &= cflag::FUA;
        self.piece = self.piece.min(ZEROES_BYTES);
        self.left = self.command.len;
        self.result = Ok(());
        Next::Continue
    }

    /// True once a request was made for it.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// True where its success means that what it wrote outlives a crash of the server.
    pub fn is_durable(&self) -> bool {
        self.durable
    }
}

/// What a guest is told of a server's error.
fn error_of(code: ErrorCode) -> IoError {
    match code {
        ErrorCode::NoSpace => IoError::NoSpace,
        ErrorCode::NotPermitted | ErrorCode::NotSupported => IoError::NotSupported,
        _ => IoError::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::test_command;
    use larder_nbd::BlockSizes;

    const ALL: u16 = tflag::SEND_FLUSH | tflag::SEND_FUA | tflag::SEND_TRIM | tflag::SEND_WRITE_ZEROES;

    fn server(flags: u16, max: u32) -> Abilities {
        let block = BlockSizes { min: 512, preferred: 4096, max };
        Abilities::of(&Connected { size: 1 << 30, flags, block, structured: true, base_allocation: None })
    }

    fn job(kind: CommandKind, len: u64, fua: bool, server: Abilities) -> Option<Job> {
        Job::new(Command { fua, ..test_command(kind, 8192, len) }, server)
    }

    fn pieces(job: &mut Job) -> Vec<(nbd::Command, u64, u32)> {
        std::iter::from_fn(|| job.next_piece(0)).map(|p| (p.form, p.offset, p.length)).collect()
    }

    #[test]
    fn large_requests_are_cut_and_end_once() {
        let mut server = server(ALL, 64 << 10);
        let mut job = job(CommandKind::Read, 150 << 10, false, server).unwrap();
        let read = nbd::Command::Read;
        let expected = [(read, 8192, 65536), (read, 8192 + 65536, 65536), (read, 8192 + 131_072, 22528)];
        assert_eq!(pieces(&mut job), expected);
        assert_eq!(job.answered(Ok(()), &mut server), Next::Wait);
        assert_eq!(job.answered(Err(ErrorCode::Io), &mut server), Next::Wait);
        assert_eq!(job.answered(Ok(()), &mut server), Next::End(Err(IoError::Io)));
    }

    #[test]
    fn durability_without_fua_is_a_flush_after_the_data() {
        let mut server = server(tflag::SEND_FLUSH, 4096);
        let mut job = job(CommandKind::Write, 8192, true, server).unwrap();
        assert_eq!(pieces(&mut job).len(), 2);
        assert_eq!(job.answered(Ok(()), &mut server), Next::Wait);
        assert_eq!(job.answered(Ok(()), &mut server), Next::Continue);
        assert_eq!(pieces(&mut job), [(nbd::Command::Flush, 0, 0)]);
        assert_eq!(job.answered(Ok(()), &mut server), Next::End(Ok(())));
    }

    #[test]
    fn what_a_server_lacks_is_done_without() {
        let lacking = server(0, u32::MAX);
        assert!(job(CommandKind::Flush, 0, false, lacking).is_none());
        assert!(job(CommandKind::Discard, 4096, false, lacking).is_none());
        let mut zeroes = job(CommandKind::WriteZeroes { no_hole: true }, 200 << 10, true, lacking).unwrap();
        let write = nbd::Command::Write;
        assert_eq!(pieces(&mut zeroes), [(write, 8192, 128 << 10), (write, 8192 + (128 << 10), 72 << 10)]);
    }

    #[test]
    fn refused_zeroes_are_written_and_remembered() {
        let mut server = server(ALL, u32::MAX);
        let mut zeroes = job(CommandKind::WriteZeroes { no_hole: true }, 4096, true, server).unwrap();
        let piece = zeroes.next_piece(0).unwrap();
        assert_eq!((piece.form, piece.flags), (nbd::Command::WriteZeroes, cflag::FUA | cflag::NO_HOLE));
        assert_eq!(zeroes.answered(Err(ErrorCode::NotSupported), &mut server), Next::Continue);
        let piece = zeroes.next_piece(0).unwrap();
        assert_eq!((piece.form, piece.flags, piece.length), (nbd::Command::Write, cflag::FUA, 4096));
        assert_eq!(zeroes.answered(Ok(()), &mut server), Next::End(Ok(())));
        let again = job(CommandKind::WriteZeroes { no_hole: false }, 4096, false, server).unwrap();
        assert_eq!(again.form, nbd::Command::Write);
    }

    #[test]
    fn a_refused_trim_succeeds() {
        let mut server = server(ALL, u32::MAX);
        let mut trim = job(CommandKind::Discard, 4096, false, server).unwrap();
        assert_eq!(pieces(&mut trim), [(nbd::Command::Trim, 8192, 4096)]);
        assert_eq!(trim.answered(Err(ErrorCode::NotSupported), &mut server), Next::End(Ok(())));
    }
}

//! Groups of the host's users, by name.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

/// Bytes for a group's entry, with the names of its members: tried first, and at most.
const ENTRY_BYTES: usize = 4 << 10;
const ENTRY_BYTES_MAX: usize = 4 << 20;

/// The number of the group of this name, as the host's databases (`/etc/group` and others) tell; `None` where there is none.
///
/// # Errors
/// When the databases cannot be asked.
pub fn group_id(name: &str) -> io::Result<Option<u32>> {
    let Ok(name) = CString::new(name) else { return Ok(None) };
    let mut bytes = ENTRY_BYTES;
    loop {
        match look_up(&name, bytes) {
            Err(error) if error.raw_os_error() == Some(libc::ERANGE) && bytes < ENTRY_BYTES_MAX => bytes *= 2,
            outcome => return outcome,
        }
    }
}

fn look_up(name: &CString, bytes: usize) -> io::Result<Option<u32>> {
    let mut names = vec![0; bytes];
    let mut entry = MaybeUninit::<libc::group>::uninit();
    let mut found = ptr::null_mut();
    // SAFETY: the name ends with a zero, the memory for names has the length told, and all of it outlives the call.
    let error = unsafe {
        libc::getgrnam_r(name.as_ptr(), entry.as_mut_ptr(), names.as_mut_ptr(), names.len(), &mut found)
    };
    match error {
        0 if found.is_null() => Ok(None),
        // SAFETY: a non-null result says that the entry is filled in.
        0 => Ok(Some(unsafe { entry.assume_init() }.gr_gid)),
        // Some databases say so where there is no such group.
        libc::ENOENT | libc::ESRCH => Ok(None),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_by_name() {
        assert_eq!(group_id("root").unwrap(), Some(0));
        assert_eq!(group_id("no-such-group-here").unwrap(), None);
        assert_eq!(group_id("with\0zero").unwrap(), None);
    }
}

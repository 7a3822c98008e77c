//! The loader that a program names: of another C library, it may not be on this machine.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes of an ELF header of 64 bits, and the places of the fields in it (ELF-64 object file format 1.5, figure 2).
const HEADER_BYTES: usize = 64;
const TABLE: usize = 32;
const ENTRY_BYTES: usize = 54;
const ENTRIES: usize = 56;
/// An entry that names the loader, and the places of the fields in it (figure 6).
const PT_INTERP: u32 = 3;
const OFFSET: usize = 8;
const SIZE: usize = 32;
const LONGEST: u64 = 4096;

/// The loader that the program `file` names, if it is one with 64 bits that names one.
pub fn loader_of(file: &Path) -> Option<PathBuf> {
    let mut file = File::open(file).ok()?;
    let mut header = [0; HEADER_BYTES];
    file.read_exact(&mut header).ok()?;
    if header[..5] != *b"\x7fELF\x02" {
        return None;
    }
    let (table, length, entries) = (number(&header, TABLE, 8)?, number(&header, ENTRY_BYTES, 2)?, header[ENTRIES]);
    for entry in 0..u64::from(entries) {
        let mut fields = [0; 56];
        file.seek(SeekFrom::Start(table.checked_add(entry * length)?)).ok()?;
        file.read_exact(&mut fields).ok()?;
        if number(&fields, 0, 4)? != u64::from(PT_INTERP) {
            continue;
        }
        let mut name = vec![0; usize::try_from(number(&fields, SIZE, 8)?.min(LONGEST)).ok()?];
        file.seek(SeekFrom::Start(number(&fields, OFFSET, 8)?)).ok()?;
        file.read_exact(&mut name).ok()?;
        let name = name.split(|byte| *byte == 0).next()?;
        return Some(PathBuf::from(String::from_utf8_lossy(name).into_owned()));
    }
    None
}

/// The little-endian number of `length` bytes at `place`.
fn number(bytes: &[u8], place: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(place..place + length)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_this_machine_names_a_loader_that_is_here() {
        let own = std::env::current_exe().unwrap();
        assert!(loader_of(&own).is_none_or(|loader| loader.is_file()));
        assert!(loader_of(Path::new("/bin/sh")).is_none_or(|loader| loader.is_file()));
    }

    #[test]
    fn what_is_no_program_names_none() {
        assert_eq!(loader_of(Path::new("/proc/self/status")), None);
        assert_eq!(loader_of(Path::new("/no/such/file")), None);
    }
}

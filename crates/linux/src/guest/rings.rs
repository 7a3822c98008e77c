//! The queues of a virtual network card in the memory of a guest: split virtqueues, of the Virtual I/O Device
//! specification 1.2, section 2.7.
//!
//! The guest is another program: each address that it gives is checked against the memory that it shares, and a chain
//! of descriptors ends. It has one processor and stands still, or waits, while a queue is touched.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{fence, Ordering};

/// `VRING_DESC_F_NEXT`: the chain goes on.
const NEXT: u16 = 1;
/// `VRING_AVAIL_F_NO_INTERRUPT`: the guest does not want to be told of buffers that are given back.
const NO_INTERRUPT: u16 = 1;
/// `VRING_USED_F_NO_NOTIFY`: we do not want to be told of buffers that are offered.
const NO_NOTIFY: u16 = 1;
/// Bytes of a descriptor.
const DESCRIPTOR_BYTES: u64 = 16;

/// The memory that a guest shares with its devices.
#[derive(Debug)]
pub struct Memory {
    place: *mut u8,
    mapped: usize,
    /// Where the shared part begins in the mapping.
    offset: u64,
    /// Its address in the guest.
    address: u64,
    length: u64,
}

// SAFETY: the pointer is to a mapping that this owns.
unsafe impl Send for Memory {}
// SAFETY: what lies there is read and written by copies only.
unsafe impl Sync for Memory {}

impl Memory {
    /// Maps `length` bytes of `file` from `offset` on, which the guest has at `address`.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn map(file: &OwnedFd, address: u64, length: u64, offset: u64) -> io::Result<Self> {
        let mapped = offset.checked_add(length).and_then(|end| usize::try_from(end).ok());
        let mapped = mapped.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping; the result is checked.
        let place =
            unsafe { libc::mmap(std::ptr::null_mut(), mapped, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { place: place.cast(), mapped, offset, address, length })
    }

    /// The place of `length` bytes at the guest's `address`.
    fn at(&self, address: u64, length: u64) -> io::Result<*mut u8> {
        let within = address
            .checked_sub(self.address)
            .filter(|from| from.checked_add(length).is_some_and(|end| end <= self.length));
        let Some(within) = within else {
            return Err(io::Error::other(format!("the guest's card names {length} bytes at {address:#x}, outside")));
        };
        // SAFETY: the sum is inside of the mapping, as was just checked.
        Ok(unsafe { self.place.add((self.offset + within) as usize) })
    }

    fn read(&self, address: u64, into: &mut Vec<u8>, length: u32) -> io::Result<()> {
        let place = self.at(address, u64::from(length))?;
        let before = into.len();
        into.resize(before + length as usize, 0);
        // SAFETY: `place` has `length` bytes of the mapping, `into` as many of its own behind `before`.
        unsafe { std::ptr::copy_nonoverlapping(place, into[before..].as_mut_ptr(), length as usize) };
        Ok(())
    }

    fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        let place = self.at(address, bytes.len() as u64)?;
        // SAFETY: `place` has as many bytes of the mapping.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        Ok(())
    }

    fn half(&self, address: u64) -> io::Result<u16> {
        let place = self.at(address, 2)?;
        // SAFETY: `place` has two bytes of the mapping.
        Ok(unsafe { place.cast::<u16>().read_unaligned() })
    }

    fn set_half(&self, address: u64, value: u16) -> io::Result<()> {
        self.write(address, &value.to_ne_bytes())
    }

    fn descriptor(&self, table: u64, index: u16) -> io::Result<Descriptor> {
        let place = self.at(table.saturating_add(DESCRIPTOR_BYTES * u64::from(index)), DESCRIPTOR_BYTES)?;
        // SAFETY: `place` has the bytes of a descriptor, and any bytes are one.
        Ok(unsafe { place.cast::<Descriptor>().read_unaligned() })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.place.cast(), self.mapped) };
    }
}

/// `struct vring_desc`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Descriptor {
    address: u64,
    length: u32,
    flags: u16,
    next: u16,
}

/// One queue: its places in the guest's memory and how far it has been read.
#[derive(Debug, Default)]
pub struct Ring {
    /// Entries; zero until the guest has said it.
    pub size: u16,
    /// Addresses of the descriptors, of what is offered, and of what is given back.
    pub table: u64,
    /// As above.
    pub offered: u64,
    /// As above.
    pub given_back: u64,
    read: u16,
    written: u16,
}

impl Ring {
    /// Begins the queue anew at these addresses.
    pub fn place(&mut self, table: u64, offered: u64, given_back: u64) {
        (self.table, self.offered, self.given_back) = (table, offered, given_back);
        (self.read, self.written) = (0, 0);
    }

    fn is_ready(&self) -> bool {
        self.size != 0 && self.table != 0
    }

    /// Takes the next buffer that is offered: the number of its first descriptor.
    ///
    /// # Errors
    /// An address outside of the guest's memory.
    pub fn take(&mut self, memory: &Memory) -> io::Result<Option<u16>> {
        if !self.is_ready() || memory.half(self.offered.saturating_add(2))? == self.read {
            return Ok(None);
        }
        fence(Ordering::Acquire);
        let head = memory.half(self.offered.saturating_add(4 + 2 * u64::from(self.read % self.size)))?;
        self.read = self.read.wrapping_add(1);
        Ok(Some(head))
    }

    /// Calls `each` with address and length of the parts of the buffer `head`, until it says no.
    fn parts(&self, memory: &Memory, head: u16, mut each: impl FnMut(u64, u32) -> io::Result<bool>) -> io::Result<()> {
        let mut index = head;
        // A chain has no more descriptors than the queue: one that does goes in circles.
        for _ in 0..self.size {
            if index >= self.size {
                return Err(io::Error::other(format!("the guest's card names the descriptor {index}")));
            }
            let part = memory.descriptor(self.table, index)?;
            if !each(part.address, part.length)? || part.flags & NEXT == 0 {
                return Ok(());
            }
            index = part.next;
        }
        Err(io::Error::other("the guest's card has a chain of descriptors without end"))
    }

    /// Reads the buffer `head` behind what is in `into`, at most `most` bytes.
    ///
    /// # Errors
    /// As [`Ring::take`], or when it is longer.
    pub fn read(&self, memory: &Memory, head: u16, into: &mut Vec<u8>, most: usize) -> io::Result<()> {
        self.parts(memory, head, |address, length| {
            if into.len() + length as usize > most {
                return Err(io::Error::other("the guest's card sends a frame that is too long"));
            }
            memory.read(address, into, length).map(|()| true)
        })
    }

    /// Offers the last `count` buffers that were taken anew.
    pub fn untake(&mut self, count: u16) {
        self.read = self.read.wrapping_sub(count);
    }

    /// Returns how many bytes the buffer `head` has room for.
    ///
    /// # Errors
    /// As [`Ring::take`].
    pub fn room(&self, memory: &Memory, head: u16) -> io::Result<u64> {
        let mut room = 0;
        self.parts(memory, head, |_, length| {
            room += u64::from(length);
            Ok(true)
        })?;
        Ok(room)
    }

    /// Writes `pieces` one after another into the buffer `head`; what it has no room for stays in them. Returns how
    /// many bytes it took.
    ///
    /// # Errors
    /// As [`Ring::take`].
    pub fn write(&self, memory: &Memory, head: u16, pieces: &mut VecDeque<&[u8]>) -> io::Result<u32> {
        let mut written = 0_u32;
        self.parts(memory, head, |mut address, mut room| {
            while let Some(piece) = pieces.front_mut().filter(|_| room > 0) {
                let (now, later) = piece.split_at(piece.len().min(room as usize));
                memory.write(address, now)?;
                address = address.saturating_add(now.len() as u64);
                room -= now.len() as u32;
                written += now.len() as u32;
                *piece = later;
                if later.is_empty() {
                    pieces.pop_front();
                }
            }
            Ok(!pieces.is_empty())
        })?;
        Ok(written)
    }

    /// Gives the buffer `head` back, with `length` bytes in it.
    ///
    /// # Errors
    /// As [`Ring::take`].
    pub fn give_back(&mut self, memory: &Memory, head: u16, length: u32) -> io::Result<()> {
        let entry = self.given_back.saturating_add(4 + 8 * u64::from(self.written % self.size));
        memory.write(entry, &u32::from(head).to_ne_bytes())?;
        memory.write(entry.saturating_add(4), &length.to_ne_bytes())?;
        self.written = self.written.wrapping_add(1);
        fence(Ordering::Release);
        memory.set_half(self.given_back.saturating_add(2), self.written)
    }

    /// Returns `true` if the guest wants to be told of what was given back.
    ///
    /// # Errors
    /// As [`Ring::take`].
    pub fn wants_to_know(&self, memory: &Memory) -> io::Result<bool> {
        Ok(self.is_ready() && memory.half(self.offered)? & NO_INTERRUPT == 0)
    }

    /// Asks the guest to tell of buffers that it offers, or not to.
    ///
    /// # Errors
    /// As [`Ring::take`].
    pub fn notify(&self, memory: &Memory, wanted: bool) -> io::Result<()> {
        if self.is_ready() {
            memory.set_half(self.given_back, if wanted { 0 } else { NO_NOTIFY })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0x1000;
    const TABLE: u64 = AT;
    const OFFERED: u64 = AT + 0x100;
    const GIVEN_BACK: u64 = AT + 0x200;
    const DATA: u64 = AT + 0x300;

    #[cfg(not(miri))]
    fn memory() -> Memory {
        let file = rustix::fs::memfd_create("rings", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, 0x2000).unwrap();
        Memory::map(&file, AT, 0x1000, 0x1000).unwrap()
    }

    /// The same without a file, which Miri does not map.
    #[cfg(miri)]
    fn memory() -> Memory {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping; the result is checked.
        let place = unsafe { libc::mmap(std::ptr::null_mut(), 0x2000, protection, flags, -1, 0) };
        assert_ne!(place, libc::MAP_FAILED);
        Memory { place: place.cast(), mapped: 0x2000, offset: 0x1000, address: AT, length: 0x1000 }
    }

    /// A driver's memory with a queue of four entries.
    fn queue() -> (Memory, Ring) {
        let memory = memory();
        let mut ring = Ring { size: 4, ..Ring::default() };
        ring.place(TABLE, OFFERED, GIVEN_BACK);
        (memory, ring)
    }

    fn describe(memory: &Memory, index: u64, address: u64, length: u32, flags: u16, next: u16) {
        let at = TABLE + DESCRIPTOR_BYTES * index;
        memory.write(at, &address.to_ne_bytes()).unwrap();
        memory.write(at + 8, &length.to_ne_bytes()).unwrap();
        memory.write(at + 12, &flags.to_ne_bytes()).unwrap();
        memory.write(at + 14, &next.to_ne_bytes()).unwrap();
    }

    fn offer(memory: &Memory, head: u16) {
        let count = memory.half(OFFERED + 2).unwrap();
        memory.set_half(OFFERED + 4 + 2 * u64::from(count % 4), head).unwrap();
        memory.set_half(OFFERED + 2, count.wrapping_add(1)).unwrap();
    }

    #[test]
    fn a_buffer_in_parts_is_read_written_and_given_back() {
        let (memory, mut ring) = queue();
        assert_eq!(ring.take(&memory).unwrap(), None);
        describe(&memory, 2, DATA, 4, NEXT, 0);
        describe(&memory, 0, DATA + 0x80, 8, 0, 0);
        memory.write(DATA, b"abcd").unwrap();
        memory.write(DATA + 0x80, b"efghijkl").unwrap();
        offer(&memory, 2);
        let head = ring.take(&memory).unwrap().unwrap();
        assert_eq!((head, ring.take(&memory).unwrap()), (2, None));
        let mut bytes = Vec::new();
        ring.read(&memory, head, &mut bytes, 12).unwrap();
        assert_eq!(bytes, b"abcdefghijkl");
        assert!(ring.read(&memory, head, &mut Vec::new(), 11).is_err());
        let write = |pieces: &[&'static [u8]]| {
            let mut pieces: VecDeque<&[u8]> = pieces.iter().copied().collect();
            let written = ring.write(&memory, head, &mut pieces).unwrap();
            (written, pieces.into_iter().map(<[u8]>::len).sum::<usize>())
        };
        assert_eq!(write(&[b"12", b"", b"34567"]), (7, 0));
        bytes.clear();
        ring.read(&memory, head, &mut bytes, 12).unwrap();
        assert_eq!(bytes, b"1234567hijkl");
        assert_eq!(write(&[&[0; 20]]), (12, 8));
        assert_eq!(ring.room(&memory, head).unwrap(), 12);
        ring.give_back(&memory, head, 7).unwrap();
        assert_eq!(memory.half(GIVEN_BACK + 2).unwrap(), 1);
        assert_eq!((memory.half(GIVEN_BACK + 4).unwrap(), memory.half(GIVEN_BACK + 8).unwrap()), (2, 7));
    }

    #[test]
    fn what_a_driver_does_wrong_is_an_error_and_no_more() {
        let (memory, mut ring) = queue();
        describe(&memory, 1, DATA, 4, NEXT, 1);
        describe(&memory, 3, AT + 0xfff, 2, 0, 0);
        for head in [1, 3, 9] {
            offer(&memory, head);
            let head = ring.take(&memory).unwrap().unwrap();
            assert!(ring.read(&memory, head, &mut Vec::new(), 1 << 20).is_err(), "{head}");
            let mut pieces = VecDeque::from([&[0; 100][..]]);
            assert!(ring.write(&memory, head, &mut pieces).is_err(), "{head}");
        }
        ring.place(AT, AT - 4, u64::MAX - 1);
        assert!(ring.take(&memory).is_err() && ring.give_back(&memory, 0, 0).is_err());
    }

    #[test]
    fn each_side_says_whether_it_wants_to_be_told() {
        let (memory, ring) = queue();
        assert!(ring.wants_to_know(&memory).unwrap());
        memory.set_half(OFFERED, NO_INTERRUPT).unwrap();
        assert!(!ring.wants_to_know(&memory).unwrap());
        ring.notify(&memory, false).unwrap();
        assert_eq!(memory.half(GIVEN_BACK).unwrap(), NO_NOTIFY);
        ring.notify(&memory, true).unwrap();
        assert_eq!(memory.half(GIVEN_BACK).unwrap(), 0);
    }
}

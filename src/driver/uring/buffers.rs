use crate::limits::{RECV_BUFFER_BYTES, RECV_BUFFERS};
use io_uring::types::BufRingEntry;
use io_uring::{IoUring, types};
use memmap2::MmapMut;
use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU16, Ordering};

/// The ring of receive buffers that the kernel picks from.
///
/// `entries` is the page-aligned array shared with the kernel, `memory` the buffers themselves. A buffer belongs
/// to the kernel from `give` until a completion names its id.
pub(super) struct BufferRing {
    entries: ManuallyDrop<MmapMut>,
    memory: ManuallyDrop<MmapMut>,
    leaked: bool,
    tail: u16,
    /// Buffers given back but not yet published.
    unpublished: bool,
}

pub(super) const GROUP: u16 = 0;
const MASK: u16 = RECV_BUFFERS - 1;

impl BufferRing {
    /// Makes the ring and registers it as buffer group [`GROUP`].
    pub(super) fn register(ring: &IoUring) -> io::Result<BufferRing> {
        let entries =
            ManuallyDrop::new(MmapMut::map_anon(usize::from(RECV_BUFFERS) * size_of::<BufRingEntry>())?);
        let memory = ManuallyDrop::new(MmapMut::map_anon(usize::from(RECV_BUFFERS) * RECV_BUFFER_BYTES)?);
        // JUSTIFICATION: registering shares memory with the kernel, which no safe call offers.
        // SAFETY: `entries` is page-aligned, holds RECV_BUFFERS entries and lives as long as `BufferRing`, which
        // the driver drops only after every operation on the ring has ended.
        unsafe {
            ring.submitter().register_buf_ring_with_flags(entries.as_ptr() as u64, RECV_BUFFERS, GROUP, 0)?;
        }
        let mut buffers = BufferRing { entries, memory, leaked: false, tail: 0, unpublished: false };
        for id in 0..RECV_BUFFERS {
            buffers.give(id);
        }
        buffers.publish();
        Ok(buffers)
    }

    /// The first `bytes` of a buffer that a completion has handed to us.
    pub(super) fn get(&self, id: u16, bytes: usize) -> &[u8] {
        debug_assert!(id < RECV_BUFFERS && bytes <= RECV_BUFFER_BYTES);
        let start = usize::from(id) * RECV_BUFFER_BYTES;
        &self.memory[start..start + bytes]
    }

    /// Gives a buffer back to the kernel; it sees it with the next `publish`.
    pub(super) fn give(&mut self, id: u16) {
        debug_assert!(id < RECV_BUFFERS);
        let addr = self.memory[usize::from(id) * RECV_BUFFER_BYTES..].as_ptr() as u64;
        let slot = usize::from(self.tail & MASK);
        // JUSTIFICATION: entries are laid out by the kernel's ABI inside a shared mapping.
        // SAFETY: `slot` is below RECV_BUFFERS, so the entry lies inside the mapping, which is page-aligned; the
        // kernel does not read entries at or past the published tail, so nobody else touches this one. Only the
        // three fields are written: the reserved field of entry 0 is the tail itself.
        unsafe {
            let entry = &mut *self.entries.as_mut_ptr().cast::<BufRingEntry>().add(slot);
            entry.set_addr(addr);
            entry.set_len(RECV_BUFFER_BYTES as u32);
            entry.set_bid(id);
        }
        self.tail = self.tail.wrapping_add(1);
        self.unpublished = true;
    }

    /// Keeps the memory for ever: the kernel could not be made to let go of it.
    pub(super) fn leak(&mut self) {
        self.leaked = true;
    }

    pub(super) fn publish(&mut self) {
        if !std::mem::take(&mut self.unpublished) {
            return;
        }
        // JUSTIFICATION: the tail lies inside the shared mapping and must be stored with release order.
        // SAFETY: the pointer is into the live mapping and aligned for u16; the kernel only reads it.
        unsafe {
            let tail = types::BufRingEntry::tail(self.entries.as_ptr().cast()).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for BufferRing {
    fn drop(&mut self) {
        if !self.leaked {
            // JUSTIFICATION: the mappings must be able to outlive us, which only `ManuallyDrop` allows.
            // SAFETY: dropped once, here, and not used afterwards.
            unsafe {
                ManuallyDrop::drop(&mut self.entries);
                ManuallyDrop::drop(&mut self.memory);
            }
        }
    }
}

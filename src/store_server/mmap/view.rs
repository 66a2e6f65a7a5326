use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::ops::Deref;

/// A file that never changes, as memory.
pub struct View(Mmap);

impl View {
    /// Maps a file that was renamed to its name when it was whole. Such files are replaced and removed, never written to
    /// or cut.
    pub fn of(file: &File) -> io::Result<View> {
        // JUSTIFICATION: an index is searched where it lies; reading it by calls would take one for every probe.
        // SAFETY: nothing of ours writes to an index or cuts it once it has its name, so the bytes behind the map stay as
        // they are for as long as it lives, whatever happens to the name.
        unsafe { Mmap::map(file) }.map(View)
    }
}

impl Deref for View {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

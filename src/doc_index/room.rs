use memmap2::{Advice, MmapMut};

/// Memory in lines of the cache, all zero at first. A large one is asked of the kernel in large pages: whoever reads
/// here and there in hundreds of megabytes waits for the address of a page as long as for its contents, and large pages
/// are so few that their addresses are at hand.
pub(super) struct Room(Held);

enum Held {
    Small(Vec<Line>),
    Large(MmapMut),
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u8; LINE_BYTES]);

pub(super) const LINE_BYTES: usize = 64;
/// From here on a room is large, and a whole number of large pages.
pub(super) const LARGE_LINES: usize = (2 << 20) / LINE_BYTES;

impl Room {
    /// How many lines one has that is made for so many.
    pub fn lines_for(lines: usize) -> usize {
        if lines < LARGE_LINES { lines } else { lines.next_multiple_of(LARGE_LINES) }
    }

    /// The most lines, up to so many, of which one has no more than it is made for.
    pub fn lines_within(lines: usize) -> usize {
        if lines < LARGE_LINES { lines } else { lines - lines % LARGE_LINES }
    }

    /// One of so many lines at least.
    pub fn new(lines: usize) -> Room {
        if lines < LARGE_LINES {
            return Room(Held::Small(vec![Line([0; LINE_BYTES]); lines]));
        }
        let bytes = Room::lines_for(lines) * LINE_BYTES;
        let map = MmapMut::map_anon(bytes).expect("memory for the index");
        // A kernel without large pages says no, and small ones do as well.
        let _ = map.advise(Advice::HugePage);
        Room(Held::Large(map))
    }

    pub fn len(&self) -> usize {
        match &self.0 {
            Held::Small(lines) => lines.len(),
            Held::Large(map) => map.len() / LINE_BYTES,
        }
    }

    pub fn line(&self, at: usize) -> &[u8; LINE_BYTES] {
        match &self.0 {
            Held::Small(lines) => &lines[at].0,
            Held::Large(map) => &map.as_chunks().0[at],
        }
    }

    pub fn line_mut(&mut self, at: usize) -> &mut [u8; LINE_BYTES] {
        match &mut self.0 {
            Held::Small(lines) => &mut lines[at].0,
            Held::Large(map) => &mut map.as_chunks_mut().0[at],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_or_large_it_is_empty_at_first_and_keeps_what_is_put_in() {
        for lines in [0, 1, LARGE_LINES - 1, LARGE_LINES, LARGE_LINES + 1] {
            let mut room = Room::new(lines);
            assert!(room.len() == Room::lines_for(lines) && room.len() >= lines);
            assert!((0..room.len()).all(|at| room.line(at) == &[0; LINE_BYTES]));
            for at in 0..room.len() {
                room.line_mut(at)[at % LINE_BYTES] = at as u8 | 1;
            }
            assert!((0..room.len()).all(|at| room.line(at)[at % LINE_BYTES] == at as u8 | 1));
        }
    }
}

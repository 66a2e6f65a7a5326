use memmap2::{Advice, MmapMut};

/// Memory in cache lines, all zero at first. A large one is asked of the kernel in huge pages: a read at random in
/// hundreds of megabytes waits for the address of a page as long as for its contents, and huge pages are so few that
/// their addresses are at hand.
pub(crate) struct HugeBuffer(Lines);

enum Lines {
    Small(Vec<Line>),
    Huge(MmapMut),
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u8; LINE_BYTES]);

pub(crate) const LINE_BYTES: usize = 64;
/// From this size on a buffer is large, and a whole number of huge pages.
pub(crate) const HUGE_LINES: usize = (2 << 20) / LINE_BYTES;

impl HugeBuffer {
    /// How many lines a buffer has that is made for at least `lines`.
    pub fn lines_for(lines: usize) -> usize {
        if lines < HUGE_LINES { lines } else { lines.next_multiple_of(HUGE_LINES) }
    }

    /// The most lines, up to `lines`, of which a buffer has no more than it is made for.
    pub fn lines_within(lines: usize) -> usize {
        if lines < HUGE_LINES { lines } else { lines - lines % HUGE_LINES }
    }

    /// A buffer of at least `lines` lines.
    pub fn new(lines: usize) -> HugeBuffer {
        if lines < HUGE_LINES {
            return HugeBuffer(Lines::Small(vec![Line([0; LINE_BYTES]); lines]));
        }
        let bytes = HugeBuffer::lines_for(lines) * LINE_BYTES;
        let map = MmapMut::map_anon(bytes).expect("memory for the index");
        // A kernel without huge pages says no, and small ones do as well.
        let _ = map.advise(Advice::HugePage);
        HugeBuffer(Lines::Huge(map))
    }

    #[inline]
    pub fn len(&self) -> usize {
        match &self.0 {
            Lines::Small(lines) => lines.len(),
            Lines::Huge(map) => map.len() / LINE_BYTES,
        }
    }

    #[inline]
    pub fn line(&self, at: usize) -> &[u8; LINE_BYTES] {
        match &self.0 {
            Lines::Small(lines) => &lines[at].0,
            Lines::Huge(map) => &map.as_chunks().0[at],
        }
    }

    #[inline]
    pub fn line_mut(&mut self, at: usize) -> &mut [u8; LINE_BYTES] {
        match &mut self.0 {
            Lines::Small(lines) => &mut lines[at].0,
            Lines::Huge(map) => &mut map.as_chunks_mut().0[at],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_or_large_it_is_empty_at_first_and_keeps_what_is_put_in() {
        for lines in [0, 1, HUGE_LINES - 1, HUGE_LINES, HUGE_LINES + 1] {
            let mut buffer = HugeBuffer::new(lines);
            assert!(buffer.len() == HugeBuffer::lines_for(lines) && buffer.len() >= lines);
            assert!((0..buffer.len()).all(|at| buffer.line(at) == &[0; LINE_BYTES]));
            for at in 0..buffer.len() {
                buffer.line_mut(at)[at % LINE_BYTES] = at as u8 | 1;
            }
            assert!((0..buffer.len()).all(|at| buffer.line(at)[at % LINE_BYTES] == at as u8 | 1));
        }
    }
}

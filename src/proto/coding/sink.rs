use super::limits::RATIO_FLOOR_BYTES;

/// How a layer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// At the end of its stream.
    Whole,
    /// The coded bytes ran out before that.
    Cut,
    /// The coded bytes make no sense.
    Corrupt,
    /// It goes on past the cap.
    Full,
    /// It grows out of all proportion.
    Bomb,
}

/// Where a layer's bytes go: it lends room in steps and keeps the caps.
pub(super) struct Sink<'a> {
    // start <= filled <= out.len() <= start + bytes_max + 1
    out: &'a mut Vec<u8>,
    start: usize,
    /// What lies beyond is room lent already.
    filled: usize,
    bytes_max: usize,
    ratio_max: u64,
    /// No layer may take more credit than what came over the wire.
    wire_bytes: usize,
}

/// Room lent at once. The ratio is looked at as often.
const STEP_BYTES: usize = 64 * 1024;
/// With less than this more is lent: no coding works well in a corner.
const ROOM_BYTES_MIN: usize = 4 * 1024;
/// What a page usually comes to for a byte on the wire, so that the first step fits most.
const RATIO_USUAL: usize = 6;

impl<'a> Sink<'a> {
    /// Appends to `out` at most `bytes_max`.
    pub fn new(out: &'a mut Vec<u8>, bytes_max: u64, ratio_max: u32, wire_bytes: usize) -> Sink<'a> {
        let start = out.len();
        // One byte more is decoded, to tell a document of exactly the size from a longer one.
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX).min(isize::MAX as usize / 2);
        Sink { out, start, filled: start, bytes_max, ratio_max: u64::from(ratio_max), wire_bytes }
    }

    pub fn produced(&self) -> usize {
        self.filled - self.start
    }

    /// Room for the next step, never empty. `consumed` is how much of the coded bytes was read for what is there.
    pub fn room(&mut self, consumed: usize) -> Result<&mut [u8], End> {
        let produced = self.produced();
        if self.is_over() {
            return Err(End::Full);
        }
        let credit = consumed.min(self.wire_bytes) as u64;
        if produced as u64 > RATIO_FLOOR_BYTES.max(self.ratio_max.saturating_mul(credit)) {
            return Err(End::Bomb);
        }
        if self.out.len() - self.filled < ROOM_BYTES_MIN {
            let step = match produced {
                0 => self.wire_bytes.saturating_mul(RATIO_USUAL).clamp(2 * ROOM_BYTES_MIN, STEP_BYTES),
                _ => STEP_BYTES,
            };
            let len_max = self.start + self.bytes_max + 1;
            let len = (self.out.len() + step).min(len_max);
            // Doubled by ourselves, so that the last doubling stops at the cap.
            if len > self.out.capacity() {
                let capacity = len.max(self.out.capacity().saturating_mul(2)).min(len_max);
                self.out.reserve_exact(capacity - self.out.len());
            }
            self.out.resize(len, 0);
        }
        Ok(&mut self.out[self.filled..])
    }

    /// That many bytes of the room were written.
    pub fn fill(&mut self, bytes: usize) {
        self.filled += bytes;
        debug_assert!(self.filled <= self.out.len());
    }

    /// Whether more came than may be kept.
    pub fn is_over(&self) -> bool {
        self.produced() > self.bytes_max
    }

    /// What the last `bytes` filled are.
    pub fn last(&self, bytes: usize) -> &[u8] {
        &self.out[self.filled - bytes..self.filled]
    }
}

impl Drop for Sink<'_> {
    /// Takes back the room that was not used, and the one byte too many.
    fn drop(&mut self) {
        self.out.truncate(self.filled.min(self.start + self.bytes_max));
    }
}

use super::FrameError;
use super::fields::Fields;

/// The beat of a node, in the order in which it grows: each start has the next generation, each renewal the next `n`, and a
/// sealed one is the last of its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Beat {
    pub generation: u32,
    pub n: u64,
    pub sealed: bool,
}

impl Beat {
    /// Numbers at their end are no beat: nothing comes after them.
    pub fn is_beat(self) -> bool {
        self.generation < u32::MAX && self.n < u64::MAX
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(&self.n.to_le_bytes());
        out.push(u8::from(self.sealed));
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Beat, FrameError> {
        let beat = Beat { generation: fields.u32()?, n: fields.u64()?, sealed: fields.yes_or_no()? };
        if beat.is_beat() { Ok(beat) } else { fields.unreadable("with a beat after which there is none") }
    }
}

use super::header::SegmentHeader;
use super::reader::Reader;
use std::fs::File;

impl Reader {
    /// The user agent that the documents of a segment were asked for with, where it is known.
    pub fn agent(&self, segment: u64) -> Option<String> {
        let segment = self.segments.iter().find(|known| known.number == segment)?;
        // A segment may be sealed, and so renamed, between listing and opening.
        let file =
            File::open(&segment.path).or_else(|_| File::open(segment.path.with_extension("seg"))).ok()?;
        let header = SegmentHeader::of(&file, segment.number).ok()??;
        (!header.agent.is_empty()).then_some(header.agent)
    }
}

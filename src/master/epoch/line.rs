use crate::base::{u16_at, u32_at, u64_at};

/// A line of the intake as it waits in its partition: its fixed part, then URL, page, batch and tag.
///
/// | at | bytes | what             | at | bytes | what                             |
/// |----|-------|------------------|----|-------|----------------------------------|
/// | 0  | 8     | id               | 16 | 2     | bytes of the URL                 |
/// | 8  | 4     | time             | 18 | 1 + 1 | bytes of page and batch          |
/// | 12 | 4     | hits             | 20 | 1 + 1 | bytes of the tag; priority       |
///
/// Where several workers read, lines are told apart by the chunk that they came in: a fixed part alone whose URL would be
/// longer than one can be says that those behind it came in the chunk of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub id: u64,
    pub at_s: u32,
    pub hits: u32,
    pub priority: u8,
    pub url: &'a [u8],
    pub page: &'a [u8],
    pub batch: &'a [u8],
    pub tag: &'a [u8],
}

/// The fixed part.
#[derive(Clone, Copy)]
pub(super) struct LineHead<'a>(&'a [u8; HEAD_BYTES]);

pub(super) const HEAD_BYTES: usize = 22;
const CHUNK_MARK: u16 = u16::MAX;

const _: () = assert!(crate::limits::URL_BYTES_MAX < CHUNK_MARK as usize);

impl<'a> Line<'a> {
    pub fn bytes(&self) -> usize {
        HEAD_BYTES + self.url.len() + self.page.len() + self.batch.len() + self.tag.len()
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(&self.id.to_le_bytes());
        head[8..12].copy_from_slice(&self.at_s.to_le_bytes());
        head[12..16].copy_from_slice(&self.hits.to_le_bytes());
        head[16..18].copy_from_slice(&(self.url.len() as u16).to_le_bytes());
        head[18] = self.page.len() as u8;
        head[19] = self.batch.len() as u8;
        head[20] = self.tag.len() as u8;
        head[21] = self.priority;
        out.extend_from_slice(&head);
        for text in [self.url, self.page, self.batch, self.tag] {
            out.extend_from_slice(text);
        }
    }

    /// The one at the beginning of `bytes`, which was written there.
    pub fn read(bytes: &'a [u8]) -> Line<'a> {
        let head = LineHead::read(bytes);
        let url_end = HEAD_BYTES + head.url_bytes();
        let page_end = url_end + usize::from(head.0[18]);
        let batch_end = page_end + usize::from(head.0[19]);
        Line {
            id: head.id(),
            at_s: head.at_s(),
            hits: head.hits(),
            priority: head.0[21],
            url: &bytes[HEAD_BYTES..url_end],
            page: &bytes[url_end..page_end],
            batch: &bytes[page_end..batch_end],
            tag: &bytes[batch_end..batch_end + usize::from(head.0[20])],
        }
    }

    pub fn write_chunk_mark(chunk: u32, out: &mut Vec<u8>) {
        let mut head = [0; HEAD_BYTES];
        head[8..12].copy_from_slice(&chunk.to_le_bytes());
        head[16..18].copy_from_slice(&CHUNK_MARK.to_le_bytes());
        out.extend_from_slice(&head);
    }
}

impl<'a> LineHead<'a> {
    pub fn read(bytes: &'a [u8]) -> LineHead<'a> {
        LineHead(bytes.first_chunk().expect("a line lies whole in its block"))
    }

    /// The chunk that lines from here on came in, if this is no line.
    pub fn chunk(self) -> Option<u32> {
        (u16_at(self.0, 16) == CHUNK_MARK).then(|| u32_at(self.0, 8))
    }

    pub fn id(self) -> u64 {
        u64_at(self.0, 0)
    }

    pub fn at_s(self) -> u32 {
        u32_at(self.0, 8)
    }

    pub fn hits(self) -> u32 {
        u32_at(self.0, 12)
    }

    pub fn tag_bytes(self) -> usize {
        usize::from(self.0[20])
    }

    fn url_bytes(self) -> usize {
        usize::from(u16_at(self.0, 16))
    }

    /// Of all of the line.
    pub fn bytes(self) -> usize {
        let texts = [self.0[18], self.0[19], self.0[20]].map(usize::from);
        HEAD_BYTES + self.url_bytes() + texts[0] + texts[1] + texts[2]
    }
}

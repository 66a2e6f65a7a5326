use super::fields::Fields;
use super::url_item::{ITEM_BYTES_BESIDE_URL, LastItem};
use super::{FrameError, UrlItem};
use crate::limits::{URL_BATCH_BYTES_MAX, URL_BATCH_ITEMS_MAX, URL_BYTES_MAX};
use thiserror::Error;

/// URLs on their way to the node that owns them, under a number that it counts them by. Its items were looked at: all of
/// them can be read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct UrlBatch<'a> {
    pub batch: u64,
    count: u16,
    items: &'a [u8],
}

/// Bytes before the items: the batch's number and how many there are.
const HEAD_BYTES: usize = 8 + 2;

impl<'a> UrlBatch<'a> {
    /// What a builder of this process made, see [`UrlBatchBuilder::take`], under its number.
    pub fn built(batch: u64, bytes: &'a [u8]) -> UrlBatch<'a> {
        let (count, items) = bytes.split_first_chunk::<2>().unwrap_or((&[0; 2], &[]));
        UrlBatch { batch, count: u16::from_le_bytes(*count), items }
    }

    /// How many items it has.
    pub fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// Its items, in the order in which they were put in.
    pub fn items(&self) -> UrlItems<'a> {
        UrlItems { left: self.count, rest: self.items, last: LastItem::default() }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.batch.to_le_bytes());
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(self.items);
    }

    pub(super) fn read(fields: &mut Fields<'a>) -> Result<UrlBatch<'a>, FrameError> {
        let (batch, count, items) = (fields.u64()?, fields.u16()?, fields.rest());
        if usize::from(count) > URL_BATCH_ITEMS_MAX || HEAD_BYTES + items.len() > URL_BATCH_BYTES_MAX {
            return fields.unreadable("with more items or bytes than a batch may have");
        }
        let read = UrlBatch { batch, count, items };
        let mut looked = read.items();
        while looked.left > 0 {
            if let Err(what) = looked.read_next() {
                return fields.unreadable(what);
            }
        }
        if !looked.rest.is_empty() {
            return fields.unreadable("with bytes behind its last item");
        }
        Ok(read)
    }
}

impl std::fmt::Debug for UrlBatch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UrlBatch {} of {} items in {} bytes", self.batch, self.count, self.items.len())
    }
}

/// Goes through the items of a batch. An item is borrowed until the next is asked for, as it is told by what came before.
pub struct UrlItems<'a> {
    left: u16,
    rest: &'a [u8],
    last: LastItem,
}

impl UrlItems<'_> {
    /// The next item, or `None` behind the last.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend")]
    pub fn next(&mut self) -> Option<UrlItem<'_>> {
        if self.left == 0 {
            return None;
        }
        Some(self.read_next().expect("the items of a batch were looked at"))
    }

    fn read_next(&mut self) -> Result<UrlItem<'_>, &'static str> {
        self.left -= 1;
        UrlItem::read(&mut self.rest, &mut self.last)
    }
}

/// Why a batch does not take an item.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum PushError {
    /// It is the first of the next batch.
    #[error("a batch without room for another URL")]
    Room,
    /// It is the first of the next batch.
    #[error("a batch with all of its URLs")]
    Full,
    /// The receiver would refuse it, in any batch: a URL that is too long or not in normal form, or behind too many
    /// redirects.
    #[error("an item {0}")]
    Fault(&'static str),
}

/// Takes items until a batch is full. Items are told by the one before, so that sorted URLs take the least room.
#[derive(Default)]
pub struct UrlBatchBuilder {
    count: u16,
    items: Vec<u8>,
    last: LastItem,
}

impl UrlBatchBuilder {
    /// Takes an item, or says why it does not; the batch is then as it was.
    pub fn push(&mut self, item: &UrlItem<'_>) -> Result<(), PushError> {
        if let Some(fault) = item.fault() {
            return Err(PushError::Fault(fault));
        }
        if self.count() == URL_BATCH_ITEMS_MAX {
            return Err(PushError::Full);
        }
        if HEAD_BYTES + self.items.len() + ITEM_BYTES_BESIDE_URL + item.url.len() > URL_BATCH_BYTES_MAX {
            return Err(PushError::Room);
        }
        item.write(&mut self.items, &mut self.last);
        self.count += 1;
        Ok(())
    }

    pub fn count(&self) -> usize {
        usize::from(self.count)
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes that the batch has so far.
    pub fn bytes(&self) -> usize {
        HEAD_BYTES + self.items.len()
    }

    /// What was put in, under this number.
    pub fn batch(&self, batch: u64) -> UrlBatch<'_> {
        UrlBatch { batch, count: self.count, items: &self.items }
    }

    /// What was put in, as [`UrlBatch::built`] takes it; it is empty then.
    pub fn take(&mut self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(2 + self.items.len());
        bytes.extend_from_slice(&self.count.to_le_bytes());
        bytes.extend_from_slice(&self.items);
        self.clear();
        bytes
    }

    /// Makes it empty, for the next batch.
    pub fn clear(&mut self) {
        self.count = 0;
        self.items.clear();
        self.last.clear();
    }
}

const _: () = assert!(
    HEAD_BYTES + ITEM_BYTES_BESIDE_URL + URL_BYTES_MAX <= URL_BATCH_BYTES_MAX,
    "an empty batch takes any item"
);

use super::record::NewRecord;
use super::shard_store::{AppendError, ShardStore};
use crate::proto::record::{BadRecord, WireDecoder, WireRecord};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

/// The records that arrive over one connection from a spider. Whole records go to the store, in order, and are counted once
/// they are durable.
///
/// ```text
///   bytes ──► feed ──► WireDecoder ──► ShardStore::append     sequence numbers wait here
///                                                                    │ durable point of the shard
///   count ◄───────────────────── records that survive anything ◄────┘
/// ```
pub struct RecordIntake {
    decoder: WireDecoder,
    /// Sequence numbers of records that were not durable when last looked at. Other connections write to the same shard,
    /// so there are gaps between them.
    waiting: VecDeque<u64>,
    /// Records that are durable, and how many of them were reported to the peer. `told <= durable`
    durable: u64,
    told: u64,
    stored: Stored,
}

/// Counts of an intake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    pub records: u64,
    /// On the wire, and in segments.
    pub wire_bytes: u64,
    pub segment_bytes: u64,
}

/// How far feeding came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    /// Every whole record is stored.
    All,
    /// There is no segment: the rest waits, and the caller reads no more until another `feed` succeeds.
    NoSegment,
    /// The stream makes no sense from here on. What came before is stored.
    Bad(BadRecord),
}

impl RecordIntake {
    pub fn new(doc_bytes_max: u64) -> RecordIntake {
        RecordIntake {
            decoder: WireDecoder::new(doc_bytes_max),
            waiting: VecDeque::new(),
            durable: 0,
            told: 0,
            stored: Stored::default(),
        }
    }

    /// Takes bytes that arrived at `unix_ms`, perhaps none, and stores every record that is whole by now.
    pub fn feed(&mut self, bytes: &[u8], store: &mut ShardStore, unix_ms: u64) -> Fed {
        if !bytes.is_empty() {
            self.decoder.push(bytes);
        }
        loop {
            let record = match self.decoder.peek() {
                Ok(Some(record)) => record,
                Ok(None) => return Fed::All,
                Err(bad) => return Fed::Bad(bad),
            };
            let appended = match store.append(&record_of(&record, unix_ms)) {
                Ok(appended) => appended,
                Err(AppendError::NoSegment) => return Fed::NoSegment,
                Err(AppendError::TooLarge) => {
                    unreachable!("a segment holds the largest document: checked at start")
                }
            };
            let wire_bytes = record.wire_bytes();
            self.decoder.take(wire_bytes);
            self.waiting.push_back(appended.sequence);
            self.stored.records += 1;
            self.stored.wire_bytes += wire_bytes as u64;
            self.stored.segment_bytes += appended.bytes as u64;
        }
    }

    /// The count to report when the shard's durable point is here; `None` if it did not move.
    pub fn count(&mut self, durable: u64) -> Option<u64> {
        while self.waiting.front().is_some_and(|&sequence| sequence <= durable) {
            self.waiting.pop_front();
            self.durable += 1;
        }
        (self.durable > self.told).then(|| {
            self.told = self.durable;
            self.told
        })
    }

    /// The count that was reported last.
    pub fn told(&self) -> u64 {
        self.told
    }

    /// Every record that was stored is durable and counted.
    pub fn is_counted(&self) -> bool {
        self.waiting.is_empty() && self.told == self.durable
    }

    /// Nothing waits to become a record: the stream may end here.
    pub fn is_between_records(&self) -> bool {
        self.decoder.held() == 0
    }

    /// Ends the stream: bytes that are no whole record are dropped.
    pub fn close(&mut self) {
        self.decoder.clear();
    }

    /// Bytes that came and are not stored.
    pub fn held(&self) -> usize {
        self.decoder.held()
    }

    pub fn stored(&self) -> Stored {
        self.stored
    }
}

/// The wire format has no server address, response head or flags.
fn record_of<'a>(record: &WireRecord<'a>, unix_ms: u64) -> NewRecord<'a> {
    NewRecord {
        doc_id: record.doc_id,
        url: record.url,
        new_url: record.new_url,
        success: record.success,
        result: record.result,
        http_code: record.http_code,
        status: record.http_code.status().unwrap_or(0),
        flags: 0,
        took_ms: record.took_ms,
        fetched_unix_ms: unix_ms.saturating_sub(u64::from(record.took_ms)),
        ip: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        port: 0,
        bytes: record.document,
        head_len: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::record::{HttpCode, ResultCode};
    use crate::store_server::{Compress, Keeper, Medium, StoreRules};

    const DOC_BYTES_MAX: u64 = 1 << 16;

    fn keeper(segment_bytes: u64) -> Keeper {
        // Pages that are alike fill segments.
        let rules = StoreRules { compress: Compress::Plain, ..StoreRules::of_size(segment_bytes) };
        Keeper::new(Medium::Memory { next_number: 0 }, rules, 1)
    }

    fn wire(doc_id: u32, document: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let url = format!("http://a.test/{doc_id}");
        let record = WireRecord {
            doc_id,
            success: true,
            result: ResultCode::Ok,
            http_code: HttpCode::from_status(200),
            took_ms: 5,
            url: &url,
            new_url: None,
            document,
        };
        record.write(&mut out);
        out
    }

    #[test]
    fn records_are_counted_when_they_are_durable_and_not_before() {
        let mut keeper = keeper(1 << 20);
        keeper.prepare(0).unwrap();
        let share = keeper.share(0);
        let mut store = ShardStore::new(share.clone());
        let (mut one, mut two) = (RecordIntake::new(DOC_BYTES_MAX), RecordIntake::new(DOC_BYTES_MAX));
        let stream = [wire(1, b"a"), wire(2, b"b"), wire(3, b"c")].concat();
        assert_eq!(one.feed(&stream[..stream.len() - 1], &mut store, 0), Fed::All);
        assert_eq!((one.stored().records, one.is_between_records()), (2, false));
        assert_eq!(one.count(share.durable()), None, "nothing is durable yet");
        keeper.turn(0).unwrap();
        // Written after the commit, by another connection: the point of the shard is not past it.
        assert_eq!(two.feed(&stream, &mut store, 0), Fed::All);
        assert_eq!((one.count(share.durable()), two.count(share.durable())), (Some(2), None));
        assert_eq!(one.count(share.durable()), None, "told once");
        assert_eq!(one.feed(&stream[stream.len() - 1..], &mut store, 0), Fed::All);
        assert!(one.is_between_records() && !one.is_counted());
        keeper.turn(0).unwrap();
        assert_eq!((one.count(share.durable()), two.count(share.durable())), (Some(3), Some(3)));
        assert!(one.is_counted() && one.told() == 3);
    }

    #[test]
    fn what_comes_after_nonsense_is_not_stored() {
        let mut keeper = keeper(1 << 20);
        keeper.prepare(0).unwrap();
        let mut store = ShardStore::new(keeper.share(0));
        let mut intake = RecordIntake::new(DOC_BYTES_MAX);
        let mut bad = wire(2, b"b");
        bad[4] = 9;
        let stream = [wire(1, b"a"), bad, wire(3, b"c")].concat();
        assert_eq!(intake.feed(&stream, &mut store, 0), Fed::Bad(BadRecord::Success(9)));
        assert_eq!(intake.feed(&[], &mut store, 0), Fed::Bad(BadRecord::Success(9)), "for good");
        keeper.turn(0).unwrap();
        assert_eq!(intake.count(keeper.share(0).durable()), Some(1), "the one before it");
    }

    #[test]
    fn without_a_segment_everything_waits_and_goes_on() {
        let mut keeper = keeper(256 << 10);
        let mut store = ShardStore::new(keeper.share(0));
        let mut intake = RecordIntake::new(DOC_BYTES_MAX);
        let mut noise = crate::base::Rng::new(1);
        let document: Vec<u8> = (0..60_000).map(|_| noise.below(256) as u8).collect();
        let stream: Vec<u8> = (0..20).flat_map(|id| wire(id, &document)).collect();
        assert_eq!(intake.feed(&stream, &mut store, 0), Fed::NoSegment);
        assert_eq!((intake.stored(), intake.held()), (Stored::default(), stream.len()));
        let mut turns = 0;
        while intake.feed(&[], &mut store, 0) == Fed::NoSegment {
            keeper.turn(0).unwrap();
            turns += 1;
            assert!(turns < 50);
        }
        assert!(turns > 4, "a segment holds a few of them only");
        keeper.turn(0).unwrap();
        assert_eq!(intake.count(keeper.share(0).durable()), Some(20));
        let Stored { records, wire_bytes, segment_bytes } = intake.stored();
        assert_eq!((records, wire_bytes), (20, stream.len() as u64));
        assert!(segment_bytes >= 20 * 60_000);
    }

    #[test]
    fn what_the_wire_does_not_tell_is_not_made_up() {
        let bytes = wire(9, b"page");
        let mut decoder = WireDecoder::new(DOC_BYTES_MAX);
        decoder.push(&bytes);
        let record = record_of(&decoder.peek().unwrap().unwrap(), 1_000);
        assert_eq!((record.status, record.fetched_unix_ms, record.took_ms), (200, 995, 5));
        assert_eq!((record.flags, record.port, record.head_len), (0, 0, 0));
        assert!(record.ip.is_unspecified());
        let other = WireRecord { http_code: HttpCode::OTHER, ..decoder.peek().unwrap().unwrap() };
        assert_eq!(record_of(&other, 1).status, 0);
        assert_eq!(record_of(&other, 1).fetched_unix_ms, 0);
    }
}

//! A made-up reflog: who asked for which page, when, and how often.

use crate::base::Rng;
use crate::proto::reflog::{ReflogRecord, RejectReason, Stamp};
use std::io::{self, Write};

/// What to make up. The same values have the same bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReflogSpec {
    pub seed: u64,
    /// Records, the bad ones included.
    pub records: u64,
    /// URLs to draw from. The nth is asked for as often as 1 / n^0.83 says.
    pub urls: u64,
    /// Records are spread evenly over this time, a few seconds out of order.
    pub from: Stamp,
    pub seconds: u32,
    /// Breaks records over lines, and plants unknown and bad lines among them.
    pub rough: bool,
}

/// What was made up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReflogMade {
    pub lines: u64,
    /// Those that can be taken, and their hits.
    pub records: u64,
    pub hits: u64,
    pub unknown: u64,
    /// The lines that cannot be taken, and why.
    pub rejects: Vec<(u64, RejectReason)>,
}

/// How the popularity of URLs falls off.
const ZIPF: f64 = 0.83;
/// A batch is written every so often.
const BATCH_S: u32 = 60;
/// Bytes that are written at once.
const PIECE_BYTES: usize = 64 * 1_024;

/// Writes a reflog. `url` writes the URL of a number below `spec.urls`, in the order of popularity.
pub fn write_lines(
    spec: &ReflogSpec,
    mut url: impl FnMut(u64, &mut Vec<u8>),
    out: &mut (impl Write + ?Sized),
) -> io::Result<ReflogMade> {
    let mut made = ReflogMade::default();
    let mut rng = Rng::new(spec.seed);
    let (mut piece, mut text, mut line, mut batch) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for number in 0..spec.records {
        let rank = rank(unit(&mut rng), spec.urls);
        let draw = rng.next_u64();
        let passed_s =
            (u128::from(number) * u128::from(spec.seconds) / u128::from(spec.records.max(1))) as u32;
        let at_s = spec.from.s().saturating_add(passed_s).saturating_sub((draw & 3) as u32);
        batch.clear();
        batch.extend_from_slice(&Stamp::from_s(at_s - at_s % BATCH_S).digits());
        batch.extend_from_slice(b"95");
        text.clear();
        url(rank, &mut text);
        let page = (2_000 + rank % 7_919).to_string();
        let record = ReflogRecord {
            batch: &batch,
            priority: 5,
            at: Stamp::from_s(at_s),
            page: page.as_bytes(),
            url: &text,
            // Half of them once, a quarter twice, and so on.
            hits: 1 + (draw >> 8 | 1 << 20).trailing_zeros(),
            // A page changes now and then, by its own clock; some say nothing of it.
            tag: match Rng::mix(rank ^ spec.seed) % 8 {
                0 => b"",
                shift => [b"0", b"1", b"2", b"3"][(at_s / (shift as u32 * 1_800)) as usize % 4],
            },
        };
        line.clear();
        record.write(&mut line);
        match spec.rough {
            true => made.plant(&record, &line, &mut rng, &mut piece),
            false => {
                piece.extend_from_slice(&line);
                made.take(&record, 1);
            }
        }
        if piece.len() >= PIECE_BYTES {
            out.write_all(&piece)?;
            piece.clear();
        }
    }
    out.write_all(&piece)?;
    Ok(made)
}

impl ReflogMade {
    fn take(&mut self, record: &ReflogRecord<'_>, lines: u64) {
        self.records += 1;
        self.hits += u64::from(record.hits);
        self.lines += lines;
    }

    /// A record as real files have it, or as none should.
    fn plant(&mut self, record: &ReflogRecord<'_>, line: &[u8], rng: &mut Rng, out: &mut Vec<u8>) {
        let fields: Vec<&[u8]> = line[..line.len() - 1].split(|&byte| byte == b'\t').collect();
        let mut put = |rows: &[&[&[u8]]]| {
            for row in rows {
                out.extend_from_slice(&row.join(&b'\t'));
                out.push(b'\n');
            }
        };
        let (head, url, rest) = (&fields[..4], fields[4], &fields[5..]);
        let with_tab = [head, &[b""]].concat();
        let but = |place: usize, field: &'static [u8]| {
            let mut changed = fields.clone();
            changed[place] = field;
            changed
        };
        let bad = match rng.below(100) {
            0 => Some((but(0, b"first"), RejectReason::Batch)),
            1 => Some((but(1, b"high"), RejectReason::Priority)),
            2 => Some((but(2, b"20110230000000"), RejectReason::Time)),
            3 => Some((but(3, b"none"), RejectReason::Page)),
            4 => Some((but(4, b""), RejectReason::NoUrl)),
            5 => Some((but(5, b"many"), RejectReason::Hits)),
            6 => Some(([&fields[..], &[b"more"]].concat(), RejectReason::TooManyFields)),
            7 => Some((head.to_vec(), RejectReason::Unfinished)),
            8 => Some((but(4, b"ftp://h0.farm.test/"), RejectReason::UrlScheme)),
            9 => Some((but(4, b"http://[bad"), RejectReason::UrlSyntax)),
            _ => None,
        };
        if let Some((fields, why)) = bad {
            put(&[&fields]);
            self.lines += 1;
            return self.rejects.push((self.lines, why));
        }
        let lines = match rng.below(10) {
            0 => {
                put(&[&[b"#17 dump"], &fields]);
                self.unknown += 1;
                2
            }
            1 => {
                put(&[&[], &fields, &[]]);
                3
            }
            2 => {
                put(&[head, &fields[4..]]);
                2
            }
            3 => {
                put(&[&with_tab, &fields[4..]]);
                2
            }
            4 => {
                put(&[&fields[..5], rest]);
                2
            }
            5 => {
                put(&[&with_tab, &[url, b""], rest]);
                3
            }
            6 => {
                let tag = [fields[6], b"\r"].concat();
                put(&[&[&fields[..6], &[&tag]].concat()]);
                1
            }
            _ => {
                put(&[&fields]);
                1
            }
        };
        self.take(record, lines);
    }
}

/// A number in `0.0..1.0`.
fn unit(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// A rank below `count`, by the inverse of Zipf's sum.
fn rank(unit: f64, count: u64) -> u64 {
    let share = 1.0 - ZIPF;
    let sum = ((count + 1) as f64).powf(share) - 1.0;
    ((unit * sum + 1.0).powf(1.0 / share) as u64).saturating_sub(1).min(count.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::reflog::{ReflogReader, Told};
    use crate::proto::url::CrawlUrl;
    use std::collections::HashMap;

    const SPEC: ReflogSpec = ReflogSpec {
        seed: 7,
        records: 5_000,
        urls: 2_000,
        from: Stamp::from_s(1_311_797_000),
        seconds: 3_600,
        rough: false,
    };

    fn made(spec: &ReflogSpec) -> (Vec<u8>, ReflogMade) {
        let mut out = Vec::new();
        let url = |rank: u64, text: &mut Vec<u8>| {
            text.extend_from_slice(format!("http://h{}.farm.test/p{rank}", rank % 50).as_bytes());
        };
        let made = write_lines(spec, url, &mut out).unwrap();
        (out, made)
    }

    #[test]
    fn a_log_is_drawn_and_its_urls_are_not_alike() {
        let (bytes, told) = made(&SPEC);
        assert_eq!((bytes, told.clone()), made(&SPEC), "seeded");
        assert_ne!(made(&SPEC).0, made(&ReflogSpec { seed: 8, ..SPEC }).0);
        let (mut hits, mut counts, mut last, mut tags) = (0, HashMap::new(), 0, HashMap::new());
        ReflogReader::default().read(&made(&SPEC).0, |told| {
            let Told::Record { record, .. } = told else { panic!("{told:?}") };
            hits += u64::from(record.hits);
            *counts.entry(record.url.to_vec()).or_insert(0u32) += 1;
            *tags.entry(record.tag.to_vec()).or_insert(0u32) += 1;
            assert!(record.at.s() + 5 > last);
            last = record.at.s();
        });
        assert_eq!((told.lines, told.records, told.hits), (5_000, 5_000, hits));
        assert!((3_590..=3_600).contains(&(last - SPEC.from.s())), "{last}");
        let most = *counts.values().max().unwrap();
        assert!(counts.len() > 800 && most > 100, "{} URLs, one {most} times", counts.len());
        assert!(tags.len() >= 4, "{tags:?}");
    }

    #[test]
    fn what_is_planted_is_what_is_found() {
        let (bytes, told) = made(&ReflogSpec { rough: true, ..SPEC });
        let (mut records, mut hits, mut rejects) = (0, 0, Vec::new());
        let mut reader = ReflogReader::default();
        let mut tell = |told: Told<'_>| match told {
            Told::Record { line, record } => match CrawlUrl::parse(str::from_utf8(record.url).unwrap()) {
                Ok(_) => {
                    records += 1;
                    hits += u64::from(record.hits);
                }
                Err(error) => rejects.push((line, RejectReason::from(&error))),
            },
            Told::Reject(reject) => rejects.push((reject.line, reject.why)),
        };
        reader.read(&bytes, &mut tell);
        reader.end(&mut tell);
        let counts = reader.counts();
        let found = ReflogMade { lines: counts.lines, records, hits, unknown: counts.unknown, rejects };
        assert_eq!(found, told);
        assert!(told.rejects.len() > 300 && told.records > 4_000 && told.unknown > 300, "{told:?}");
    }
}

//! Reflogs as a banner system writes them, made by a seed.

use crate::base::{Rng, push_decimal};
use crate::proto::reflog::Stamp;
use std::io::{self, Write};

/// Two files or more of which each knows a third of the one before.
///
/// How often a URL comes follows Zipf's law with exponent 0.83: ten million lines hold 4.2 million URLs, of 200,000
/// domains, in 93 bytes each. All URLs are in their normal form, so that a program that goes by the text says the same.
#[derive(Clone, Copy)]
pub struct LogMaker {
    pub lines: u64,
    pub seed: u64,
}

/// The time that the first file begins at.
pub const BEGIN_S: u32 = 1_800_000_000;
/// From the beginning of a file to that of the next, and all that it spans.
pub const FILE_S: u32 = 1_500;

const EXPONENT: f64 = 0.83;
/// URLs that may come, for each line of a file, which makes four of ten lines new ones.
const URLS_PER_LINE: f64 = 1.95;
/// Of a thousand URLs that may come in one file, those that may come in the next, too.
const SHARED_PER_MILLE: u64 = 950;
const DOMAINS: u64 = 200_000;

impl LogMaker {
    /// The moment that a file is joined at.
    pub fn now_s(file: u32) -> u32 {
        BEGIN_S + (file + 1) * FILE_S
    }

    pub fn write(&self, file: u32, out: &mut impl Write) -> io::Result<()> {
        let mut rng = Rng::new(Rng::mix(self.seed ^ u64::from(file) << 32));
        let urls = (self.lines as f64 * URLS_PER_LINE).max(1.0);
        let mut text = Vec::with_capacity(1 << 17);
        for line in 0..self.lines {
            let chance = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            let rank = (urls * chance.powf(1.0 / (1.0 - EXPONENT))) as u64;
            let at_s = BEGIN_S + file * FILE_S + (line * u64::from(FILE_S) / self.lines) as u32;
            self.line(file, rank, at_s, &mut rng, &mut text);
            if text.len() > 1 << 16 {
                out.write_all(&text)?;
                text.clear();
            }
        }
        out.write_all(&text)
    }

    fn line(&self, file: u32, rank: u64, at_s: u32, rng: &mut Rng, out: &mut Vec<u8>) {
        let shared = Rng::mix(rank ^ self.seed);
        let of_file = if shared % 1_000 < SHARED_PER_MILLE { 0 } else { u64::from(file) + 1 };
        let url = Rng::mix(shared ^ of_file << 48);
        let chance = rng.next_u64();
        push_decimal(out, 2_026_111_600_000_000 + u64::from(at_s / 10));
        out.extend_from_slice(b"\t5\t");
        out.extend_from_slice(&Stamp::from_s(at_s).digits());
        out.push(b'\t');
        push_decimal(out, 1_000 + url % 9_000);
        out.push(b'\t');
        push_url(url, out);
        out.push(b'\t');
        push_decimal(out, if chance.is_multiple_of(8) { 1 + chance / 8 % 9 } else { 1 });
        out.push(b'\t');
        // One of seven changes from a file to the next, and some say nothing.
        let changes = Rng::mix(url ^ u64::from(file)).is_multiple_of(7);
        if !(chance / 64).is_multiple_of(5) {
            push_decimal(out, url / 16 % 3 + u64::from(changes));
        }
        out.push(b'\n');
    }
}

fn push_url(url: u64, out: &mut Vec<u8>) {
    // Some domains have far more than others.
    let share = (url >> 40) as f64 / (1u64 << 24) as f64;
    let domain = (share * share * DOMAINS as f64) as u64;
    out.extend_from_slice(match domain % 4 {
        0 => b"http://",
        1 => b"https://",
        2 => b"http://www.",
        _ => b"https://www.",
    });
    out.extend_from_slice(b"site");
    push_decimal(out, domain);
    out.extend_from_slice(match domain % 11 {
        0 => b".com.ru/",
        1 | 2 => b".com/",
        _ => b".ru/",
    });
    let number = url & 0xff_ffff_ffff;
    match url % 8 {
        0..4 => {
            out.extend_from_slice(b"news/");
            push_decimal(out, number);
            out.extend_from_slice(b".html");
        }
        4..7 => {
            out.extend_from_slice(b"index.php?newsid=");
            push_decimal(out, number);
        }
        _ => {
            out.extend_from_slice(b"s?q=%D0%BF%20");
            push_decimal(out, number);
        }
    }
}

use flate2::Decompress;
use zstd_safe::DCtx;

use super::brotli::unbrotli;
use super::gzip::gunzip;
use super::inflate::undeflate;
use super::limits::CodingLimits;
use super::names::{Coding, codings};
use super::sink::{End, Sink};
use super::zstd::{self, unzstd};

/// Undoes content codings. Meant to be used again and again: what it keeps between uses is bounded.
#[derive(Default)]
pub struct ContentDecoder {
    inflate: Option<Decompress>,
    zstd: Option<DCtx<'static>>,
    /// What one layer leaves for the next.
    scratch: [Vec<u8>; 2],
}

/// What became of a coded body.
///
/// Where it is [`Decoded::Broken`] or [`Decoded::Bomb`] and nothing was appended, the body is not in the coding it
/// claims, or broke off before its first byte: what came is then all there is to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Decoded {
    /// No coding, or no body: nothing was done, and the bytes are the document as they are.
    Plain,
    /// All of it was decoded.
    Whole,
    /// The stream broke off, is corrupt, or does not match its own checksum; what was decoded was appended.
    Broken,
    /// The document is longer than `bytes_max`; exactly that much of it was appended.
    TooLarge,
    /// Too many layers, or one that grows out of all proportion; what was decoded until then was appended.
    Bomb,
    /// A coding that we do not know: nothing was done.
    Unknown,
}

/// What a scratch buffer may keep.
const SCRATCH_KEPT_BYTES: usize = 256 * 1024;
/// How much longer than the document its coded form may be: headers, and blocks that would not shrink.
const CODED_EXTRA_BYTES: u64 = 64 * 1024;

impl ContentDecoder {
    pub fn new() -> ContentDecoder {
        ContentDecoder::default()
    }

    /// Decodes `coded`, a whole body or the beginning of one, and appends the document to `out`. `header` is the
    /// value of Content-Encoding, or all its values joined with commas; see [`super::header_of`].
    ///
    /// A server may name a coding once too often. A layer whose very first bytes are not in its coding is
    /// therefore left as it is: the result is [`Decoded::Broken`], with the bytes of the layer before.
    pub fn decode(
        &mut self,
        header: &[u8],
        coded: &[u8],
        limits: &CodingLimits,
        out: &mut Vec<u8>,
    ) -> Decoded {
        let mut layers = 0;
        for coding in codings(header) {
            if coding.is_none() {
                return Decoded::Unknown;
            }
            layers += 1;
        }
        if layers == 0 || coded.is_empty() {
            return Decoded::Plain;
        }
        if layers > usize::from(limits.layers_max) {
            return Decoded::Bomb;
        }
        let [mut from, mut to] = std::mem::take(&mut self.scratch);
        let decoded = self.undo(codings(header).flatten(), layers, coded, limits, out, [&mut from, &mut to]);
        for scratch in [&mut from, &mut to] {
            scratch.clear();
            scratch.shrink_to(SCRATCH_KEPT_BYTES);
        }
        self.scratch = [from, to];
        if self.zstd.as_ref().is_some_and(|state| state.sizeof() > zstd::KEPT_BYTES_MAX) {
            self.zstd = None;
        }
        decoded
    }

    /// Undoes layer after layer, the last one into `out`.
    fn undo(
        &mut self,
        codings: impl Iterator<Item = Coding>,
        layers: usize,
        coded: &[u8],
        limits: &CodingLimits,
        out: &mut Vec<u8>,
        [mut from, mut to]: [&mut Vec<u8>; 2],
    ) -> Decoded {
        // All that lies between layers, together: an honest stack shrinks with every layer but the first.
        let mut between_left = limits.bytes_max.saturating_add(CODED_EXTRA_BYTES);
        let (mut broken, mut too_long_between) = (false, false);
        for (index, coding) in codings.enumerate() {
            let is_last = index + 1 == layers;
            let input: &[u8] = if index == 0 { coded } else { from };
            if input.is_empty() {
                break;
            }
            let (target, bytes_max) =
                if is_last { (&mut *out, limits.bytes_max) } else { (&mut *to, between_left) };
            let mut sink = Sink::new(target, bytes_max, limits.ratio_max, coded.len());
            let end = self.undo_one(coding, input, &mut sink);
            let end = if sink.is_over() { End::Full } else { end };
            let produced = sink.produced();
            drop(sink);
            match end {
                End::Whole => {}
                End::Corrupt if produced == 0 => {
                    if index > 0 {
                        let kept = input.len().min(usize::try_from(limits.bytes_max).unwrap_or(usize::MAX));
                        out.extend_from_slice(&input[..kept]);
                    }
                    return Decoded::Broken;
                }
                End::Cut | End::Corrupt => broken = true,
                End::Full if is_last => return Decoded::TooLarge,
                End::Full => too_long_between = true,
                End::Bomb => return Decoded::Bomb,
            }
            if !is_last {
                between_left = between_left.saturating_sub(produced as u64);
                std::mem::swap(&mut from, &mut to);
                to.clear();
            }
        }
        match (too_long_between, broken) {
            (true, _) => Decoded::Bomb,
            (false, true) => Decoded::Broken,
            (false, false) => Decoded::Whole,
        }
    }

    fn undo_one(&mut self, coding: Coding, coded: &[u8], sink: &mut Sink<'_>) -> End {
        match coding {
            Coding::Gzip => gunzip(self.inflate(), coded, sink),
            Coding::Deflate => undeflate(self.inflate(), coded, sink),
            Coding::Brotli => unbrotli(coded, sink),
            Coding::Zstd => {
                if self.zstd.is_none() {
                    self.zstd = zstd::state();
                }
                self.zstd.as_mut().map_or(End::Corrupt, |state| unzstd(state, coded, sink))
            }
        }
    }

    fn inflate(&mut self) -> &mut Decompress {
        self.inflate.get_or_insert_with(|| Decompress::new(false))
    }

    /// Bytes that are held between uses, inflate's own aside, which are always the same.
    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        self.scratch.iter().map(Vec::capacity).sum::<usize>()
            + self.zstd.as_ref().map_or(0, |state| state.sizeof())
    }
}

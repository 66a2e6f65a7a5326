use super::file::{InputError, InputFault};
use super::raw::{InputSum, Raw};
use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, Read};
use std::mem;
use std::path::PathBuf;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, get_error_name};

/// What a packed file may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputBounds {
    pub bytes_max: u64,
    /// Text to packed bytes, beyond `free_bytes` of text.
    pub ratio_max: u64,
    pub free_bytes: u64,
}

/// A log packs by ten to one; ten million times the same line is a log, too, and a gigabyte.
impl Default for InputBounds {
    fn default() -> InputBounds {
        InputBounds { bytes_max: 1 << 38, ratio_max: 500, free_bytes: 1 << 30 }
    }
}

/// The text of a file in chunks.
pub struct InputReader {
    path: PathBuf,
    bounds: InputBounds,
    body: Body,
    /// What was lent out last, in a plain file.
    lent: usize,
    /// Unpacked text.
    out: Vec<u8>,
    bytes: u64,
}

enum Body {
    Plain(Raw),
    Gzip(Box<GzDecoder<Raw>>),
    Zstd {
        raw: Raw,
        state: DCtx<'static>,
        /// Bytes that the state asks for.
        wanted: usize,
        in_frame: bool,
        /// Text waits in the state for room.
        flushing: bool,
    },
    /// Nothing more is told of it.
    Ended(Raw),
    Gone,
}

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// Text is unpacked in pieces of this size.
const OUT_BYTES: usize = 256 * 1_024;
/// 32 MiB: what `zstd --ultra` and `--long` may ask for is not worth the memory.
const WINDOW_LOG_MAX: u32 = 25;

impl InputReader {
    pub(super) fn new(
        path: PathBuf,
        input: Box<dyn Read + Send>,
        bytes: Option<u64>,
        bounds: InputBounds,
    ) -> Result<InputReader, InputError> {
        let mut raw = Raw::new(input, bytes);
        let start = match raw.peek(ZSTD.len()) {
            Ok(start) => start,
            Err(error) => return Err(InputError { path, fault: InputFault::Unreadable(error) }),
        };
        let body = match start {
            start if start.starts_with(GZIP) => Body::Gzip(Box::new(GzDecoder::new(raw))),
            start if starts_frame(start) => {
                let mut state = DCtx::create();
                let bounded = state.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX));
                debug_assert!(bounded.is_ok(), "a window that the library knows");
                Body::Zstd { raw, state, wanted: 1, in_frame: false, flushing: false }
            }
            _ => Body::Plain(raw),
        };
        let out = match body {
            Body::Plain(_) => Vec::new(),
            _ => vec![0; OUT_BYTES],
        };
        Ok(InputReader { path, bounds, body, lent: 0, out, bytes: 0 })
    }

    /// The next piece of text, which is not empty; `None` at the end. After an error there is no more.
    pub fn chunk(&mut self) -> Result<Option<&[u8]>, InputError> {
        let told = match &mut self.body {
            Body::Plain(raw) => {
                raw.consume(mem::take(&mut self.lent));
                match raw.fill_buf() {
                    Ok(text) => Ok(text.len()),
                    Err(error) => Err(InputFault::Unreadable(error)),
                }
            }
            Body::Ended(_) | Body::Gone => Ok(0),
            Body::Gzip(_) | Body::Zstd { .. } => self.unpacked(),
        };
        let told = told.and_then(|count| self.checked(count));
        match told {
            Ok(0) => Ok(None),
            Ok(count) => {
                self.bytes += count as u64;
                Ok(Some(match &self.body {
                    Body::Plain(raw) => {
                        self.lent = count;
                        raw.had()
                    }
                    _ => &self.out[..count],
                }))
            }
            Err(fault) => {
                self.stop();
                Err(InputError { path: self.path.clone(), fault })
            }
        }
    }

    /// Text told so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The digest of the whole file, whatever could be made of it.
    pub fn finish(mut self) -> Result<InputSum, InputError> {
        self.stop();
        let Body::Ended(raw) = self.body else { unreachable!("it was stopped") };
        match raw.sum() {
            Ok((sum, false)) => Ok(sum),
            Ok((_, true)) => Err(InputError { path: self.path, fault: InputFault::Shrunk }),
            Err(error) => Err(InputError { path: self.path, fault: InputFault::Unreadable(error) }),
        }
    }

    fn stop(&mut self) {
        self.body = match mem::replace(&mut self.body, Body::Gone) {
            Body::Plain(raw) | Body::Zstd { raw, .. } | Body::Ended(raw) => Body::Ended(raw),
            Body::Gzip(decoder) => Body::Ended(decoder.into_inner()),
            Body::Gone => Body::Gone,
        };
    }

    /// A count of text that is told next, if it is within bounds.
    fn checked(&self, count: usize) -> Result<usize, InputFault> {
        let (packing, raw) = match &self.body {
            Body::Gzip(decoder) => ("gzip", decoder.get_ref()),
            Body::Zstd { raw, .. } => ("zstd", raw),
            Body::Plain(raw) if count == 0 && raw.is_shrunk() => return Err(InputFault::Shrunk),
            Body::Plain(_) | Body::Ended(_) | Body::Gone => return Ok(count),
        };
        let (bytes, packed) = (self.bytes + count as u64, raw.consumed());
        let InputBounds { bytes_max, ratio_max, free_bytes } = self.bounds;
        match bytes > bytes_max || (bytes > free_bytes && bytes / packed.max(1) > ratio_max) {
            true => Err(InputFault::Bomb { packing, raw: packed, bytes: self.bytes }),
            false => Ok(count),
        }
    }

    /// Puts text into `out`.
    fn unpacked(&mut self) -> Result<usize, InputFault> {
        loop {
            let step = match &mut self.body {
                Body::Gzip(decoder) => match decoder.read(&mut self.out) {
                    Ok(0) => None,
                    Ok(count) => return Ok(count),
                    Err(error) => return Err(gzip_fault(error, decoder.get_ref(), self.bytes)),
                },
                Body::Zstd { .. } => Some(self.zstd_step()?),
                _ => return Ok(0),
            };
            match step {
                Some(Zstd::Text(count)) => return Ok(count),
                Some(Zstd::None) => continue,
                Some(Zstd::End) => {}
                None if self.next_member()? => continue,
                None => {}
            }
            self.stop();
            return Ok(0);
        }
    }

    /// Begins the next gzip member, if there is one. Zeros fill up a tape or a block, and are no rubbish.
    fn next_member(&mut self) -> Result<bool, InputFault> {
        let Body::Gzip(decoder) = mem::replace(&mut self.body, Body::Gone) else { return Ok(false) };
        let mut raw = decoder.into_inner();
        let is_next = raw.peek(GZIP.len()).map(|start| start == GZIP);
        if matches!(is_next, Ok(true)) {
            self.body = Body::Gzip(Box::new(GzDecoder::new(raw)));
            return Ok(true);
        }
        let rest = is_next.and_then(|_| rubbish(&mut raw));
        let is_shrunk = raw.is_shrunk();
        self.body = Body::Ended(raw);
        match rest {
            Err(error) => Err(InputFault::Unreadable(error)),
            Ok(_) if is_shrunk => Err(InputFault::Shrunk),
            Ok(0) => Ok(false),
            Ok(bytes) => Err(InputFault::Rubbish { packing: "gzip", bytes }),
        }
    }

    /// One call of the unpacker. A call that fails takes back what it wrote, so it is given no more than it asks for.
    fn zstd_step(&mut self) -> Result<Zstd, InputFault> {
        let Body::Zstd { raw, state, wanted, in_frame, flushing } = &mut self.body else {
            return Ok(Zstd::End);
        };
        let bytes = self.bytes;
        if !*in_frame {
            let start = raw.peek(ZSTD.len()).map_err(InputFault::Unreadable)?;
            if start.is_empty() {
                return if raw.is_shrunk() { Err(InputFault::Shrunk) } else { Ok(Zstd::End) };
            }
            if !starts_frame(start) {
                let rest = rubbish(raw).map_err(InputFault::Unreadable)?;
                return match rest {
                    0 => Ok(Zstd::End),
                    bytes => Err(InputFault::Rubbish { packing: "zstd", bytes }),
                };
            }
            (*in_frame, *wanted, *flushing) = (true, ZSTD.len(), false);
        }
        let had = match *flushing {
            true => &[][..],
            false => raw.fill_buf().map_err(InputFault::Unreadable)?,
        };
        let is_end = had.is_empty() && !*flushing;
        let mut input = InBuffer::around(&had[..had.len().min((*wanted).max(1))]);
        let mut output = OutBuffer::around(&mut self.out[..]);
        let hint = state.decompress_stream(&mut output, &mut input);
        let (took, wrote) = (input.pos(), output.pos());
        raw.consume(took);
        match hint {
            Err(code) => {
                let cause = get_error_name(code).to_lowercase();
                return Err(InputFault::Damaged { packing: "zstd", bytes, cause });
            }
            Ok(0) => *in_frame = false,
            Ok(_) if is_end && wrote == 0 => {
                let is_shrunk = raw.is_shrunk();
                return Err(if is_shrunk {
                    InputFault::Shrunk
                } else {
                    InputFault::Cut { packing: "zstd", bytes }
                });
            }
            Ok(hint) => *wanted = hint,
        }
        *flushing = *in_frame && wrote == OUT_BYTES;
        Ok(if wrote > 0 { Zstd::Text(wrote) } else { Zstd::None })
    }
}

/// What one step of unpacking zstd came to.
enum Zstd {
    Text(usize),
    None,
    End,
}

/// Whether a frame of zstd begins here, one to be skipped too.
fn starts_frame(start: &[u8]) -> bool {
    start == ZSTD || matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18])
}

/// Bytes from here to the end, if they are more than zeros.
fn rubbish(raw: &mut Raw) -> io::Result<u64> {
    let (mut bytes, mut is_rubbish) = (0, false);
    loop {
        let piece = raw.fill_buf()?;
        let count = piece.len();
        if count == 0 {
            return Ok(if is_rubbish { bytes } else { 0 });
        }
        is_rubbish |= piece.iter().any(|&byte| byte != 0);
        bytes += count as u64;
        raw.consume(count);
    }
}

fn gzip_fault(error: io::Error, raw: &Raw, bytes: u64) -> InputFault {
    match error.kind() {
        _ if raw.failed => InputFault::Unreadable(error),
        io::ErrorKind::UnexpectedEof if raw.is_shrunk() => InputFault::Shrunk,
        io::ErrorKind::UnexpectedEof => InputFault::Cut { packing: "gzip", bytes },
        _ => InputFault::Damaged { packing: "gzip", bytes, cause: error.to_string() },
    }
}

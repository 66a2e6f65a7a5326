use super::super::{InputFile, ServerId};
use super::epoch_begun::{Epoch, open_current};
use super::files::{about, digest, in_done, move_to_done};
use super::master::Master;
use super::rejects::Rejects;
use super::state::{Begin, EpochRules, Held, InputName, Record};
use super::told::Told;
use rapidhash::fast::RapidHashSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

impl Master {
    /// Begins an epoch, or again the one that was not committed, which has its own files, `now` and loads. `loads` is what
    /// nodes say that they have still to fetch.
    pub fn begin(&mut self, inputs: &[PathBuf], now_s: u32, loads: &[(ServerId, u64)]) -> io::Result<Epoch> {
        let begun = self.begin_if(inputs, now_s, loads, |_| true)?;
        begun.map_err(|_| io::Error::other("an epoch begins when it is told to"))
    }

    /// The same, unless all inputs were taken before: then nothing begins, and it is said what is known.
    pub fn begin_new(
        &mut self,
        inputs: &[PathBuf],
        now_s: u32,
        loads: &[(ServerId, u64)],
    ) -> io::Result<Result<Epoch, Vec<Told>>> {
        self.begin_if(inputs, now_s, loads, |new| new > 0)
    }

    fn begin_if(
        &mut self,
        inputs: &[PathBuf],
        now_s: u32,
        loads: &[(ServerId, u64)],
        is_enough: impl FnOnce(usize) -> bool,
    ) -> io::Result<Result<Epoch, Vec<Told>>> {
        self.usable()?;
        let mut told = Vec::new();
        let is_again = self.state.begun.is_some();
        let begin = match self.state.begun.clone() {
            Some(begun) => self.again(begun, &mut told)?,
            None => {
                let (files, paths) = self.choose(inputs, &mut told)?;
                if !is_enough(paths.len()) {
                    return Ok(Err(told));
                }
                (self.fresh(files, now_s, loads)?, paths)
            }
        };
        let number = begin.0.epoch;
        let held = match self.state.held {
            Some(held) => Some(self.check_held(held)?),
            None => None,
        };
        let current = Some(self.files.current(self.state.epoch)).filter(|_| self.state.epoch > 0);
        if let Some(path) = &current
            && open_current(path, &self.key)?.is_none()
        {
            told.push(Told::CurrentEmptied { path: path.clone() });
        }
        let rejects = Rejects::create(&self.files.rejects(), number).map_err(about(&self.files.rejects()))?;
        Ok(Ok(Epoch {
            number,
            now_s: begin.0.now,
            horizon_s: self.horizon_s(begin.0.now),
            inputs: begin.1.into_iter().map(InputFile::new).collect(),
            held,
            current,
            rejects,
            key: self.key.clone(),
            work: self.files.work(),
            told,
            is_again,
            rules: EpochRules::default(),
        }))
    }

    /// How far logs have come: the latest time of what was sent, which is behind the clock while old logs are caught up with.
    fn horizon_s(&self, now_s: u32) -> u32 {
        match self.state.latest_by(now_s) {
            0 => now_s,
            latest_s => latest_s.min(now_s),
        }
    }

    /// The inputs that were not taken before.
    fn choose(&self, inputs: &[PathBuf], told: &mut Vec<Told>) -> io::Result<(Vec<InputName>, Vec<PathBuf>)> {
        let epoch = self.state.epoch + 1;
        let (mut files, mut paths, mut these) = (Vec::new(), Vec::new(), RapidHashSet::default());
        for path in inputs {
            match digest(path) {
                Ok(digest) if self.state.known.contains(&digest) || !these.insert(digest) => {
                    told.push(Told::KnownFile { path: path.clone() });
                    let moved = if self.rules.moves_inputs { move_to_done(path, epoch) } else { Ok(()) };
                    if let Err(e) = moved {
                        told.push(Told::Untidy { path: path.clone(), cause: e.to_string() });
                    }
                }
                Ok(digest) => {
                    // A process that goes on may stand elsewhere.
                    files.push(InputName::new(&std::path::absolute(path)?, digest));
                    paths.push(path.clone());
                }
                Err(e) => told.push(Told::UnreadableFile { path: path.clone(), cause: e.fault.to_string() }),
            }
        }
        Ok((files, paths))
    }

    fn fresh(&mut self, files: Vec<InputName>, now_s: u32, loads: &[(ServerId, u64)]) -> io::Result<Begin> {
        let queued = self.queues.iter().map(|(server, queue)| (*server, queue.shelf().waiting_bytes()));
        let begin = Begin {
            epoch: self.state.epoch + 1,
            now: now_s,
            files,
            loads: loads.iter().map(|(server, pending)| (server.0, *pending)).collect(),
            queued: queued.filter(|(_, bytes)| *bytes > 0).collect(),
            done: self.rules.moves_inputs,
        };
        self.append(Record::Begin(begin.clone()))?;
        Ok(begin)
    }

    /// The epoch that was not committed. Without an input that is gone or is another file now, it begins anew.
    fn again(&mut self, begun: Begin, told: &mut Vec<Told>) -> io::Result<(Begin, Vec<PathBuf>)> {
        let (mut files, mut paths) = (Vec::new(), Vec::new());
        for file in &begun.files {
            let path = file.path();
            let is_it = |path: &PathBuf| digest(path).ok() == file.digest();
            match std::iter::once(path.clone()).chain(in_done(&path, begun.epoch)).find(is_it) {
                Some(found) => {
                    files.push(file.clone());
                    paths.push(found);
                }
                None => told.push(Told::LostFile { path }),
            }
        }
        if files.len() == begun.files.len() {
            return Ok((begun, paths));
        }
        let begin = Begin { files, ..begun };
        self.append(Record::Begin(begin.clone()))?;
        Ok((begin, paths))
    }

    /// The file of lines that are held, if it is as it was committed.
    fn check_held(&self, held: Held) -> io::Result<PathBuf> {
        let path = self.files.held().join(held.epoch.to_string());
        check(&path, held).map_err(|e| {
            let mend = "put a copy back; or empty it: then the lines that waited in it are lost";
            io::Error::new(e.kind(), format!("{}: {e} ({mend})", path.display()))
        })?;
        Ok(path)
    }
}

pub(super) fn check(path: &Path, held: Held) -> io::Result<()> {
    let (mut file, mut buffer) = (File::open(path)?, vec![0; 1 << 20]);
    let (mut bytes, mut crc) = (0, 0);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        (bytes, crc) = (bytes + read as u64, crc32c::crc32c_append(crc, &buffer[..read]));
    }
    // Emptied by hand.
    if bytes == 0 || (bytes, crc) == (held.bytes, held.crc) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "it is not as it was committed"))
}

use crate::base::random_u64;
use crate::storage::replace_secret;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use xxhash_rust::xxh3::{xxh3_64_with_secret, xxh3_64_with_seed};

/// The secret that ids are made with: nobody who does not know it can make URLs whose ids fall together.
#[derive(Clone, PartialEq, Eq)]
pub struct IdKey(Box<[u8; KEY_BYTES]>);

const KEY_BYTES: usize = 192;
const MAGIC: &[u8; 8] = b"NEPHKEY1";

impl IdKey {
    /// One that is the same everywhere, for epochs that leave nothing behind, and for tests.
    pub fn from_seed(seed: u64) -> IdKey {
        let mut key = [0; KEY_BYTES];
        for (at, word) in key.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&xxh3_64_with_seed(&(at as u64).to_le_bytes(), seed).to_le_bytes());
        }
        IdKey(Box::new(key))
    }

    /// The one that a file holds, or a new one, which is durable in it then. The file is for its owner alone.
    pub fn open(path: &Path) -> io::Result<IdKey> {
        match fs::read(path) {
            Ok(bytes) => IdKey::read(&bytes).ok_or_else(|| {
                let text = format!("{} is no key, or damaged (bring it back from a copy)", path.display());
                io::Error::new(io::ErrorKind::InvalidData, text)
            }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let mut key = [0; KEY_BYTES];
                for word in key.chunks_exact_mut(8) {
                    word.copy_from_slice(&random_u64().to_le_bytes());
                }
                let key = IdKey(Box::new(key));
                key.keep(path)?;
                Ok(key)
            }
            Err(e) => Err(e),
        }
    }

    /// Durable in a file for its owner alone.
    pub fn keep(&self, path: &Path) -> io::Result<()> {
        replace_secret(path, &self.file_bytes())
    }

    fn file_bytes(&self) -> Vec<u8> {
        let mut bytes = [MAGIC.as_slice(), self.0.as_slice()].concat();
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Option<IdKey> {
        let (said, crc) = bytes.split_last_chunk()?;
        let key = said.strip_prefix(MAGIC)?.try_into().ok()?;
        (u32::from_le_bytes(*crc) == crc32c::crc32c(said)).then(|| IdKey(Box::new(key)))
    }

    /// The id of a URL in its normal form.
    pub fn id(&self, url: &[u8]) -> u64 {
        xxh3_64_with_secret(url, self.0.as_slice())
    }

    /// What tells two keys apart, and says nothing of either.
    pub fn check(&self) -> u64 {
        self.id(b"nephila: which key is it?")
    }
}

impl fmt::Debug for IdKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stays_and_a_damaged_one_is_refused() {
        let path = std::env::temp_dir().join(format!("nephila-idkey-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        let key = IdKey::open(&path).unwrap();
        assert!(IdKey::open(&path).unwrap() == key && key != IdKey::from_seed(0));
        assert_ne!(key.check(), IdKey::from_seed(0).check());
        let mut bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            assert!(IdKey::read(&bytes).is_none(), "{at}");
            bytes[at] ^= 1;
        }
        fs::remove_file(&path).unwrap();
    }
}

use nephila::master::epoch::{CurrentLog, CurrentRows, IdKey};
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

const BLOCK_BYTES: usize = 4_096;

/// The first byte says what the rest is: bit 0 a current_log as it stands, else with its beginning and sound checksums.
pub fn run(bytes: &[u8]) {
    let [mode, log @ ..] = bytes else { return };
    let mut log = log.to_vec();
    if mode & 1 == 0 {
        mend(&mut log);
    }
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("nephila-fuzz-current-{}-{count}", std::process::id()));
    fs::write(&path, &log).expect("a file");
    let opened = CurrentLog::open(&path);
    fs::remove_file(&path).expect("it was there");
    let Ok(opened) = opened else { return };
    let sound = log.chunks(BLOCK_BYTES).enumerate().all(|(number, block)| {
        block.len() == BLOCK_BYTES && block[BLOCK_BYTES - 4..] == crc(number, block).to_le_bytes()
    });
    let rows = count_of(opened.all());
    assert_eq!(rows, sound.then_some(opened.rows()), "every row is there, or damage is told");
    if sound {
        let by_partition: u64 = (0..=255).filter_map(|partition| count_of(opened.partition(partition))).sum();
        assert_eq!(by_partition, opened.rows());
        assert!(opened.find(u64::from(*mode) << 56).is_ok());
    }
    let _ = opened.is_keyed_by(&IdKey::from_seed(1));
}

/// `None` if a block is damaged.
fn count_of(mut rows: CurrentRows<'_>) -> Option<u64> {
    let mut count = 0;
    while rows.next().ok()?.is_some() {
        count += 1;
    }
    Some(count)
}

fn crc(number: usize, block: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&(number as u64).to_le_bytes()), &block[..BLOCK_BYTES - 4])
}

/// Whole blocks, a beginning that is known, and checksums.
fn mend(log: &mut Vec<u8>) {
    log.resize(log.len().next_multiple_of(BLOCK_BYTES).max(BLOCK_BYTES), 0);
    log[..12].copy_from_slice(b"NEPHCURR\x01\0\0\0");
    for (number, block) in log.chunks_exact_mut(BLOCK_BYTES).enumerate() {
        let crc = crc(number, block);
        block[BLOCK_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
    }
}

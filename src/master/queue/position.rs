use std::fs;
use std::io;
use std::path::Path;

/// Below which number a node has everything on disk. Lost, it is told again by the node; until then more is kept than need
/// be. So it takes its name whole, and waits for no disk.
const FILE: &str = "position";

pub(super) fn read_position(folder: &Path) -> u64 {
    let text = fs::read_to_string(folder.join(FILE)).unwrap_or_default();
    let parse = |text: &str| {
        let (number, crc) = text.trim_end().split_once(' ')?;
        (crc == format!("{:08x}", crc32c::crc32c(number.as_bytes()))).then(|| number.parse().ok())?
    };
    parse(&text).unwrap_or(0)
}

pub(super) fn write_position(folder: &Path, seq: u64) -> io::Result<()> {
    let number = seq.to_string();
    let fresh = folder.join("position.fresh");
    fs::write(&fresh, format!("{number} {:08x}\n", crc32c::crc32c(number.as_bytes())))?;
    fs::rename(fresh, folder.join(FILE))
}

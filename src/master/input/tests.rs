use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use xxhash_rust::xxh3::xxh3_128;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("nephila-input-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> InputFile {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        InputFile::new(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    let mut packed = vec![0; zstd_safe::compress_bound(text.len())];
    let length = zstd_safe::compress(&mut packed[..], text, 3).unwrap();
    packed.truncate(length);
    packed
}

/// Text that does not pack well.
fn text(bytes: usize) -> Vec<u8> {
    let mut rng = crate::base::Rng::new(7);
    (0..bytes).map(|_| b' ' + rng.below(90) as u8).collect()
}

/// All text, and what ended it.
fn all(mut reader: InputReader) -> (Vec<u8>, Option<InputFault>, InputSum) {
    let mut text = Vec::new();
    let fault = loop {
        match reader.chunk() {
            Ok(Some(chunk)) => {
                assert!(!chunk.is_empty());
                text.extend_from_slice(chunk);
            }
            Ok(None) => break None,
            Err(error) => {
                assert!(!error.to_string().contains('\n'));
                break Some(error.fault);
            }
        }
    };
    assert_eq!(reader.bytes(), text.len() as u64);
    assert!(reader.chunk().unwrap().is_none(), "nothing comes after the end");
    (text, fault, reader.finish().unwrap())
}

#[test]
fn a_file_is_the_same_text_however_it_is_packed() {
    let folder = Folder::new("packed");
    let text = text(700_000);
    let (first, second) = text.split_at(300_000);
    let skippable = [&[0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    for (name, bytes) in [
        ("plain", text.clone()),
        ("gzip", gzip(&text)),
        ("members", [gzip(first), gzip(b""), gzip(second)].concat()),
        ("padded", [gzip(&text), vec![0; 600_000]].concat()),
        ("zstd", zstd(&text)),
        ("frames", [zstd(first), skippable.clone(), zstd(second)].concat()),
        ("skipped", [skippable, zstd(&text)].concat()),
    ] {
        let file = folder.file(name, &bytes);
        let (read, fault, sum) = all(file.open().unwrap());
        assert!(fault.is_none(), "{name}: {fault:?}");
        assert!(read == text, "{name}");
        assert_eq!(sum, InputSum { bytes: bytes.len() as u64, digest: xxh3_128(&bytes) }, "{name}");
        assert_eq!(file.sum().unwrap(), sum, "{name}");
        let piped = InputReader::from_pipe("-", io::Cursor::new(bytes)).unwrap();
        assert!(all(piped).0 == text, "{name} by a pipe");
    }
    for empty in [&b""[..], b"\x1f", b"\x28\xb5\x2f", &gzip(b""), &zstd(b"")] {
        let (read, fault, _) = all(folder.file("empty", empty).open().unwrap());
        assert!(fault.is_none() && (read.is_empty() || read == empty), "{empty:?}: {fault:?}");
    }
}

#[test]
fn what_broke_off_keeps_what_came_before() {
    let folder = Folder::new("cut");
    let text = text(400_000);
    for (packing, packed) in [("gzip", gzip(&text)), ("zstd", zstd(&text))] {
        for end in [packed.len() / 3, packed.len() - 5, packed.len() - 1, 11] {
            let file = folder.file("cut", &packed[..end]);
            let (read, fault, sum) = all(file.open().unwrap());
            let fault = fault.unwrap();
            assert!(matches!(fault, InputFault::Cut { .. }), "{packing} {end}: {fault}");
            assert!(fault.is_of_content() && fault.to_string().contains(packing));
            assert!(text.starts_with(&read) && read.len() + 300_000 > end, "{packing} {end}: {}", read.len());
            assert_eq!(sum.digest, xxh3_128(&packed[..end]));
        }
        let mut damaged = [&packed[..], &packed[..]].concat();
        let at = packed.len() + 10;
        damaged[at..at + 400].fill(0xff);
        let (read, fault, sum) = all(folder.file("damaged", &damaged).open().unwrap());
        assert!(matches!(fault, Some(InputFault::Damaged { .. })), "{packing}: {fault:?}");
        assert!(read.starts_with(&text));
        assert_eq!(sum.digest, xxh3_128(&damaged), "the digest is of all of it");
        let rubbish = [&packed[..], b"\0\0<html>"].concat();
        let (read, fault, _) = all(folder.file("rubbish", &rubbish).open().unwrap());
        assert!(matches!(fault, Some(InputFault::Rubbish { bytes: 8, .. })), "{packing}: {fault:?}");
        assert!(read == text);
    }
}

#[test]
fn a_bomb_is_left_when_it_shows() {
    let folder = Folder::new("bomb");
    let zeros = vec![b'0'; 4 << 20];
    let bounds = InputBounds { bytes_max: 3 << 20, ratio_max: 100, free_bytes: 1 << 20 };
    for packed in [gzip(&zeros), zstd(&zeros)] {
        let file = folder.file("bomb", &packed).bounded(bounds);
        let (read, fault, _) = all(file.open().unwrap());
        assert!(matches!(fault, Some(InputFault::Bomb { .. })), "{fault:?}");
        assert!((512 << 10..=1 << 20).contains(&read.len()), "{}", read.len());
        let (read, fault, _) =
            all(file.bounded(InputBounds { ratio_max: 1 << 40, ..bounds }).open().unwrap());
        assert!(matches!(fault, Some(InputFault::Bomb { .. })), "{fault:?}");
        assert!((2 << 20..=3 << 20).contains(&read.len()), "{}", read.len());
    }
    let plain = folder.file("plain", &zeros).bounded(bounds);
    assert!(all(plain.open().unwrap()).1.is_none(), "what is not packed is as long as it is");
}

#[test]
fn what_is_no_file_is_refused_by_name() {
    let folder = Folder::new("kinds");
    let fault = |path: &str| InputFile::new(folder.0.join(path)).open().err().unwrap().to_string();
    assert!(fault("none").contains("none: cannot be read: No such file"), "{}", fault("none"));
    assert!(fault(".").contains("a directory"), "{}", fault("."));
    assert!(fault("/dev/zero").contains("a device"), "{}", fault("/dev/zero"));
    nix::unistd::mkfifo(&folder.0.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(fault("fifo").contains("a pipe"), "{}", fault("fifo"));
    symlink(folder.0.join("gone"), folder.0.join("dangling")).unwrap();
    assert!(fault("dangling").contains("No such file"));
}

#[test]
fn a_link_out_of_the_spool_is_refused() {
    let folder = Folder::new("spool");
    folder.file("secret", b"not for the queue\n");
    let spool = folder.0.join("spool");
    fs::create_dir(&spool).unwrap();
    fs::write(spool.join("a"), b"text").unwrap();
    symlink(folder.0.join("secret"), spool.join("out")).unwrap();
    symlink("a", spool.join("in")).unwrap();
    symlink(&folder.0, spool.join("up")).unwrap();
    let open = |name: &str| InputFile::in_spool(&spool, spool.join(name)).unwrap().open();
    assert_eq!(all(open("a").unwrap()).0, b"text");
    assert_eq!(all(open("in").unwrap()).0, b"text");
    for name in ["out", "up/secret", "../secret"] {
        assert!(matches!(open(name).err().unwrap().fault, InputFault::Outside), "{name}");
    }
}

#[test]
fn a_file_counts_as_it_was_when_it_was_opened() {
    let folder = Folder::new("moving");
    let file = folder.file("grows", b"one\n");
    let reader = file.open().unwrap();
    fs::OpenOptions::new().append(true).open(file.path()).unwrap().write_all(b"two\n").unwrap();
    assert_eq!(all(reader).0, b"one\n");
    let gone = folder.file("gone", &text(600_000));
    let reader = gone.open().unwrap();
    fs::remove_file(gone.path()).unwrap();
    assert_eq!(all(reader).0.len(), 600_000, "it is read to its end");
    for bytes in [text(600_000), gzip(&text(600_000)), zstd(&text(600_000))] {
        let short = folder.file("short", &bytes);
        let mut reader = short.open().unwrap();
        reader.chunk().unwrap();
        fs::OpenOptions::new().write(true).open(short.path()).unwrap().set_len(300_000).unwrap();
        let fault = loop {
            match reader.chunk() {
                Ok(text) => assert!(text.is_some()),
                Err(error) => break error.fault,
            }
        };
        assert!(matches!(fault, InputFault::Shrunk) && !fault.is_of_content(), "{fault}");
    }
}

#[test]
fn an_error_of_the_machine_is_none_of_the_file() {
    struct Broken(usize);
    impl Read for Broken {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let packed = gzip(&text(400_000));
            let count = out.len().min(100_000);
            self.0 += 1;
            match self.0 {
                1 => {
                    out[..count].copy_from_slice(&packed[..count]);
                    Ok(count)
                }
                _ => Err(io::Error::from_raw_os_error(5)),
            }
        }
    }
    let mut reader = InputReader::from_pipe("-", Broken(0)).unwrap();
    let fault = loop {
        match reader.chunk() {
            Ok(_) => {}
            Err(error) => break error.fault,
        }
    };
    assert!(matches!(fault, InputFault::Unreadable(_)) && !fault.is_of_content(), "{fault}");
}

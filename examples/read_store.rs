//! Reads a store from another program, also while a crawl writes it.
//!
//! ```text
//!   cargo run --release --example read_store -- ./nephila-data                       every document, newest of each URL
//!   cargo run --release --example read_store -- ./nephila-data http://example.org/   one of them
//! ```

use nephila::store_server::{ReadError, Reader};
use std::io::Write;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let data = args.next().ok_or("usage: read_store DIR [URL]")?;
    match args.next() {
        Some(url) => one(Path::new(&data), &url),
        None => Ok(all(Path::new(&data))?),
    }
}

/// A lookup asks the indexes, and reads one record.
fn one(data: &Path, url: &str) -> Result<(), Box<dyn std::error::Error>> {
    let reader = Reader::open(data)?;
    let (located, document) = reader.find(url)?.ok_or("it is not in the store")?;
    let document = document.ok_or("its document is gone")?;
    eprintln!("{} {} from {}", located.record.status, located.record.result, located.record.ip);
    std::io::stdout().write_all(&document.body)?;
    Ok(())
}

/// Records come in the order they were written; bytes are unpacked only for those that ask.
fn all(data: &Path) -> Result<(), ReadError> {
    let reader = Reader::open(data)?;
    let newest = reader.newest()?;
    let mut documents = 0;
    let damages = reader.each(|located, bytes| {
        if newest.is_newest(&located)
            && let Ok(Some(document)) = reader.document_of(&located, bytes)
        {
            documents += 1;
            // A URL came from the network: quoted, it cannot play tricks on a terminal.
            println!("{:>8} {:?}", document.body.len(), located.record.url);
        }
    })?;
    eprintln!("{documents} documents, {} damaged places", damages.len());
    Ok(())
}

//! Feeds read by feed-rs: `feed-peers FILE TIMES` prints nanoseconds per reading, and the number of entries.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, times] = &args[..] else {
        eprintln!("usage: feed-peers FILE TIMES");
        return ExitCode::from(2);
    };
    let measured = (|| {
        let bytes = std::fs::read(file).map_err(|e| format!("cannot read {file}: {e}"))?;
        let times: u32 = times.parse().ok().filter(|times| *times > 0).ok_or("TIMES is a number from 1 on")?;
        let mut entries = 0;
        let begun = Instant::now();
        for _ in 0..times {
            let feed = feed_rs::parser::parse(black_box(&bytes[..])).map_err(|e| format!("{file}: {e}"))?;
            entries = black_box(feed).entries.len();
        }
        Ok::<_, String>((begun.elapsed().as_nanos() as f64 / f64::from(times), entries))
    })();
    match measured {
        Ok((ns, entries)) => {
            println!("{ns:.0} {entries}");
            ExitCode::SUCCESS
        }
        Err(cause) => {
            eprintln!("feed-peers: {cause}");
            ExitCode::FAILURE
        }
    }
}

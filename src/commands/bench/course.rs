use super::sampler::ProcessSample;
use crate::proto::crawl_log::{LogLine, Path};
use crate::proto::record::ResultCode;
use serde::Serialize;
use std::io::{self, BufRead};

/// How a crawl went from its first page to its last: its log tells when each page was there, and samples of its process
/// what it had used by then. Neither costs the crawl anything.
#[derive(Serialize, Debug)]
pub(super) struct Course {
    /// At a tenth, half and all of the pages.
    pub memory: Vec<MemoryAt>,
    pub rss_bytes_max: u64,
    pub anon_bytes_max: u64,
    pub tenths: Vec<Tenth>,
    /// Pages/s of the last tenth over those of the first.
    pub pace_last_over_first: f64,
    /// CPU per page, the same way: it holds on a machine that others use too.
    pub cpu_last_over_first: f64,
}

#[derive(Serialize, Debug, PartialEq, Eq)]
pub(super) struct MemoryAt {
    pub percent: u8,
    pub rss_bytes: u64,
    pub anon_bytes: u64,
}

/// A tenth of the pages. The first begins with the first page: start-up is not in it.
#[derive(Serialize, Debug)]
pub(super) struct Tenth {
    pub pages_per_second: f64,
    pub cpu_us_per_page: f64,
    /// At its end.
    pub anon_bytes: u64,
}

/// When each page that came well was logged, in microseconds since 1970 and in order.
pub(super) fn page_times(mut log: impl BufRead) -> io::Result<Vec<u64>> {
    let (mut times, mut line) = (Vec::new(), Vec::new());
    while log.read_until(b'\n', &mut line)? > 0 {
        let parsed = LogLine::parse(line.trim_ascii_end());
        if let Ok(LogLine { path: Path::Page { .. }, result: ResultCode::Ok, made_us, .. }) = parsed {
            times.push(made_us);
        }
        line.clear();
    }
    times.sort_unstable();
    Ok(times)
}

impl Course {
    /// `None` if there are too few pages or samples to tell.
    pub fn new(page_times: &[u64], samples: &[ProcessSample]) -> Option<Course> {
        let first = samples.first()?;
        if page_times.len() < 10 {
            return None;
        }
        // The page that ends a tenth; 0 is the first of all.
        let page_at = |tenth: usize| (page_times.len() * tenth / 10).max(1) - 1;
        let time_at = |tenth: usize| page_times[page_at(tenth)];
        let sample_at = |tenth: usize| {
            let by_then = samples.partition_point(|sample| sample.at_us <= time_at(tenth));
            by_then.checked_sub(1).map_or(first, |last| &samples[last])
        };
        let memory_at = |tenth: usize| {
            let ProcessSample { rss_bytes, anon_bytes, .. } = *sample_at(tenth);
            MemoryAt { percent: tenth as u8 * 10, rss_bytes, anon_bytes }
        };
        let tenths: Vec<Tenth> = (1..=10)
            .map(|tenth| {
                let pages = (page_at(tenth) - page_at(tenth - 1)) as f64;
                let seconds = (time_at(tenth) - time_at(tenth - 1)) as f64 / 1e6;
                let cpu_us = sample_at(tenth).cpu_us - sample_at(tenth - 1).cpu_us;
                Tenth {
                    pages_per_second: pages / seconds.max(1e-3),
                    cpu_us_per_page: cpu_us as f64 / pages.max(1.0),
                    anon_bytes: sample_at(tenth).anon_bytes,
                }
            })
            .collect();
        let last_over_first = |of: fn(&Tenth) -> f64| of(&tenths[9]) / of(&tenths[0]);
        Some(Course {
            memory: [1, 5, 10].map(memory_at).into(),
            rss_bytes_max: samples.iter().map(|sample| sample.rss_bytes).max()?,
            anon_bytes_max: samples.iter().map(|sample| sample.anon_bytes).max()?,
            pace_last_over_first: last_over_first(|tenth| tenth.pages_per_second),
            cpu_last_over_first: last_over_first(|tenth| tenth.cpu_us_per_page.max(1e-3)),
            tenths,
        })
    }

    pub fn text(&self) -> String {
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let mut text = "  memory              anonymous         whole\n".to_string();
        let most = ("most    ".to_string(), self.anon_bytes_max, self.rss_bytes_max);
        let at = |at: &MemoryAt| (format!("at {:>3} %", at.percent), at.anon_bytes, at.rss_bytes);
        for (when, anon, rss) in self.memory.iter().map(at).chain([most]) {
            text += &format!("  {when} {:>17.1} MB {:>10.1} MB\n", mb(anon), mb(rss));
        }
        text += "\n  tenth       pages/s   CPU µs per page   anonymous\n";
        for (number, Tenth { pages_per_second, cpu_us_per_page, anon_bytes }) in (1..).zip(&self.tenths) {
            let anon = mb(*anon_bytes);
            text +=
                &format!("  {number:>5} {pages_per_second:>13.0} {cpu_us_per_page:>17.1} {anon:>8.1} MB\n");
        }
        let (pace, cpu) = (self.pace_last_over_first, self.cpu_last_over_first);
        text + &format!("  last tenth over the first: pages/s {pace:.2} x, CPU per page {cpu:.2} x\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_us: u64, cpu_us: u64, anon_bytes: u64) -> ProcessSample {
        ProcessSample { at_us, cpu_us, rss_bytes: 2 * anon_bytes, anon_bytes }
    }

    #[test]
    fn a_log_tells_when_pages_came_and_nothing_else() {
        let line = |second: u32, url: &str, path: &str, status: &str, result: &str| {
            format!(
                "2026-11-15T05:10:{second:02}.000Z {status} 10 {url} {path} - - #000 20261115051000000000+100 - 127.16.0.1:80,{result}\n"
            )
        };
        let robots = line(1, "http://a.test/robots.txt", "P", "200", "ok,for=http://a.test,rules=known");
        assert!(LogLine::parse(robots.trim_ascii_end().as_bytes()).is_ok(), "{robots}");
        let log = "# nephila 0.1.0 run 2026-11-15T05:10:00.000Z\n".to_string()
            + &robots
            + &line(3, "http://a.test/", "-", "200", "ok")
            + &line(2, "http://b.test/", "-", "200", "ok")
            + &line(4, "http://a.test/x", "L", "404", "http_error")
            + "2026-11-15T05:10:05.000Z 200 10 http://torn";
        let times = page_times(log.as_bytes()).unwrap();
        assert_eq!(times.len(), 2, "{log}");
        assert_eq!(times[1] - times[0], 1_000_000, "in the order of time");
    }

    #[test]
    fn tenths_and_memory_are_by_pages_and_not_by_time() {
        // 50 pages in the first half of a second, 50 in the next five.
        let times: Vec<u64> =
            (0..100).map(|page| if page < 50 { page * 10_000 } else { page * 100_000 - 4_500_000 }).collect();
        let samples: Vec<ProcessSample> = (0..1_200).map(|n| sample(n * 5_000, n * 1_000, n)).collect();
        let course = Course::new(&times, &samples).unwrap();
        assert_eq!(course.tenths.len(), 10);
        assert!((course.pace_last_over_first - 0.1).abs() < 1e-9, "{course:?}");
        assert!((course.cpu_last_over_first - 10.0).abs() < 1e-9, "{course:?}");
        let at: Vec<(u8, u64)> = course.memory.iter().map(|at| (at.percent, at.anon_bytes)).collect();
        assert_eq!(at, [(10, 18), (50, 98), (100, 1_080)]);
        assert_eq!((course.anon_bytes_max, course.rss_bytes_max), (1_199, 2_398));
    }

    #[test]
    fn too_little_tells_nothing() {
        assert!(Course::new(&[1; 9], &[sample(1, 1, 1)]).is_none());
        assert!(Course::new(&[1; 10], &[]).is_none());
        assert!(Course::new(&[1; 10], &[sample(1, 1, 1)]).is_some(), "all within a millisecond");
    }
}

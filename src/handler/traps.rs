use super::verdict::Verdict;
use crate::limits::PATH_SEGMENTS_COMPARED;
use crate::proto::url::UrlView;

/// Signs in a path that a program makes up URLs as we ask for them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traps {
    /// 0 = no such guard, for both.
    pub path_depth_max: usize,
    pub segment_repeats_max: usize,
}

impl Traps {
    /// Why a URL looks like one of a trap.
    #[inline]
    pub fn caught<'a>(&self, url: UrlView<'a>) -> Option<Verdict<'a>> {
        let path = url.path();
        let depth = depth(path);
        if self.path_depth_max > 0 && depth > self.path_depth_max {
            return Some(Verdict::PathDepth { max: self.path_depth_max });
        }
        // Most paths are too short to say anything that often.
        if self.segment_repeats_max == 0 || depth <= self.segment_repeats_max {
            return None;
        }
        let segment = repeated(path, self.segment_repeats_max)?;
        Some(Verdict::RepeatedSegment { segment, max: self.segment_repeats_max })
    }
}

/// Segments of a path. Empty ones count, but not what follows a last slash: `/a/` is one deep.
fn depth(path: &str) -> usize {
    memchr::memchr_iter(b'/', path.as_bytes()).count() - usize::from(path.ends_with('/'))
}

/// The first segment that stands in a path more than `max` times, side by side or not. Short numbers are days, months and
/// pages, and say nothing.
fn repeated(path: &str, max: usize) -> Option<&str> {
    let mut seen = [""; PATH_SEGMENTS_COMPARED];
    let speaks = |segment: &&str| {
        !segment.is_empty() && (segment.len() > 2 || segment.bytes().any(|octet| !octet.is_ascii_digit()))
    };
    for (count, segment) in path.split('/').filter(speaks).take(PATH_SEGMENTS_COMPARED).enumerate() {
        if seen[..count].iter().filter(|before| **before == segment).count() >= max {
            return Some(segment);
        }
        seen[count] = segment;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::url::CrawlUrl;

    fn caught(path: &str) -> Option<&'static str> {
        let url = CrawlUrl::parse(&format!("http://h.test{path}")).unwrap();
        Traps { path_depth_max: 10, segment_repeats_max: 3 }.caught(url.view()).map(|why| why.name())
    }

    #[test]
    fn paths_that_go_on_are_caught() {
        const REPEATED: Option<&str> = Some("trap_repeated_segment");
        const DEEP: Option<&str> = Some("trap_path_depth");
        for (path, expected) in [
            ("/", None),
            ("/a/b/a/b/a/b/", None),
            ("/a/b/a/b/a/b/a", REPEATED),
            ("/a/a/a/a", REPEATED),
            ("/a/a/a/x?/a/a/a", None),
            ("/A/a/A/a/A/a", None),
            ("/1/1/1/1/12/12/12/12", None),
            ("/201/201/201/201", REPEATED),
            ("/1/2/3/4/5/6/7/8/9/10", None),
            ("/1/2/3/4/5/6/7/8/9/10/", None),
            ("/1/2/3/4/5/6/7/8/9/10/11", DEEP),
            ("//////////", None),
            ("///////////x", DEEP),
        ] {
            assert_eq!(caught(path), expected, "{path}");
        }
    }

    #[test]
    fn no_guard_catches_nothing() {
        let url = CrawlUrl::parse(&format!("http://h.test/{}", "a/".repeat(1_000))).unwrap();
        assert_eq!(Traps::default().caught(url.view()), None);
    }

    #[test]
    fn the_longest_path_is_looked_at_in_bounded_time() {
        let path: String = (0..2_600).map(|n| format!("/{n:x}x")).take(1_500).collect();
        let url = CrawlUrl::parse(&format!("http://h.test{path}")).unwrap();
        let traps = Traps { path_depth_max: 0, segment_repeats_max: 3 };
        let started = std::time::Instant::now();
        for _ in 0..1_000 {
            assert_eq!(traps.caught(url.view()), None);
        }
        assert!(started.elapsed().as_millis() < 1_000, "{:?}", started.elapsed());
    }
}

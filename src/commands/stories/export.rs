use super::ls::StoryFilter;
use super::story_told::{StoryTold, Views};
use crate::base::Civil;
use crate::commands::shared::{DataArg, Failure, stream, write_json};
use crate::feeds::{FeedsView, Story};
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};

/// Write stories: as JSON Lines, as CSV, or those of one day as gzipped RSS
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila stories export --data ./example --jsonl > stories.jsonl\n  nephila stories export --data ./example --csv --since 7d > week.csv\n  nephila stories export --data ./example --rss 2026-11-15 > mc-2026-11-15.rss.gz\n\n--rss writes what was found on that day (UTC), an item a story."
)]
pub struct ExportArgs {
    #[command(flatten)]
    data: DataArg,
    #[command(flatten)]
    filter: StoryFilter,
    /// One JSON object a line
    #[arg(long, alias = "json", conflicts_with_all = ["csv", "rss"])]
    jsonl: bool,
    /// Comma-separated, with a line of names
    #[arg(long, conflicts_with = "rss")]
    csv: bool,
    /// RSS 2.0 of one day, gzipped
    #[arg(long, value_name = "DAY", value_parser = read_day)]
    rss: Option<u32>,
}

const COLUMNS: &str = "id,source,feed,url,guid,title,published,provenance,seen,language,state,doc_id\r\n";

impl ExportArgs {
    pub fn run(self) -> Result<(), Failure> {
        if !self.jsonl && !self.csv && self.rss.is_none() {
            return Err(Failure::Usage("as what? give --jsonl, --csv or --rss DAY".into()));
        }
        let views = Views::open(&self.data.path)?;
        stream(|out| match self.rss {
            Some(day) => rss(out, &views, &self.filter, day),
            None if self.csv => {
                out.write_all(COLUMNS.as_bytes())?;
                self.filter.each(&views, |story| out.write_all(csv_line(&views.told(story)).as_bytes()))
            }
            None => self.filter.each(&views, |story| write_json(out, &views.told(story))),
        })
    }
}

fn csv_line(story: &StoryTold) -> String {
    let fields = [
        &story.id.to_string(),
        &story.source,
        &story.feed.to_string(),
        &story.url,
        &story.guid,
        &story.title,
        &story.published,
        story.provenance.name(),
        &story.seen,
        story.language.as_deref().unwrap_or(""),
        story.state.name(),
        &story.doc_id.map_or(String::new(), |doc_id| doc_id.to_string()),
    ];
    let fields: Vec<String> = fields.into_iter().map(quoted).collect();
    fields.join(",") + "\r\n"
}

/// A field of a line. It was written by strangers: a table calculates nothing from it, and a terminal obeys it in nothing.
fn quoted(field: &str) -> String {
    let field: String = field.chars().filter(|c| !c.is_control() || *c == '\n').collect();
    let field = match field.starts_with(['=', '+', '-', '@']) {
        true => format!("'{field}"),
        false => field,
    };
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field,
    }
}

/// A day as 2026-11-15, counted from 1970-01-01.
fn read_day(text: &str) -> Result<u32, String> {
    let parts: Vec<Option<u32>> = text.split('-').map(|part| part.parse().ok()).collect();
    let day = match parts[..] {
        [Some(year), Some(month), Some(day)] if text.len() == 10 => Civil::checked(year, month, day),
        _ => None,
    };
    day.map(Civil::days)
        .ok_or_else(|| format!("{} is not a day, like 2026-11-15", crate::base::shown(text, 60)))
}

/// What was found on one day, as RSS.
fn rss(out: &mut impl Write, views: &Views, filter: &StoryFilter, day: u32) -> io::Result<()> {
    let mut out = GzEncoder::new(out, Compression::default());
    let Civil { year, month, day: of_month } = Civil::from_days(day);
    write!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rss version=\"2.0\">\n<channel>\n<title>Stories of {year:04}-{month:02}-{of_month:02}</title>\n<description>URLs of stories that were found on that day</description>\n"
    )?;
    filter.each(views, |story| match story.seen_s / 86_400 == day {
        true => item(&mut out, &views.feeds, story),
        false => Ok(()),
    })?;
    out.write_all(b"</channel>\n</rss>\n")?;
    out.finish()?.flush()
}

fn item(out: &mut impl Write, feeds: &FeedsView, story: &Story) -> io::Result<()> {
    let domain = crate::proto::url::CrawlUrl::from_normal(&story.url)
        .map_or(String::new(), |url| url.registrable_domain().to_string());
    let feed = feeds.feed(story.feed).map_or("", |feed| feed.url());
    let source = feeds.source(story.source).map_or("", |source| &source.name);
    write!(
        out,
        "<item>\n<link>{}</link>\n<guid isPermaLink=\"false\">{}</guid>\n<pubDate>{}</pubDate>\n<domain>{}</domain>\n<title>{}</title>\n<source url=\"{}\">{}</source>\n</item>\n",
        escaped(&story.url),
        story.id,
        rfc822(story.published_s),
        escaped(&domain),
        escaped(&story.title),
        escaped(feed),
        escaped(source)
    )
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            // What XML has no place for.
            c if (c.is_control() && !"\t\n\r".contains(c)) || "\u{fffe}\u{ffff}".contains(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fn rfc822(at_s: u32) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, of_day) = (at_s / 86_400, at_s % 86_400);
    let Civil { year, month, day } = Civil::from_days(days);
    format!(
        "{}, {day:02} {} {year:04} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        MONTHS[month as usize - 1],
        of_day / 3_600,
        of_day / 60 % 60,
        of_day % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_fields_are_written_as_others_read_them() {
        assert_eq!(rfc822(1_794_829_022), "Mon, 16 Nov 2026 11:37:02 GMT");
        assert_eq!(read_day("2026-11-16"), Ok(1_794_829_022 / 86_400));
        for wrong in ["2026-11-31", "2026-1-1", "today", "2026-11-16-1", ""] {
            assert!(read_day(wrong).is_err(), "{wrong}");
        }
        assert_eq!(quoted("a \"b\", c"), "\"a \"\"b\"\", c\"");
        assert_eq!(quoted("=HYPERLINK(\u{1b}1)"), "'=HYPERLINK(1)");
        assert_eq!(escaped("<a & \u{1b}\"b\">"), "&lt;a &amp;  &quot;b&quot;&gt;");
    }
}

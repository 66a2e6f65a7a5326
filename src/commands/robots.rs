use super::shared::{Failure, parse_url, stream, write_json};
use crate::base::shown;
use crate::limits::URL_BYTES_MAX;
use crate::proto::robots::{ROBOTS_BYTES_MAX, Robots, product_token};
use crate::proto::url::{CrawlUrl, UrlError};
use clap::Args;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read, Write};

/// Ask a robots.txt about URLs: allow or deny, one line each; exit 1 if any is denied
#[derive(Args)]
#[command(after_help = "\
Example:
  nephila robots --agent nephila robots.txt http://example.org/private/ /search?q=x
  curl -s http://example.org/robots.txt | nephila robots --agent nephila --json - /")]
pub struct RobotsArgs {
    /// Who asks: a product token, or a User-Agent whose first word is one; * for whoever is not named
    #[arg(long, value_name = "NAME")]
    agent: String,
    /// One JSON object a line: {"url","allowed","rule"}; rule is the pattern that decided, or null
    #[arg(long)]
    json: bool,
    /// The robots.txt; - reads it from stdin
    file: String,
    /// Absolute, or a path that begins with a slash
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    url: &'a str,
    allowed: bool,
    rule: Option<&'a str>,
}

impl RobotsArgs {
    pub fn run(self) -> Result<(), Failure> {
        let token = product_token(&self.agent);
        if token.is_empty() && self.agent != "*" {
            return Err(Failure::Usage(format!(
                "--agent {}: a name begins with a letter, _ or -",
                shown(&self.agent, 100)
            )));
        }
        // All are read before the first is answered: a script gets all answers or none.
        let paths = self.urls.iter().map(|url| path_of(url)).collect::<Result<Vec<CrawlUrl>, Failure>>()?;
        let bytes = self.read().map_err(|e| {
            Failure::Usage(format!("cannot read {}: {e}; - reads from stdin", shown(&self.file, 1_000)))
        })?;
        let robots = Robots::parse(&bytes, token);
        let answers: Vec<Answer<'_>> = self
            .urls
            .iter()
            .zip(&paths)
            .map(|(url, path)| {
                let verdict = robots.verdict(path.path_and_query().as_bytes());
                Answer { url, allowed: verdict.allowed, rule: verdict.rule }
            })
            .collect();
        stream(|out| answers.iter().try_for_each(|answer| answer.write(out, self.json)))?;
        match answers.iter().all(|answer| answer.allowed) {
            true => Ok(()),
            false => Err(Failure::No(String::new())),
        }
    }

    /// One byte more than is parsed, so that a line cut by the limit can be told from a last one.
    fn read(&self) -> io::Result<Vec<u8>> {
        let bytes_max = ROBOTS_BYTES_MAX as u64 + 1;
        let mut bytes = Vec::new();
        match &*self.file {
            "-" => io::stdin().lock().take(bytes_max).read_to_end(&mut bytes)?,
            path => File::open(path)?.take(bytes_max).read_to_end(&mut bytes)?,
        };
        Ok(bytes)
    }
}

impl Answer<'_> {
    fn write(&self, out: &mut impl Write, json: bool) -> io::Result<()> {
        let word = if self.allowed { "allow" } else { "deny" };
        match json {
            true => write_json(out, self),
            false => writeln!(out, "{word}\t{}", shown(self.url, URL_BYTES_MAX)),
        }
    }
}

/// What the crawl would ask for: a path is of any host.
fn path_of(url: &str) -> Result<CrawlUrl, Failure> {
    if !url.starts_with('/') {
        return parse_url(url);
    }
    let parsed = match url.len() > URL_BYTES_MAX {
        true => Err(UrlError::TooLong),
        false => CrawlUrl::parse(&format!("http://h{url}")),
    };
    parsed.map_err(|e| Failure::Usage(format!("{}: {e}", shown(url, 200))))
}

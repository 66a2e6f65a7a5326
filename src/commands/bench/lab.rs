use super::crawl_process::CrawlProcess;
use super::plot::{Axis, Bar, Plot, escaped, number};
use super::record::{Machine, command_line};
use super::stage::Stage;
use super::watched::{Density, Watched};
use crate::commands::shared::{Failure, on_cores};
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};

/// What else is made of a run: one crawl more is watched for it.
#[derive(Args)]
pub(super) struct LabArgs {
    /// Write a page with plots of the run: one HTML file that needs nothing else
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write the percentiles of fetch times as HdrHistogram's tools read them
    #[arg(long, value_name = "FILE")]
    hgrm: Option<PathBuf>,
}

impl LabArgs {
    pub fn is_wanted(&self) -> bool {
        self.report.is_some() || self.hgrm.is_some()
    }

    /// Whether there will be a place to write to, before anything is measured.
    pub fn check(&self) -> Result<(), Failure> {
        for path in [&self.report, &self.hgrm].into_iter().flatten() {
            write(path, "")?;
        }
        Ok(())
    }

    pub fn watch(&self, crawl: &mut CrawlProcess, stage: &Stage) -> Result<Watched, Failure> {
        let child = crawl.start_anew()?;
        // Looking is not to take time from what is looked at.
        let (threads, output) = on_cores(&[stage.farm_core], || Watched::until_end(child))??;
        CrawlProcess::read(&output)?;
        Watched::read(&crawl.data, threads)
    }

    /// Writes what was asked for; `beside` is what a page costs, and costs others.
    pub fn write(&self, title: &str, watched: &Watched, beside: Vec<Bar>) -> Result<(), Failure> {
        if let Some(path) = &self.hgrm {
            write(path, &watched.hgrm())?;
        }
        if let Some(path) = &self.report {
            write(path, &page(title, sections(watched, beside)))?;
        }
        Ok(())
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|e| Failure::CannotRun(format!("cannot write {}: {e}", path.display())))
}

/// A plot and what is to be said of it.
struct Section {
    heading: &'static str,
    text: String,
    plot: Plot,
}

const PER_PAGE: &str = "µs a page";

fn sections(watched: &Watched, beside: Vec<Bar>) -> Vec<Section> {
    vec![
        Section {
            heading: "CPU beside others",
            text: "CPU of the whole process, user and system, for each page: medians of rounds in which all of them took \
                   turns on the same core."
                .to_string(),
            plot: Plot::Bars { unit: PER_PAGE, bars: beside },
        },
        pace(watched),
        fetch_times(watched),
        stages(watched),
        density(&watched.density),
    ]
}

fn pace(watched: &Watched) -> Section {
    let part_s = watched.part_ms as f64 / 1e3;
    let rates: Vec<f64> = watched.pages.iter().map(|pages| *pages as f64 / part_s).collect();
    let most = rates.iter().copied().fold(0.0, f64::max);
    let points = rates.iter().enumerate().map(|(part, rate)| ((part as f64 + 0.5) * part_s, *rate)).collect();
    let pages: u64 = watched.pages.iter().sum();
    Section {
        heading: "Pages per second",
        text: format!("{pages} pages as the crawl's log has them, by parts of {} ms.", watched.part_ms),
        plot: Plot::Line {
            x: Axis::up_to("seconds", rates.len() as f64 * part_s),
            y: Axis::up_to("pages/s", most),
            points,
        },
    }
}

/// Over nines: each step to the right is a tenth of the fetches that were left.
fn fetch_times(watched: &Watched) -> Section {
    let fetches = &watched.fetches;
    let ms_at = |quantile: f64| fetches.value_at_quantile(quantile) as f64 / 1e3;
    let nines = (fetches.len().max(10) as f64).log10().floor().min(6.0);
    let steps = (nines * 20.0) as usize;
    let points: Vec<(f64, f64)> =
        (0..=steps).map(|n| n as f64 / 20.0).map(|nines| (nines, ms_at(1.0 - 10f64.powf(-nines)))).collect();
    let ticks = (0..=nines as usize).map(|n| (n as f64, format!("{} %", nines_text(n)))).collect();
    let most = points.last().map_or(0.0, |point| point.1);
    Section {
        heading: "Fetch times",
        text: format!(
            "From the decision to ask until {} pages were there: half within {} ms, 99 % within {} ms, all within {} ms.",
            fetches.len(),
            number(ms_at(0.5)),
            number(ms_at(0.99)),
            number(fetches.max() as f64 / 1e3)
        ),
        plot: Plot::Line {
            x: Axis { name: "share of the fetches", ticks },
            y: Axis::up_to("milliseconds", most),
            points,
        },
    }
}

/// 0, 90, 99, 99.9 …
fn nines_text(nines: usize) -> String {
    match nines {
        0 => "0".to_string(),
        1 => "90".to_string(),
        2 => "99".to_string(),
        more => format!("99.{}", "9".repeat(more - 2)),
    }
}

fn stages(watched: &Watched) -> Section {
    let pages = watched.fetches.len().max(1) as f64;
    let bar =
        |(name, cpu_us): &(String, f64)| Bar { name: name.clone(), value: cpu_us / pages, is_ours: true };
    Section {
        heading: "CPU by stage",
        text: "By the threads of the crawl. A shard schedules, fetches, reads links and compresses; the keeper syncs segments; \
               the index knows every URL; the scheduler hands out hosts; the log is written by a thread of its own."
            .to_string(),
        plot: Plot::Bars { unit: PER_PAGE, bars: watched.threads.iter().map(bar).collect() },
    }
}

fn density(density: &Density) -> Section {
    let ratio = |bytes: u64| density.plain as f64 / bytes.max(1) as f64;
    let bar = |name: &str, bytes: u64, is_ours| Bar { name: name.to_string(), value: ratio(bytes), is_ours };
    Section {
        heading: "Density",
        text: format!(
            "{} pages of the store with their names and facts; for comparison heads and bodies alone.",
            density.pages
        ),
        plot: Plot::Bars {
            unit: ": 1",
            bars: vec![
                bar("the store", density.stored, true),
                bar("LZ4, each page alone", density.lz4, false),
                bar("gzip -6, each page alone", density.gzip, false),
            ],
        },
    }
}

const STYLE: &str = "\
:root{--ink:#1d2328;--faint:#d5dade;--paper:#fdfdfc;--curve:#0b6e8a;--peer:#9aa7b1}
@media(prefers-color-scheme:dark){:root{--ink:#e4e7ea;--faint:#3a434a;--paper:#15191c;--curve:#4fb6d3;--peer:#66727c}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:820px;margin:2em auto;padding:0 1em}
h1{font-size:1.5em}h2{font-size:1.1em;margin-top:2em}code{overflow-wrap:anywhere}
svg{width:100%;height:auto;font:12px system-ui,sans-serif;fill:var(--ink)}
.grid{stroke:var(--faint)}.curve{fill:none;stroke:var(--curve);stroke-width:2}.bar{fill:var(--peer)}.ours{fill:var(--curve)}
.name{font-style:italic}";

fn page(title: &str, sections: Vec<Section>) -> String {
    let machine = Machine::new();
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>nephila bench</title>\n<style>\n{STYLE}\n</style>\n</head>\n\
         <body>\n<h1>nephila bench</h1>\n<p>{}</p>\n<p><code>{}</code><br>{}</p>\n",
        escaped(title),
        escaped(&command_line()),
        escaped(&machine.text())
    );
    for Section { heading, text, plot } in sections {
        let (plot, text) = (plot.svg(heading), escaped(&text));
        page += &format!("<section>\n<h2>{heading}</h2>\n{plot}\n<p>{text}</p>\n</section>\n");
    }
    page + "</body>\n</html>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;

    #[test]
    fn every_section_has_its_plot_and_nothing_is_fetched_from_elsewhere() {
        let mut fetches = Histogram::new(3).unwrap();
        (1..=5_000).for_each(|us| fetches.record(us).unwrap());
        let density = Density { pages: 5, plain: 1_000, stored: 100, lz4: 500, gzip: 250 };
        let threads = vec![("shard".to_string(), 90_000.0), ("keeper".to_string(), 10_000.0)];
        let watched = Watched { pages: vec![100, 300, 200], part_ms: 500, threads, density, fetches };
        let beside = vec![Bar { name: "<wrk>".to_string(), value: 7.0, is_ours: false }];
        let page = page("64 hosts", sections(&watched, beside));
        assert_eq!(page.matches("<svg").count(), 5);
        assert_eq!(page.matches("</section>").count(), 5);
        for said in
            ["600 pages", "half within 2.5 ms", "99.9 %", "18 µs a page", "10 : 1", "4 : 1", "&lt;wrk&gt;"]
        {
            assert!(page.contains(said), "{said}");
        }
        for foreign in ["http:", "https:", "src=", "url(", "@import", "<script"] {
            assert!(!page.contains(foreign), "{foreign}");
        }
    }
}

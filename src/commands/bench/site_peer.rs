use super::stage::{Stage, is_installed};
use crate::commands::shared::Failure;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Another program that is given a site: it follows its links, or asks for one page of it.
pub(super) struct SitePeer {
    pub name: &'static str,
    /// What it leaves behind, as that costs, too.
    pub keeps: &'static str,
    way: Way,
}

enum Way {
    /// Pages as files.
    Wget2,
    /// One page, again and again.
    Wrk { seconds: u32 },
    /// `PROGRAM … URL CONNECTIONS DIR`, which prints the path of every page that it brought.
    Program { program: PathBuf, args: Vec<PathBuf> },
}

/// What one visit brought.
pub(super) struct Visit {
    /// Paths; none of one that asks for a single page.
    pub pages: Option<BTreeSet<String>>,
    pub cpu_us_per_page: f64,
}

impl SitePeer {
    /// The one that is on every machine.
    pub fn usual() -> (Vec<SitePeer>, Vec<&'static str>) {
        SitePeer::installed(vec![SitePeer::wget2()])
    }

    /// All of them; those that `setup` makes are in a directory.
    pub fn all(dir: &Path, wrk_seconds: u32) -> (Vec<SitePeer>, Vec<&'static str>) {
        let program = |name: &'static str, keeps, program: PathBuf, args| SitePeer {
            name,
            keeps,
            way: Way::Program { program, args },
        };
        let built = |name: &str| dir.join(name).join("target/release").join(name);
        SitePeer::installed(vec![
            SitePeer { name: "wrk", keeps: "keeps nothing", way: Way::Wrk { seconds: wrk_seconds } },
            SitePeer::wget2(),
            program("hyper", "keeps LZ4 in a file", built("hyper-crawler"), Vec::new()),
            program("spider", "keeps nothing", built("spider-crawler"), Vec::new()),
            program(
                "scrapy",
                "keeps nothing",
                dir.join("venv/bin/python"),
                vec![dir.join("scrapy_crawler.py")],
            ),
        ])
    }

    fn wget2() -> SitePeer {
        SitePeer { name: "wget2", keeps: "keeps files", way: Way::Wget2 }
    }

    /// Those that are here, and the names of the others.
    fn installed(peers: Vec<SitePeer>) -> (Vec<SitePeer>, Vec<&'static str>) {
        let (here, away): (Vec<SitePeer>, Vec<SitePeer>) = peers.into_iter().partition(SitePeer::is_here);
        (here, away.iter().map(|peer| peer.name).collect())
    }

    fn is_here(&self) -> bool {
        match &self.way {
            Way::Wget2 => is_installed("wget2", "--version"),
            Way::Wrk { .. } => is_installed("wrk", "-v"),
            Way::Program { program, args } => program.exists() && args.iter().all(|arg| arg.exists()),
        }
    }

    /// Sends it to a page, on the core of what is measured.
    pub fn visit(&self, stage: &Stage, url: &str, connections: u8) -> Result<Visit, Failure> {
        let dir = stage.dir.join(self.name);
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        fs::create_dir_all(&dir)?;
        let visit = match &self.way {
            Way::Wget2 => wget2(stage, url, &dir),
            Way::Wrk { seconds } => {
                let ran = stage.wrk(url, connections.into(), *seconds)?;
                Ok(Visit { pages: None, cpu_us_per_page: ran.cpu_us_per_request })
            }
            Way::Program { program, args } => {
                let mut command = Command::new(program);
                command.args(args).arg(url).arg(connections.to_string()).arg(&dir);
                let ran = stage.peer(command)?;
                let is_page = |line: &&str| line.ends_with(".html");
                let path = |line: &str| line.trim_start_matches('/').to_string();
                let pages: BTreeSet<String> = ran.text.lines().filter(is_page).map(path).collect();
                match pages.is_empty() {
                    true => Err(ran.unread(self.name)),
                    false => Ok(Visit::of_pages(pages, ran.cpu_us)),
                }
            }
        };
        fs::remove_dir_all(&dir)?;
        visit
    }
}

impl Visit {
    fn of_pages(pages: BTreeSet<String>, cpu_us: f64) -> Visit {
        Visit { cpu_us_per_page: cpu_us / pages.len().max(1) as f64, pages: Some(pages) }
    }
}

/// All pages that links lead to, into files.
fn wget2(stage: &Stage, url: &str, dir: &Path) -> Result<Visit, Failure> {
    let mut command = Command::new("wget2");
    command.args(["--recursive", "--level=inf", "--quiet", "--no-host-directories", "--no-robots"]);
    command.args(["--accept", "*.html", "--max-threads=1", "--http2=off"]);
    command.arg("--directory-prefix").arg(dir).arg(url);
    let ran = stage.peer(command)?;
    let mut pages = BTreeSet::new();
    files_in(dir, dir, &mut pages)?;
    match pages.is_empty() {
        true => Err(ran.unread("wget2")),
        false => Ok(Visit::of_pages(pages, ran.cpu_us)),
    }
}

/// HTML files by their paths.
fn files_in(root: &Path, folder: &Path, found: &mut BTreeSet<String>) -> Result<(), Failure> {
    for entry in fs::read_dir(folder)? {
        let path: PathBuf = entry?.path();
        if path.is_dir() {
            files_in(root, &path, found)?;
        } else if path.extension().is_some_and(|end| end == "html") {
            found.insert(path.strip_prefix(root).unwrap_or(&path).display().to_string());
        }
    }
    Ok(())
}

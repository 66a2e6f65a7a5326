use super::rounds::median;
use crate::commands::shared::{Failure, print};
use clap::Args;
use serde::Serialize;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Compare two recorded runs, figure by figure
///
/// Of figures that were taken in rounds the median and the range are shown; where the two ranges have something in common the
/// difference may be the machine's. What was typed and the machine are compared, too.
#[derive(Args)]
#[command(
    after_help = "Example:\n  nephila bench --rounds 5 --record before.json\n  nephila bench --rounds 5 --record after.json\n  nephila bench diff before.json after.json"
)]
pub(super) struct DiffArgs {
    /// The run before
    #[arg(value_name = "FILE")]
    before: PathBuf,
    /// The run after
    #[arg(value_name = "FILE")]
    after: PathBuf,
    #[arg(long)]
    json: bool,
}

/// A recorded run is a few kilobytes.
const RUN_BYTES_MAX: u64 = 16 << 20;
/// Rounds have this name, wherever they were taken.
const ROUNDS: &str = "every_round";

#[derive(Serialize)]
struct Difference {
    commands: (String, String),
    machines: (String, String),
    figures: Vec<FigureDifference>,
    only_before: Vec<String>,
    only_after: Vec<String>,
}

#[derive(Serialize, Debug, PartialEq)]
struct FigureDifference {
    name: String,
    before: Taken,
    after: Taken,
    /// After over before; none where before is nothing.
    ratio: Option<f64>,
    /// The rounds of both have something in common.
    within_rounds: bool,
}

/// A figure; where it was taken in rounds the one in the middle, the least and the most.
#[derive(Serialize, Clone, Debug, PartialEq)]
struct Taken {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<(f64, f64)>,
}

/// A run as it was recorded.
struct RecordedRun {
    command: String,
    machine: String,
    figures: Vec<(String, Taken)>,
}

impl DiffArgs {
    pub fn run(self) -> Result<(), Failure> {
        let (before, after) = (RecordedRun::read(&self.before)?, RecordedRun::read(&self.after)?);
        let difference = Difference::new(before, after);
        print(&match self.json {
            true => serde_json::to_string(&difference)? + "\n",
            false => difference.text(),
        })
    }
}

impl RecordedRun {
    fn read(path: &Path) -> Result<RecordedRun, Failure> {
        let fails = |why: String| Failure::Usage(format!("{} {why}", path.display()));
        let mut text = String::new();
        let file = File::open(path).map_err(|e| fails(format!("cannot be read: {e}")))?;
        let mut bounded = file.take(RUN_BYTES_MAX + 1);
        bounded.read_to_string(&mut text).map_err(|e| fails(format!("cannot be read: {e}")))?;
        if text.len() as u64 > RUN_BYTES_MAX {
            return Err(fails("is too long for a recorded run".to_string()));
        }
        RecordedRun::parse(&text)
            .ok_or_else(|| fails("is no recorded run: name a file that `bench --record` wrote".to_string()))
    }

    fn parse(text: &str) -> Option<RecordedRun> {
        let run: Value = serde_json::from_str(text).ok()?;
        let command = run.get("command")?.as_str()?.to_string();
        let machine = run.get("machine")?;
        let part = |name: &str| match machine.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => "?".to_string(),
        };
        let machine = format!("{}, {} cores, Linux {}", part("cpu"), part("cores"), part("kernel"));
        let mut figures = Vec::new();
        for (name, value) in run.as_object()? {
            if name != "machine" {
                collect(name, value, &mut figures);
            }
        }
        Some(RecordedRun { command, machine, figures })
    }
}

/// The figures below a name.
fn collect(name: &str, value: &Value, figures: &mut Vec<(String, Taken)>) {
    match value {
        Value::Number(number) => {
            let value = number.as_f64().unwrap_or(f64::NAN);
            figures.push((name.to_string(), Taken { value, range: None }));
        }
        Value::Object(fields) => {
            for (field, value) in fields {
                collect(&format!("{name}.{field}"), value, figures);
            }
        }
        Value::Array(rounds) if name.rsplit('.').next() == Some(ROUNDS) => {
            collect_rounds(name, rounds, figures)
        }
        Value::Array(parts) => {
            for (index, part) in parts.iter().enumerate() {
                collect(&format!("{name}.{}", part_name(part, index)), part, figures);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// What a part of a list calls itself, or its number.
fn part_name(part: &Value, index: usize) -> String {
    let own = ["name", "kind", "what", "peer"].into_iter().find_map(|field| part.get(field)?.as_str());
    own.map_or_else(|| index.to_string(), str::to_string)
}

/// The same figures of all rounds, each as one.
fn collect_rounds(name: &str, rounds: &[Value], figures: &mut Vec<(String, Taken)>) {
    let mut all: Vec<(String, Taken)> = Vec::new();
    for round in rounds {
        collect(name, round, &mut all);
    }
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in &all {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    for name in names {
        let values = || all.iter().filter(|(other, _)| other == name).map(|(_, taken)| taken.value);
        let range = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        figures.push((name.to_string(), Taken { value: median(values()), range: Some(range) }));
    }
}

impl Difference {
    fn new(before: RecordedRun, after: RecordedRun) -> Difference {
        let find = |run: &RecordedRun, name: &str| {
            run.figures.iter().find(|(other, _)| other == name).map(|(_, taken)| taken.clone())
        };
        let lacking = |run: &RecordedRun, other: &RecordedRun| {
            let names = run.figures.iter().map(|(name, _)| name);
            names.filter(|name| find(other, name).is_none()).cloned().collect()
        };
        let figures = before.figures.iter().filter_map(|(name, before)| {
            find(&after, name).map(|after| FigureDifference::new(name, before.clone(), after))
        });
        Difference {
            figures: figures.collect(),
            only_before: lacking(&before, &after),
            only_after: lacking(&after, &before),
            commands: (before.command, after.command),
            machines: (before.machine, after.machine),
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (what, (before, after)) in [("command", &self.commands), ("machine", &self.machines)] {
            text += &match before == after {
                true => format!("{what}  {before}\n"),
                false => format!("{what}  before: {before}\n         after:  {after}\n"),
            };
        }
        let names = self.figures.iter().map(|figure| figure.name.len());
        let width = names.max().unwrap_or(0).max("figure".len());
        text += &format!("\n{:<width$}  {:>14}  {:>14}  after / before\n", "figure", "before", "after");
        for figure in &self.figures {
            let ratio = match figure.ratio {
                _ if figure.before == figure.after => "same".to_string(),
                Some(ratio) if figure.within_rounds => format!("{ratio:.3} x  (ranges of the rounds meet)"),
                Some(ratio) => format!("{ratio:.3} x"),
                None => "-".to_string(),
            };
            let (before, after) = (shown(figure.before.value), shown(figure.after.value));
            text += &format!("{:<width$}  {before:>14}  {after:>14}  {ratio}\n", figure.name);
        }
        for (when, names) in [("before", &self.only_before), ("after", &self.only_after)] {
            if !names.is_empty() {
                text += &format!("\nonly {when}: {}\n", names.join(", "));
            }
        }
        text
    }
}

impl FigureDifference {
    fn new(name: &str, before: Taken, after: Taken) -> FigureDifference {
        let ratio =
            (before.value != 0.0).then(|| after.value / before.value).filter(|ratio| ratio.is_finite());
        let within_rounds = before
            .range
            .zip(after.range)
            .is_some_and(|(before, after)| before.0 <= after.1 && after.0 <= before.1);
        FigureDifference { name: name.to_string(), before, after, ratio, within_rounds }
    }
}

/// Whole numbers as they are, others with four figures that count.
fn shown(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    let before_point = value.abs().log10().floor() as i32 + 1;
    format!("{value:.*}", (4 - before_point).clamp(0, 9) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &str, measured: &str) -> RecordedRun {
        let machine = r#"{"cpu": "c", "cores": 2, "kernel": "6"}"#;
        RecordedRun::parse(&format!(r#"{{"command": "{command}", "machine": {machine}, {measured}}}"#))
            .unwrap()
    }

    #[test]
    fn figures_are_found_by_their_names_and_rounds_are_taken_together() {
        let before = run(
            "b",
            r#""us": 50.0, "zero": 0, "text": "x", "gone": 1, "wrk": {"us": 10}, "peers": [{"name": "gnu", "us": 4}],
               "every_round": [{"crawl": 3.0}, {"crawl": 1.0}, {"crawl": 2.0}]"#,
        );
        let after = run(
            "b",
            r#""us": 40.0, "zero": 3, "new": 1, "wrk": {"us": 10}, "peers": [{"name": "awk", "us": 9}, {"name": "gnu", "us": 2}],
               "every_round": [{"crawl": 5.0}, {"crawl": 2.5}, {"crawl": 4.0}]"#,
        );
        let difference = Difference::new(before, after);
        let ratios: Vec<(&str, Option<f64>, bool)> =
            difference.figures.iter().map(|f| (f.name.as_str(), f.ratio, f.within_rounds)).collect();
        assert_eq!(
            ratios,
            [
                ("every_round.crawl", Some(2.0), true),
                ("peers.gnu.us", Some(0.5), false),
                ("us", Some(0.8), false),
                ("wrk.us", Some(1.0), false),
                ("zero", None, false),
            ]
        );
        assert_eq!(difference.only_before, ["gone"]);
        assert_eq!(difference.only_after, ["new", "peers.awk.us"]);
        let text = difference.text();
        assert!(
            text.contains("0.800 x\n") && text.contains("2.000 x  (ranges of the rounds meet)"),
            "{text}"
        );
        assert!(text.contains("only before: gone\n") && text.contains("command  b\n"), "{text}");
    }

    #[test]
    fn what_is_no_run_is_none() {
        for text in ["", "[]", "{}", r#"{"command": 5, "machine": {}}"#, r#"{"command": "x"}"#] {
            assert!(RecordedRun::parse(text).is_none(), "{text}");
        }
        let other = RecordedRun::parse(r#"{"command": "x", "machine": {}, "deep": [[1], [2, 3]]}"#).unwrap();
        let names: Vec<&str> = other.figures.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["deep.0.0", "deep.1.0", "deep.1.1"]);
        assert_eq!(other.machine, "?, ? cores, Linux ?");
    }

    #[test]
    fn numbers_have_four_figures() {
        for (value, text) in
            [(12_345.0, "12345"), (0.012_345, "0.01235"), (65.432, "65.43"), (98_765.4, "98765")]
        {
            assert_eq!(shown(value), text);
        }
    }
}

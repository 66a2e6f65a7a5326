//! Plots as SVG, with what they show as text, too.

use std::fmt::Write;

/// A curve over whole steps, or bars with names.
pub(super) enum Plot {
    Line { x: Axis, y: Axis, points: Vec<(f64, f64)> },
    Bars { unit: &'static str, bars: Vec<Bar> },
}

pub(super) struct Axis {
    pub name: &'static str,
    /// Marks and what stands beside them; the first and the last are the ends.
    pub ticks: Vec<(f64, String)>,
}

pub(super) struct Bar {
    pub name: String,
    pub value: f64,
    /// Ours, which stands out.
    pub is_ours: bool,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const BOTTOM: f64 = 46.0;
const MARGIN: f64 = 16.0;
const BAR_HEIGHT: f64 = 26.0;
const BAR_LEFT: f64 = 210.0;
const BAR_RIGHT: f64 = 120.0;

impl Axis {
    /// From nothing to at least this, in steps that are easy to read.
    pub fn up_to(name: &'static str, most: f64) -> Axis {
        let step = step_for(most / 5.0);
        let steps = (most / step).ceil().max(1.0) as usize;
        let tick = |n: usize| (n as f64 * step, number(n as f64 * step));
        Axis { name, ticks: (0..=steps).map(tick).collect() }
    }

    fn ends(&self) -> (f64, f64) {
        let at = |tick: Option<&(f64, String)>| tick.map_or(0.0, |tick| tick.0);
        (at(self.ticks.first()), at(self.ticks.last()))
    }

    /// Where a value is, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        let (first, last) = self.ends();
        ((value - first) / (last - first).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
    }
}

impl Plot {
    pub fn svg(&self, title: &str) -> String {
        match self {
            Plot::Line { x, y, points } => line(title, x, y, points),
            Plot::Bars { unit, bars } => bars_svg(title, unit, bars),
        }
    }
}

fn line(title: &str, x: &Axis, y: &Axis, points: &[(f64, f64)]) -> String {
    let (inner_width, inner_height) = (WIDTH - LEFT - MARGIN, HEIGHT - BOTTOM - MARGIN);
    let at = |value: (f64, f64)| {
        (LEFT + x.place(value.0) * inner_width, MARGIN + (1.0 - y.place(value.1)) * inner_height)
    };
    let (x_from, y_from) = (x.ends().0, y.ends().0);
    let mut svg = open(title, HEIGHT);
    for (value, text) in &y.ticks {
        let (left, up) = at((x_from, *value));
        let _ = write!(
            svg,
            r#"<line class="grid" x1="{left:.1}" y1="{up:.1}" x2="{:.1}" y2="{up:.1}"/>"#,
            WIDTH - MARGIN
        );
        let _ = write!(
            svg,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
            left - 8.0,
            up + 4.0,
            escaped(text)
        );
    }
    for (value, text) in &x.ticks {
        let (left, down) = at((*value, y_from));
        let _ =
            write!(svg, r#"<line class="grid" x1="{left:.1}" y1="{MARGIN}" x2="{left:.1}" y2="{down:.1}"/>"#);
        let _ = write!(
            svg,
            r#"<text x="{left:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            down + 18.0,
            escaped(text)
        );
    }
    let places: Vec<String> =
        points.iter().map(|point| at(*point)).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = write!(svg, r#"<polyline class="curve" points="{}"/>"#, places.join(" "));
    let middle = LEFT + inner_width / 2.0;
    let _ = write!(
        svg,
        r#"<text class="name" x="{middle}" y="{}" text-anchor="middle">{}</text>"#,
        HEIGHT - 8.0,
        escaped(x.name)
    );
    let _ = write!(
        svg,
        r#"<text class="name" transform="translate(14 {}) rotate(-90)" text-anchor="middle">{}</text></svg>"#,
        MARGIN + inner_height / 2.0,
        escaped(y.name)
    );
    svg
}

fn bars_svg(title: &str, unit: &str, bars: &[Bar]) -> String {
    let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let mut svg = open(title, bars.len() as f64 * BAR_HEIGHT + 2.0 * MARGIN);
    for (index, Bar { name, value, is_ours }) in bars.iter().enumerate() {
        let top = MARGIN + index as f64 * BAR_HEIGHT;
        let width = (WIDTH - BAR_LEFT - BAR_RIGHT) * value.max(0.0) / most;
        let class = if *is_ours { "bar ours" } else { "bar" };
        let middle = top + BAR_HEIGHT / 2.0 + 4.0;
        let _ = write!(
            svg,
            r#"<text x="{}" y="{middle}" text-anchor="end">{}</text>"#,
            BAR_LEFT - 10.0,
            escaped(name)
        );
        let _ = write!(
            svg,
            r#"<rect class="{class}" x="{BAR_LEFT}" y="{}" width="{width:.1}" height="{}"/>"#,
            top + 4.0,
            BAR_HEIGHT - 8.0
        );
        let (right, shown) = (BAR_LEFT + width + 8.0, number(*value));
        let _ = write!(svg, r#"<text x="{right:.1}" y="{middle}">{shown} {}</text>"#, escaped(unit));
    }
    svg + "</svg>"
}

fn open(title: &str, height: f64) -> String {
    let title = escaped(title);
    format!(r#"<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title}"><title>{title}</title>"#)
}

/// One, two or five times a power of ten, and no less than asked for.
fn step_for(least: f64) -> f64 {
    let power = 10f64.powf(least.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|n| n * power).find(|step| *step >= least).unwrap_or(10.0 * power)
}

/// As short as it can be read.
pub(super) fn number(value: f64) -> String {
    let text = match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

/// Text as it may stand in a page, and in quotes of an attribute.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter if letter.is_control() => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_above_the_most_and_have_round_steps() {
        for (most, last, steps) in [(17_300.0, 20_000.0, 4), (0.9, 1.0, 5), (100.0, 100.0, 5), (0.0, 1e-9, 1)]
        {
            let axis = Axis::up_to("pages", most);
            assert!((axis.ends().1 - last).abs() <= last * 1e-9, "{most}: {}", axis.ends().1);
            assert_eq!(axis.ticks.len(), steps + 1, "{most}");
        }
    }

    #[test]
    fn a_curve_stays_within_its_axes() {
        let (x, y) = (Axis::up_to("s", 10.0), Axis::up_to("pages/s", 100.0));
        let svg =
            Plot::Line { x, y, points: vec![(0.0, 0.0), (5.0, 50.0), (10.0, 100.0), (99.0, 999.0)] }.svg("t");
        let points = svg.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(points, "70.0,254.0 407.0,135.0 744.0,16.0 744.0,16.0");
    }

    #[test]
    fn names_cannot_leave_their_place() {
        let bars = vec![Bar { name: "<script>\"'&\u{1b}".to_string(), value: 1.0, is_ours: true }];
        let svg = Plot::Bars { unit: "µs", bars }.svg("a\"b");
        assert!(svg.contains("&lt;script&gt;&quot;&#39;&amp;\u{fffd}") && svg.contains("a&quot;b"), "{svg}");
        assert_eq!(svg.matches("<script").count() + svg.matches('\u{1b}').count(), 0);
        assert!(svg.contains(r#"width="430.0""#), "{svg}");
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [(0.0, "0"), (0.5, "0.5"), (12.34, "12.3"), (20.0, "20"), (15_465.2, "15465")] {
            assert_eq!(number(value), text);
        }
    }
}

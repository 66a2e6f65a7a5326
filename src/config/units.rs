use super::section::{Value, beyond};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A unit by its name, and how many of the smallest unit of its kind it stands for. The longest come first.
type Unit = (&'static str, u64);

const TIMES: &[Unit] =
    &[("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
const SIZES: &[Unit] = &[
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];

/// Reads `30s`, `1.5h`, `4 MiB` or a number, which is counted in `bare`; the answer is in `bare`, too. `None` for what is
/// none of these, is no whole number of `bare`, or does not fit.
fn quantity(text: &str, units: &[Unit], bare: u64) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, name) = text.split_at(digits);
    let unit = match name.trim_start() {
        "" if name.is_empty() => bare,
        name => units.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?.1,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    // Nine places are more than a day has milliseconds.
    if whole.is_empty() || fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let scale = 10u128.pow(fraction.len() as u32);
    let count = u128::from(whole.parse::<u64>().ok()?) * scale + u128::from(fraction.parse::<u64>().ok()?);
    let (smallest, least) = (count * u128::from(unit), scale * u128::from(bare));
    match smallest % least {
        0 => u64::try_from(smallest / least).ok(),
        _ => None,
    }
}

/// The shortest way to write it: in the longest unit that it is a whole number of.
fn written(count: u64, units: &[Unit], bare: u64) -> String {
    let smallest = u128::from(count) * u128::from(bare);
    let whole = |unit: &&Unit| smallest.is_multiple_of(u128::from(unit.1));
    match units.iter().find(whole).filter(|_| count > 0) {
        Some((name, unit)) => format!("{}{name}", smallest / u128::from(*unit)),
        None => count.to_string(),
    }
}

macro_rules! units {
    ($($(#[$about:meta])* $Unit:ident in $units:ident of $bare:literal $name:literal, $expected:literal;)+) => {
        $(
            $(#[$about])*
            #[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
            pub struct $Unit(pub u64);

            impl Value for $Unit {
                const UNIT: &'static str = $name;

                fn figure(&self) -> Option<f64> {
                    self.0.figure()
                }

                fn written(&self) -> Option<String> {
                    Some(match self.0 {
                        0 => "0".to_string(),
                        _ => format!("\"{self}\""),
                    })
                }

                fn figure_shown(&self, figure: f64) -> String {
                    written(figure as u64, $units, $bare)
                }
            }

            impl fmt::Display for $Unit {
                fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                    f.write_str(&written(self.0, $units, $bare))
                }
            }

            /// As a flag has it.
            impl FromStr for $Unit {
                type Err = &'static str;

                fn from_str(text: &str) -> Result<$Unit, &'static str> {
                    quantity(text, $units, $bare).map($Unit).ok_or(concat!("must be ", $expected))
                }
            }

            /// As a file has it: a number, or a text with a unit.
            impl<'de> Deserialize<'de> for $Unit {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$Unit, D::Error> {
                    struct Quantity;

                    impl Visitor<'_> for Quantity {
                        type Value = $Unit;

                        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                            f.write_str($expected)
                        }

                        fn visit_u64<E: de::Error>(self, number: u64) -> Result<$Unit, E> {
                            Ok($Unit(number))
                        }

                        fn visit_i64<E: de::Error>(self, number: i64) -> Result<$Unit, E> {
                            u64::try_from(number).map($Unit).map_err(|_| E::custom(concat!("must be ", $expected)))
                        }

                        fn visit_str<E: de::Error>(self, text: &str) -> Result<$Unit, E> {
                            text.parse().map_err(E::custom)
                        }
                    }

                    deserializer.deserialize_any(Quantity)
                }
            }
        )+
    };
}

units! {
    Millis in TIMES of 1 "ms", "a time like 250ms, 30s, 5min, 1h or 2d, or a whole number of milliseconds";
    Seconds in TIMES of 1_000 "s", "a time like 30s, 5min, 1h or 2d, or a whole number of seconds";
    Bytes in SIZES of 1 "bytes", "a size like 64KiB, 4MiB, 4MB or 2GiB, or a whole number of bytes";
}

/// Reads a size of bytes that is no setting, as a flag has it.
pub fn size<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    size_in(text, 0, u64::MAX)
}

pub fn size_in<N: TryFrom<u64>>(text: &str, min: u64, max: u64) -> Result<N, String> {
    let size = text.parse::<Bytes>()?;
    match beyond(&size, min as f64, max as f64) {
        None => N::try_from(size.0).map_err(|_| "is too large".to_string()),
        Some(cause) => Err(cause),
    }
}

/// Reads a time in milliseconds that is no setting, as a flag has it.
pub fn millis<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    N::try_from(text.parse::<Millis>()?.0).map_err(|_| "is too long".to_string())
}

/// How often a second, or how many times as long: below 1, too.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, serde::Deserialize)]
pub struct Rate(pub f64);

impl Value for Rate {
    fn figure(&self) -> Option<f64> {
        self.0.figure()
    }
}

/// As a flag has it.
impl FromStr for Rate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Rate, &'static str> {
        text.parse().map(Rate).map_err(|_| "must be a number")
    }
}

impl Millis {
    pub fn us(self) -> u64 {
        self.0 * 1_000
    }
}

impl Seconds {
    pub fn us(self) -> u64 {
        self.0 * 1_000_000
    }
}

/// A password, which is not shown, wherever it is printed.
#[derive(Clone, serde::Deserialize)]
pub(super) struct Secret(pub String);

impl Value for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("…")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("…")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_mean_what_people_mean() {
        for (text, ms) in [
            ("0", 0),
            ("250", 250),
            ("250ms", 250),
            ("30s", 30_000),
            ("1.5s", 1_500),
            ("5m", 300_000),
            ("5 min", 300_000),
            ("1h", 3_600_000),
            ("2d", 172_800_000),
            ("0.5H", 1_800_000),
        ] {
            assert_eq!(text.parse(), Ok(Millis(ms)), "{text}");
        }
        for (text, seconds) in [("90", 90), ("90s", 90), ("2000ms", 2), ("1.5h", 5_400), ("7d", 604_800)] {
            assert_eq!(text.parse(), Ok(Seconds(seconds)), "{text}");
        }
        for (text, bytes) in [
            ("4194304", 4 << 20),
            ("4MiB", 4 << 20),
            ("4mib", 4 << 20),
            ("4MB", 4_000_000),
            ("4 kB", 4_000),
            ("0.5GiB", 1 << 29),
            ("18446744073709551615", u64::MAX),
            ("10B", 10),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused_with_the_forms_that_are_not() {
        let bad = [
            "", " ", "s", "-1", "+1", "1e3", "1,5s", "1.s", ".5s", "1..5s", "1.5", "30 ", "1h30m", "0x10",
            "1_000",
        ];
        for text in
            bad.into_iter().chain(["4MiB", "30parsecs", "18446744073709551615d", "1.0000000001s", "1.5ms"])
        {
            let said = text.parse::<Millis>().unwrap_err();
            assert!(said.contains("250ms, 30s") && said.contains("milliseconds"), "{text}");
        }
        for text in ["250ms", "0.5s", "1.0005s"] {
            assert!(text.parse::<Seconds>().is_err(), "{text} is no whole number of seconds");
        }
        for text in bad.into_iter().chain(["4M", "4K", "30s", "0.3B", "4Mibi", "16777216TiB"]) {
            assert!(text.parse::<Bytes>().unwrap_err().contains("4MiB"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(count: u64, shift in 0u32..64) {
            let count = count >> shift;
            prop_assert_eq!(Millis(count).to_string().parse(), Ok(Millis(count)));
            prop_assert_eq!(Seconds(count).to_string().parse(), Ok(Seconds(count)));
            prop_assert_eq!(Bytes(count).to_string().parse(), Ok(Bytes(count)));
        }

        /// Whatever is typed is a figure or an error, and a longer unit never means less.
        #[test]
        fn no_text_is_too_much(text in "[0-9.]{0,24} ?[a-zA-Zµ ]{0,4}", any in ".{0,40}") {
            for text in [text, any] {
                let (ms, s, bytes) = (text.parse::<Millis>(), text.parse::<Seconds>(), text.parse::<Bytes>());
                if let (Ok(Millis(ms)), Ok(Seconds(s)), false) = (ms, s, text.ends_with(|c: char| c.is_ascii_digit())) {
                    prop_assert_eq!(ms, s * 1_000);
                }
                prop_assert!(bytes.is_err() || text.starts_with(|c: char| c.is_ascii_digit()));
            }
        }
    }
}

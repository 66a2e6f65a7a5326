use super::section::Value;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

macro_rules! units {
    ($($(#[$about:meta])* $Unit:ident($Number:ty), $expected:literal;)+) => {
        $(
            $(#[$about])*
            #[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
            pub struct $Unit(pub $Number);

            impl Value for $Unit {
                fn figure(&self) -> Option<f64> {
                    self.0.figure()
                }
            }

            /// As a flag has it.
            impl FromStr for $Unit {
                type Err = &'static str;

                fn from_str(text: &str) -> Result<$Unit, &'static str> {
                    text.parse().map($Unit).map_err(|_| concat!("must be ", $expected))
                }
            }
        )+
    };
}

units! {
    Millis(u64), "a whole number of milliseconds";
    Seconds(u64), "a whole number of seconds";
    Bytes(u64), "a whole number of bytes";
    /// How often a second, or how many times as long: below 1, too.
    Rate(f64), "a number";
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
#[derive(Clone, Deserialize)]
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

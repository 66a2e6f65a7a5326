//! Enums whose variants have names that people write: in settings, on the command line, in files.

use serde::de::{Deserializer, Error, Unexpected, Visitor};
use std::fmt;

/// Defines an enum with the name of each variant; serde reads and writes the names.
macro_rules! named_enum {
    ($(#[$meta:meta])* $vis:vis enum $Enum:ident { $($(#[$about:meta])* $Variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $Enum {
            $($(#[$about])* $Variant,)+
        }

        impl $Enum {
            pub const ALL: &[$Enum] = &[$($Enum::$Variant),+];

            pub fn name(self) -> &'static str {
                match self {
                    $($Enum::$Variant => $name,)+
                }
            }
        }

        impl serde::Serialize for $Enum {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $Enum {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$Enum, D::Error> {
                $crate::base::variant_by_name(deserializer, $Enum::ALL, $Enum::name)
            }
        }
    };
}
pub(crate) use named_enum;

/// Reads the name of a variant; an error lists all names.
pub fn variant_by_name<'de, D: Deserializer<'de>, T: Copy>(
    deserializer: D,
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> Result<T, D::Error> {
    deserializer.deserialize_str(Names { all, name })
}

struct Names<T: 'static> {
    all: &'static [T],
    name: fn(T) -> &'static str,
}

impl<T: Copy> Visitor<'_> for Names<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (at, &variant) in self.all.iter().enumerate() {
            let before = match at {
                0 => "",
                _ if at + 1 == self.all.len() => " or ",
                _ => ", ",
            };
            write!(f, "{before}\"{}\"", (self.name)(variant))?;
        }
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let found = self.all.iter().find(|&&variant| (self.name)(variant) == text);
        found.copied().ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

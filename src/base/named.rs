//! Enums whose variants have names that people write: in settings, on the command line, in files.

use serde::de::{Deserialize, Deserializer, Error};
use std::borrow::Cow;

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
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<T, D::Error> {
    let text = Cow::<str>::deserialize(deserializer)?;
    all.iter().copied().find(|&variant| name(variant) == text).ok_or_else(|| {
        let names: Vec<String> = all.iter().map(|&variant| format!("\"{}\"", name(variant))).collect();
        let (others, last) = names.split_at(names.len().saturating_sub(1));
        D::Error::custom(format!("must be {} or {}", others.join(", "), last.concat()))
    })
}

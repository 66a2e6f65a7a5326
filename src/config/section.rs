use serde::Serialize;
use serde::de::DeserializeOwned;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A section of the settings file, as `settings!` defines it.
pub trait Section: Default + Serialize + DeserializeOwned {
    /// As it stands in the file: `[spider]`, or `[[auth]]` for a list of entries.
    const HEADER: &'static str;
    /// The header without its brackets.
    const NAME: &'static str = bare(Self::HEADER);
    const ABOUT: &'static str;
    const SETTINGS: &'static [Setting];

    /// The first setting that is out of its bounds, and what it must be.
    fn out_of_bounds(&self) -> Option<(&'static str, String)>;
}

/// What is known of a setting besides its value.
pub struct Setting {
    pub name: &'static str,
    pub about: &'static str,
    /// What its flag takes, empty for a switch; `None` without a flag.
    pub flag: Option<&'static str>,
}

/// Defines a section: a struct whose fields are its settings.
///
/// ```text
/// settings! {
///     /// What the section is about.
///     "[section]" SectionSettings {
///         /// What the setting does, in a sentence.
///         name: Type = default, in least to most, flag "WHAT IT TAKES";
///     }
/// }
/// ```
macro_rules! settings {
    (
        $(#[doc = $purpose:literal])+
        $header:literal $Section:ident {
            $(
                $(#[doc = $about:literal])+
                $name:ident: $type:ty = $default:expr
                    $(, in $min:tt to $max:expr)?
                    $(, flag $value:literal)?;
            )+
        }
    ) => {
        $(#[doc = $purpose])+
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $Section {
            $(
                $(#[doc = $about])+
                #[serde(skip_serializing_if = "crate::config::section::Value::is_unset")]
                pub $name: $type,
            )+
        }

        impl Default for $Section {
            fn default() -> $Section {
                $Section { $($name: $default,)+ }
            }
        }

        impl $crate::config::section::Section for $Section {
            const HEADER: &'static str = $header;
            const ABOUT: &'static str = concat!($($purpose),+);
            const SETTINGS: &'static [$crate::config::section::Setting] = &[
                $($crate::config::section::Setting {
                    name: $crate::config::section::bare(stringify!($name)),
                    about: concat!($($about),+),
                    flag: settings!(@flag $($value)?),
                },)+
            ];

            fn out_of_bounds(&self) -> Option<(&'static str, String)> {
                None
                    $($(.or_else(|| {
                        let cause = $crate::config::section::beyond(&self.$name, $min as f64, $max as f64)?;
                        Some((stringify!($name), cause))
                    }))?)+
            }
        }
    };
    (@flag) => { None };
    (@flag $value:literal) => { Some($value) };
}
pub(super) use settings;

/// What a setting may hold.
pub trait Value {
    /// The figure that bounds are held against.
    fn figure(&self) -> Option<f64> {
        None
    }

    fn is_unset(&self) -> bool {
        false
    }
}

impl<T: Value> Value for Option<T> {
    fn figure(&self) -> Option<f64> {
        self.as_ref().and_then(T::figure)
    }

    fn is_unset(&self) -> bool {
        self.is_none()
    }
}

macro_rules! figures {
    ($($Number:ty)+) => {
        $(impl Value for $Number {
            fn figure(&self) -> Option<f64> {
                Some(*self as f64)
            }
        })+
    };
}
figures!(u8 u16 u32 u64 usize f64);

macro_rules! values {
    ($($Type:ty)+) => {
        $(impl Value for $Type {})+
    };
}
values!(bool String PathBuf SocketAddr);
values!(crate::proto::auth::AuthKind crate::proto::lines::Dialect crate::proto::sitemap::Sitemaps);
values!(crate::proto::url::QueryDrop crate::proto::url::RuleList);
values!(crate::store_server::Dedup crate::store_server::History);

/// What a value out of its bounds must be.
pub fn beyond(value: &impl Value, min: f64, max: f64) -> Option<String> {
    match value.figure()? {
        figure if figure.is_nan() || figure < min => Some(format!("must be at least {min}")),
        figure if figure > max => Some(format!("can be at most {max}")),
        _ => None,
    }
}

/// A name without the brackets of a header or the mark of a raw identifier.
pub const fn bare(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'[', .., b']'] => bare(name.split_at(name.len() - 1).0.split_at(1).1),
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

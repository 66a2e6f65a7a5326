use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
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

    /// The settings that are out of their bounds, and what each must be.
    fn out_of_bounds(&self) -> Vec<(&'static str, String)>;

    /// Each setting that has a value, as the file would have it.
    fn written(&self) -> Vec<(&'static str, String)>;

    /// Takes over one setting.
    fn adopt(&mut self, name: &str, from: &Self);

    /// Makes files mean the same from every directory.
    fn make_paths_absolute(&mut self);
}

/// What is known of a setting besides its value.
pub struct Setting {
    pub name: &'static str,
    pub about: &'static str,
    /// What its flag takes, empty for a switch; `None` without a flag.
    pub flag: Option<&'static str>,
    /// It is told to one run, or to one process of several: no data directory keeps it.
    pub once: bool,
    /// What a bare number is counted in, if it is anything.
    pub unit: &'static str,
    pub live: Live,
}

/// From when on a setting holds that is changed while a crawl runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// From the next start.
    Restart,
    /// At once.
    Now,
    /// From the next fetch; those that are open end as they began.
    NewFetches,
}

impl Live {
    /// As it is told to people.
    pub const fn word(self) -> &'static str {
        match self {
            Live::Restart => "restart",
            Live::Now => "live",
            Live::NewFetches => "new fetches",
        }
    }
}

/// Defines a section: a struct whose fields are its settings.
///
/// ```text
/// settings! {
///     /// What the section is about.
///     "[section]" SectionSettings {
///         /// What the setting does, in a sentence.
///         name: Type = default, in least to most, flag "WHAT IT TAKES", told once, live now;
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
                    $(, flag $value:literal)?
                    $(, told $once:ident)?
                    $(, live $live:ident)?;
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
                    once: settings!(@once $($once)?),
                    unit: <$type as $crate::config::section::Value>::UNIT,
                    live: settings!(@live $($live)?),
                },)+
            ];

            fn out_of_bounds(&self) -> Vec<(&'static str, String)> {
                let found = [
                    $($((
                        stringify!($name),
                        $crate::config::section::beyond(&self.$name, $min as f64, $max as f64),
                    ),)?)+
                ];
                found.into_iter().filter_map(|(name, cause): (_, Option<String>)| Some((name, cause?))).collect()
            }

            fn written(&self) -> Vec<(&'static str, String)> {
                let all = [$((
                    $crate::config::section::bare(stringify!($name)),
                    $crate::config::section::Value::written(&self.$name),
                ),)+];
                all.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
            }

            fn adopt(&mut self, name: &str, from: &Self) {
                $(if name == $crate::config::section::bare(stringify!($name)) {
                    self.$name.clone_from(&from.$name);
                })+
            }

            fn make_paths_absolute(&mut self) {
                $($crate::config::section::Value::make_absolute(&mut self.$name);)+
            }
        }
    };
    (@flag) => { None };
    (@flag $value:literal) => { Some($value) };
    (@once) => { false };
    (@once once) => { true };
    (@live) => { $crate::config::section::Live::Restart };
    (@live now) => { $crate::config::section::Live::Now };
    (@live new_fetches) => { $crate::config::section::Live::NewFetches };
}
pub(super) use settings;

/// What a setting may hold.
pub trait Value: Serialize {
    /// What a bare number is counted in, if it is anything.
    const UNIT: &'static str = "";

    /// The figure that bounds are held against.
    fn figure(&self) -> Option<f64> {
        None
    }

    /// A bound, as people write it.
    fn figure_shown(&self, figure: f64) -> String {
        figure.to_string()
    }

    fn is_unset(&self) -> bool {
        false
    }

    /// As the file would have it, if it is set and can be written.
    fn written(&self) -> Option<String> {
        toml_of(&serde_json::to_value(self).ok()?)
    }

    fn make_absolute(&mut self) {}
}

impl<T: Value> Value for Option<T> {
    const UNIT: &'static str = T::UNIT;

    fn figure(&self) -> Option<f64> {
        self.as_ref().and_then(T::figure)
    }

    fn figure_shown(&self, figure: f64) -> String {
        self.as_ref().map_or(String::new(), |value| value.figure_shown(figure))
    }

    fn is_unset(&self) -> bool {
        self.is_none()
    }

    fn written(&self) -> Option<String> {
        self.as_ref().and_then(T::written)
    }

    fn make_absolute(&mut self) {
        self.iter_mut().for_each(T::make_absolute);
    }
}

impl<T: Value> Value for Vec<T> {}

impl Value for PathBuf {
    fn make_absolute(&mut self) {
        if let Ok(path) = std::path::absolute(&*self) {
            *self = path;
        }
    }
}

/// A value in the file's language; `None` for what is not set.
fn toml_of(value: &Json) -> Option<String> {
    match value {
        Json::Null => None,
        Json::Array(all) => {
            Some(format!("[{}]", all.iter().filter_map(toml_of).collect::<Vec<_>>().join(", ")))
        }
        // The escapes of JSON are understood there, too; one character more must be escaped.
        Json::String(_) => Some(value.to_string().replace('\u{7f}', "\\u007f")),
        _ => Some(value.to_string()),
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
values!(bool String SocketAddr);
values!(crate::handler::ScopeKind crate::proto::auth::AuthKind crate::proto::lines::Dialect crate::proto::sitemap::Sitemaps);
values!(crate::proto::url::QueryDrop crate::proto::url::RuleList);
values!(crate::store_server::Compress crate::store_server::Dedup crate::store_server::History);

/// What a value out of its bounds must be.
pub fn beyond(value: &impl Value, min: f64, max: f64) -> Option<String> {
    match value.figure()? {
        figure if figure.is_nan() || figure < min => {
            Some(format!("must be at least {}", value.figure_shown(min)))
        }
        figure if figure > max => Some(format!("can be at most {}", value.figure_shown(max))),
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

use super::error::SearchError;
use crate::storage::{checked, checked_lines, replace};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const FILE: &str = "manifest";
/// Whatever changes what an index holds for the same stories changes the number.
const HEAD: &str = "nephila search index 3";
/// What other versions have in place of it.
const FILE_BEFORE: &str = "meta.json";

/// Which segments an index has, and up to where it holds what its source has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    pub place: u64,
    pub segments: Vec<Listed>,
}

/// A segment by its number; what is gone of it is in a file with a number of its own, if anything is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub number: u64,
    pub gone: Option<u64>,
}

impl Listed {
    pub fn path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.segment", self.number))
    }

    pub fn gone_path(&self, folder: &Path) -> Option<PathBuf> {
        self.gone.map(|gone| folder.join(format!("{}.gone", gone)))
    }
}

impl Manifest {
    /// That of an index; None where there is no index.
    pub fn read(folder: &Path) -> Result<Option<Manifest>, SearchError> {
        let bytes = match fs::read(folder.join(FILE)) {
            Err(error) if error.kind() == ErrorKind::NotFound && folder.join(FILE_BEFORE).exists() => {
                return Err(SearchError::OtherVersion(folder.to_path_buf()));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| SearchError::of_disk(folder, error))?,
        };
        let damaged = |said: &str| SearchError::Damaged(folder.to_path_buf(), format!("{FILE}: {said}"));
        let mut lines =
            checked_lines(&bytes, HEAD).map_err(|said| match said.contains("another version") {
                true => SearchError::OtherVersion(folder.to_path_buf()),
                false => damaged(said),
            })?;
        let place = lines.next().and_then(|line| line.strip_prefix("place ")?.parse().ok());
        let mut manifest =
            Manifest { place: place.ok_or_else(|| damaged("it has no place"))?, segments: vec![] };
        for line in lines {
            let listed = Manifest::listed(line).ok_or_else(|| damaged("a line is no segment"))?;
            manifest.segments.push(listed);
        }
        Ok(Some(manifest))
    }

    fn listed(line: &str) -> Option<Listed> {
        let mut words = line.strip_prefix("segment ")?.split(' ');
        let number = words.next()?.parse().ok()?;
        let gone = match words.next() {
            None => None,
            Some(word) => Some(word.strip_prefix("gone=")?.parse().ok()?),
        };
        words.next().is_none().then_some(Listed { number, gone })
    }

    /// Puts it in place of what was there, durably.
    pub fn write(&self, folder: &Path) -> Result<(), SearchError> {
        let mut text = format!("{HEAD}\nplace {}\n", self.place);
        for Listed { number, gone } in &self.segments {
            text += &match gone {
                None => format!("segment {number}\n"),
                Some(gone) => format!("segment {number} gone={gone}\n"),
            };
        }
        let written = replace(&folder.join(FILE), checked(text).as_bytes());
        written.map_err(|error| SearchError::of_disk(folder, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_comes_back_and_another_one_is_refused() {
        let folder = std::env::temp_dir().join(format!("nephila-manifest-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(Manifest::read(&folder).unwrap(), None);
        let segments = vec![Listed { number: 7, gone: None }, Listed { number: 9, gone: Some(3) }];
        let manifest = Manifest { place: 77, segments };
        manifest.write(&folder).unwrap();
        assert_eq!(Manifest::read(&folder).unwrap(), Some(manifest));
        let path = folder.join(FILE);
        let refused = |text: String| {
            fs::write(&path, text).unwrap();
            Manifest::read(&folder).unwrap_err().to_string()
        };
        let whole = |text: &str| checked(format!("{HEAD}\n{text}"));
        for text in [
            "",
            "place x\n",
            "place 1\nsegment\n",
            "place 1\nsegment 1 gone=\n",
            "place 1\nsegment 1 gone=2 3\n",
        ] {
            let said = refused(whole(text));
            assert!(
                said.contains("is damaged: manifest: ") && said.contains("search reindex"),
                "{text}: {said}"
            );
        }
        let said = refused(checked("nephila search index 4\nplace 1\n".to_string()));
        assert!(said.contains("by another version of nephila"), "{said}");
        fs::remove_file(&path).unwrap();
        fs::write(folder.join(FILE_BEFORE), "{}").unwrap();
        let said = Manifest::read(&folder).unwrap_err().to_string();
        assert!(said.contains("by another version of nephila"), "{said}");
        fs::remove_dir_all(&folder).unwrap();
    }
}

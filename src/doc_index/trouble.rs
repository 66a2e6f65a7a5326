use std::io;

/// What the disk refused since the caller was last told: the first error of each time.
#[derive(Default)]
pub(super) struct Trouble(Option<io::Error>);

impl Trouble {
    pub fn note(&mut self, error: io::Error) {
        self.0.get_or_insert(error);
    }

    /// What was asked of the disk; nothing, if it refused.
    pub fn or_default<T: Default>(&mut self, asked: io::Result<T>) -> T {
        asked.unwrap_or_else(|error| {
            self.note(error);
            T::default()
        })
    }

    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Tells it, once.
    pub fn tell(&mut self) -> io::Result<()> {
        self.0.take().map_or(Ok(()), Err)
    }
}

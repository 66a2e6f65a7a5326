use super::batch::Batch;

/// Where documents are copied to.
pub(super) trait Target: Send {
    /// One word for it: of its cursor, of its figures.
    fn name(&self) -> &'static str;

    /// Where it is, as it may be shown.
    fn place(&self) -> String;

    /// Has the documents of a batch there for good when it returns. It may have had them before, which changes nothing.
    fn send(&mut self, batch: &Batch) -> Result<Sent, SendError>;
}

/// What came of a batch.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// Documents that the other side does not take for their own sake: which of the batch, and why.
    pub refused: Vec<(usize, String)>,
}

/// Why a batch is not there. It is sent again, later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SendError(pub String);

impl SendError {
    pub fn new(cause: impl std::fmt::Display) -> SendError {
        SendError(crate::base::shown(&cause.to_string(), CAUSE_CHARS_MAX))
    }
}

const CAUSE_CHARS_MAX: usize = 400;

//! What roles pass on about one URL: a [`Candidate`] leaves the doc index, becomes a [`Job`] once its name is resolved,
//! and is answered for under a [`TransId`] that the url server made.

mod candidate;
mod doc_kind;
mod provenance;
mod trans_id;

pub use candidate::{Candidate, Chain, Held, Job, Poll};
pub use doc_kind::DocKind;
pub use provenance::Provenance;
pub use trans_id::TransId;

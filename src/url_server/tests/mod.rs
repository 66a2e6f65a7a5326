//! What the URL server promises: one promise a test in `promises`, and all of them at once over random events in
//! `model`.

mod addresses;
mod judge;
mod lender;
mod loans;
mod model;
mod promises;
mod web;

//! The domain map: which server has a domain, since when, and by whose word.
//!
//! ```text
//!   domains.journal ──► DomainMap ◄── rows of partner_domain
//!     rows, URLs sent     │ look-up by domain
//!     a domain, totals    └ Loads: URLs an hour of each domain and server ──► place: new domains to the least loaded
//! ```

mod domain_map;
mod domains_journal;
mod loads;
mod names;
mod placing;
mod servers;

pub use domain_map::{DomainAt, DomainMap};
pub(crate) use domains_journal::{DomainsEnd, DomainsJournal};
pub use loads::Loads;
pub use placing::{Assign, NewDomain, Placing, rendezvous};
pub use servers::{Server, ServerState};

//! HTTP authentication: Basic (RFC 7617) and Digest (RFC 7616, and 2617 and 2069 before it).
//!
//! ```text
//!   401 ── WWW-Authenticate ──► Items ──► Draft ──► Challenge ── answer ──► Authorization
//!          (any number of)      schemes   what we   the best      user, password,
//!                               and       can       that is       method, target,
//!                               params    answer    allowed       cnonce; nc counts up
//! ```
//!
//! The life of a challenge: a request comes back with 401. [`Challenge::choose`] reads every WWW-Authenticate
//! value and keeps the strongest challenge that we can answer and that the site's [`AuthKind`] allows. It
//! belongs to the site that sent it, and answers each further request there until the next 401. If that one
//! [is stale](Challenge::is_stale), the password was right and the nonce old: one more try with it is due. If
//! not, the site does not want us, and asking again is no use.
//!
//! Where Basic is configured the first request carries it already ([`Challenge::preemptive`]); otherwise nothing
//! is sent before the site has asked. Which credentials a request may carry is for [`Sites`] to say, by origin
//! and path. Of credentials that were there once, [`MissingAuth`] knows the places.
//!
//! What a site sends comes back to it inside our request, so a challenge with a control character in it is not
//! answered: nothing that we write holds one.

mod base64;
mod challenge;
mod digest;
mod items;
mod places;
mod sites;
#[cfg(test)]
mod tests;

pub(crate) use base64::{read_base64, write_base64};
pub use challenge::Challenge;
pub use places::{AuthPlace, MissingAuth};
pub use sites::{AuthKind, Credentials, Site, Sites};

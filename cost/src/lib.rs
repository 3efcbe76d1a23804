//! What the cost program and the bench have in common: what is said, and the floor, which is what
//! nobody can do without.

pub mod bare;
pub mod floor;
pub mod messages;

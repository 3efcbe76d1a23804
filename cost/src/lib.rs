//! Shared by the cost program and the bench: the messages, and the floor, which is the least that
//! any implementation does.

pub mod bare;
pub mod floor;
pub mod messages;

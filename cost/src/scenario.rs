//! The scenarios that are measured.

use std::str::FromStr;

use belay_cost::messages::Era;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Stdio,
    Http,
    /// HTTP, with a tool that sends progress before it answers.
    HttpEvents,
}

/// Which implementation is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Belay,
    Floor,
}

/// The measured side. The other side is always the floor's, or prepared bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Server,
    Client,
}

pub(crate) struct Scenario {
    pub(crate) side: Side,
    pub(crate) wire: Wire,
    pub(crate) era: Era,
    /// The budget of allocations, locks and tasks for one call. How many calls share a turn of the
    /// driver depends on the machine, so locks have a little room.
    pub(crate) budget: (u32, u32, u32),
}

const fn scenario(side: Side, wire: Wire, era: Era, budget: (u32, u32, u32)) -> Scenario {
    Scenario {
        side,
        wire,
        era,
        budget,
    }
}

pub(crate) const ALL: [Scenario; 9] = [
    scenario(Side::Server, Wire::Stdio, Era::Legacy, (9, 6, 0)),
    scenario(Side::Server, Wire::Stdio, Era::Modern, (9, 6, 0)),
    scenario(Side::Server, Wire::Http, Era::Modern, (28, 8, 0)),
    scenario(Side::Server, Wire::HttpEvents, Era::Modern, (42, 9, 0)),
    scenario(Side::Server, Wire::Http, Era::Legacy, (21, 7, 0)),
    scenario(Side::Client, Wire::Stdio, Era::Legacy, (16, 13, 0)),
    scenario(Side::Client, Wire::Stdio, Era::Modern, (28, 15, 0)),
    scenario(Side::Client, Wire::Http, Era::Modern, (48, 18, 1)),
    scenario(Side::Client, Wire::Http, Era::Legacy, (35, 20, 1)),
];

impl Scenario {
    pub(crate) fn title(&self, who: Who) -> String {
        let side = match self.side {
            Side::Server => "",
            Side::Client => "client, ",
        };
        format!(
            "{side}{} {}: {}",
            self.wire.name(),
            self.era.name(),
            who.name()
        )
    }
}

impl Wire {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::HttpEvents => "events",
        }
    }
}

impl Who {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Belay => "belay",
            Self::Floor => "floor",
        }
    }
}

impl FromStr for Wire {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let all = [Self::Stdio, Self::Http, Self::HttpEvents];
        all.into_iter().find(|wire| wire.name() == name).ok_or(())
    }
}

impl FromStr for Who {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let all = [Self::Belay, Self::Floor];
        all.into_iter().find(|who| who.name() == name).ok_or(())
    }
}

//! Decides what happens next in a run: which fault, and whether the run is done. No I/O.

use serde::{Deserialize, Serialize};

/// The goal of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goal {
    /// Acknowledged statements.
    pub statements: u64,
    /// Kills.
    pub kills: u64,
}

/// What can happen to servers, gateways and connections during the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    KillServer,
    KillGateway,
    KillBackend,
    EndServerConnection,
    CutClient,
    RestartServer,
    RestartGateway,
}

use Event::{
    CutClient, EndServerConnection, KillBackend, KillGateway, KillServer, RestartGateway, RestartServer,
};

/// The events in their order, again and again.
const CYCLE: [Event; 9] = [
    KillServer,
    CutClient,
    RestartGateway,
    KillGateway,
    EndServerConnection,
    RestartServer,
    KillBackend,
    KillGateway,
    CutClient,
];

/// Answers between two events. They show that the clients work again.
const FLOW: u64 = 500;

/// All kinds of events, with their names in reports.
pub const EVENTS: [(Event, &str); 7] = [
    (KillServer, "kill -9 of the server"),
    (KillGateway, "kill -9 of a gateway"),
    (KillBackend, "kill -9 of a gateway's server process"),
    (EndServerConnection, "pg_terminate_backend of a gateway's connection"),
    (CutClient, "connection of a client cut while it waits for answers"),
    (RestartServer, "restart of the server"),
    (RestartGateway, "restart of a gateway"),
];

impl Event {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        EVENTS.iter().find(|(event, _)| *event == self).map_or("", |(_, name)| name)
    }

    /// Whether it counts as a kill. A restart in order does not.
    pub fn is_kill(self) -> bool {
        !matches!(self, RestartServer | RestartGateway)
    }
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Acknowledged statements.
    pub statements: u64,
    pub kills: u64,
    /// Kills and restarts.
    pub events: u64,
    /// Acknowledged statements at the last event.
    pub at_last_event: u64,
}

impl Goal {
    /// Whether the run is done.
    pub fn is_reached(&self, progress: &Progress) -> bool {
        let flows = progress.events == 0 || progress.statements >= progress.at_last_event + FLOW;
        progress.statements >= self.statements && progress.kills >= self.kills && flows
    }

    /// The event that is due. Kills are spread evenly over the statements, and a restart comes halfway between two kills.
    pub fn next(&self, progress: &Progress) -> Option<Event> {
        let flows = progress.statements >= progress.at_last_event + FLOW;
        if progress.kills >= self.kills || !flows {
            return None;
        }
        let event = CYCLE[(progress.events % CYCLE.len() as u64) as usize];
        let halves = 2 * progress.kills + if event.is_kill() { 2 } else { 1 };
        let due = u128::from(halves) * u128::from(self.statements) / (2 * u128::from(self.kills));
        (u128::from(progress.statements) >= due).then_some(event)
    }

    /// The seconds that remain at this number of statements per second.
    pub fn remaining_seconds(&self, progress: &Progress, per_second: f64) -> Option<f64> {
        let left = self.statements.saturating_sub(progress.statements) as f64;
        (per_second > 0.0).then(|| left / per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::{EVENTS, Event, FLOW, Goal, Progress};
    use std::collections::BTreeMap;

    /// Lets statements flow until the goal is reached. Returns how often each event happened.
    fn run(goal: Goal) -> (Progress, BTreeMap<&'static str, u64>) {
        let (mut progress, mut happened) = (Progress::default(), BTreeMap::new());
        while !goal.is_reached(&progress) {
            if let Some(event) = goal.next(&progress) {
                *happened.entry(event.name()).or_default() += 1;
                progress.events += 1;
                progress.kills += u64::from(event.is_kill());
                progress.at_last_event = progress.statements;
            }
            progress.statements += FLOW / 2;
        }
        (progress, happened)
    }

    #[test]
    fn kills_are_spread_over_the_statements_and_every_event_happens() {
        let goal = Goal { statements: 1_000_000, kills: 100 };
        let (progress, happened) = run(goal);
        assert_eq!(progress.kills, 100);
        assert!(progress.statements < goal.statements + 3 * FLOW, "{progress:?}");
        assert_eq!(happened.len(), EVENTS.len(), "{happened:?}");
        let half = Progress { statements: 500_000, kills: 50, events: 60, at_last_event: 495_000 };
        assert_eq!(goal.next(&half), None);
    }

    #[test]
    fn kills_go_on_after_the_last_statement_that_is_needed() {
        let (progress, _) = run(Goal { statements: 10, kills: 7 });
        assert_eq!(progress.kills, 7);
        assert!(progress.statements >= 7 * FLOW, "no answer came between two kills");
        let (progress, happened) = run(Goal { statements: 5_000, kills: 0 });
        assert_eq!((progress.statements, happened.len()), (5_000, 0));
    }

    #[test]
    fn the_remaining_time_needs_a_rate() {
        let goal = Goal { statements: 1_000, kills: 0 };
        let progress = Progress { statements: 400, ..Progress::default() };
        assert_eq!(goal.remaining_seconds(&progress, 0.0), None);
        assert_eq!(goal.remaining_seconds(&progress, 60.0), Some(10.0));
        assert!(!Event::RestartServer.is_kill());
    }
}

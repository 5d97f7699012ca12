//! What the gateway would give: a range of factors on today's rate, with its assumptions. The rates are in `model`.

mod model;

#[cfg(test)]
mod tests;

use crate::diagnosis::workload::Workload;
use model::{CAUTIOUS, Case, OPTIMISTIC};

/// A range around this factor is no help.
pub const WORTH: f64 = 1.2;

/// With fewer sessions at work, on average, nothing can be said about many.
const FEWEST_SESSIONS: f64 = 0.5;

/// A range of factors on today's rate.
#[derive(Clone, Debug, Default)]
pub struct Prediction {
    /// The cautious end.
    pub low: f64,
    /// The optimistic end.
    pub high: f64,
    /// Today's rate of the hot row, per second.
    pub today: Option<f64>,
    /// What the range assumes.
    pub assumptions: Vec<String>,
}

impl Prediction {
    /// The gateway gives nothing here.
    pub fn none(why: &str) -> Prediction {
        Prediction { low: 1.0, high: 1.0, today: None, assumptions: vec![why.to_owned()] }
    }

    /// Whether the gateway helps: the middle of the range does.
    pub fn is_help(&self) -> bool {
        (self.low * self.high).sqrt() >= WORTH
    }

    /// For a load. `today` is the rate of its hot row.
    pub fn of(load: &Workload, today: Option<f64>) -> Prediction {
        let Some(rate) = load.transactions else { return Prediction::none("no transactions were seen") };
        if load.sessions < FEWEST_SESSIONS {
            return Prediction::none("fewer than one session was seen at work");
        }
        let factor = |case| model::rate(load, rate, case) / rate;
        let (low, high) = (factor(&CAUTIOUS), factor(&OPTIMISTIC));
        Prediction { low: low.min(high), high, today, assumptions: assumptions(load, rate) }
    }
}

/// One line for each term of the model.
fn assumptions(load: &Workload, rate: f64) -> Vec<String> {
    let mut list = Vec::new();
    if load.packable > 0.0 {
        let [few, many] = [CAUTIOUS, OPTIMISTIC].map(|case| model::batch(load, &case));
        list.push(format!(
            "{:.0} sessions send their next call as soon as they get an answer, so {few:.0} to {many:.0} of their calls share a commit",
            load.sessions
        ));
        let range =
            |term: &dyn Fn(&Case) -> f64| format!("{:.0} to {:.0} µs", term(&OPTIMISTIC), term(&CAUTIOUS));
        let execution = range(&|case| model::execution_us(load, case));
        list.push(format!("a transaction in a batch executes for {execution}"));
        if load.flush_us.is_some() && load.writing > 0.0 {
            let flush = range(&|case| model::flush_us(load, case).unwrap_or(0.0));
            let without =
                load.core_wait_us.map_or("", |_| "; today's time contains a wait for a core after it");
            list.push(format!("a WAL flush takes {flush}{without}"));
        }
        list.push(format!(
            "each batch takes {} beside its calls",
            range(&|case| model::batch_us(load, case))
        ));
        list.push(format!(
            "the gateway computes {} for each call",
            range(&|case| model::gateway_us(load, case))
        ));
        if load.local_clients && load.cores.is_some() {
            let client = range(&|case| model::client_us(load, rate, case));
            list.push(format!(
                "the client computes {client} for each call, because the answers of a batch arrive together"
            ));
        }
    }
    list.push(format!(
        "{:.0} % of the calls can be packed as they are; the others run as today",
        load.packable * 100.0
    ));
    if load.interactive > 0.05 && load.waiting >= 1.0 {
        list.push(
            "the gateway lets few of the transactions that wait for their client meet at the row, which saves the cost of the \
             queue for its lock"
                .to_owned(),
        );
    }
    list.push(match load.cores {
        Some(cores) if load.local_clients => {
            format!("the clients, the gateway and the server share {cores:.0} cores, and no other program uses them")
        }
        Some(cores) => format!("the gateway and the server share {cores:.0} cores, and no other program uses them"),
        None => "the gateway has a core of its own, and the server has a free core".to_owned(),
    });
    list.push(match load.is_saturated() {
        true => "the clients do not pause: today, the time between two transactions of a session is a wait for a core".to_owned(),
        false => format!("between two transactions of a session pass {:.0} µs, as today", load.pause_us),
    });
    list.push("the rate differs by a tenth from one minute to the next".to_owned());
    list
}

//! One round of the sale on one side: new stock, buyers, check.

use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::buyers::Buyers;
use super::error::Error;
use super::figures::{Plan, Round};
use super::stage::Stage;
use super::view::View;

/// Time between updates of the live view.
const TICK: Duration = Duration::from_millis(250);

/// Runs a round and shows its progress in the view.
pub async fn hold(stage: &Stage, plan: Plan, view: &mut View) -> Result<Round, Error> {
    stage.sale.restock(plan.stock).await?;
    let before = stage.sale.transactions().await?;
    let target = stage.target(plan.side);
    let address = target.address();
    view.round_begins(&plan);

    let mut buyers = Buyers::send(target, plan.buyers, plan.demand)?;
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let took = loop {
        tokio::select! {
            took = buyers.finished() => break took?,
            _ = tick.tick() => {
                let commits = stage.sale.transactions().await?.saturating_sub(before);
                view.round_now(&plan, &buyers.so_far(), commits);
            }
        }
    };

    let commits = stage.sale.transactions().await?.saturating_sub(before);
    let answers = buyers.so_far();
    if answers.sold == 0 {
        let answer = answers.first_failure.unwrap_or_else(|| "each purchase was refused".to_owned());
        return Err(Error::NothingSold { address, answer });
    }
    let stocktaking = stage.sale.take_stock(plan.stock, answers.sold).await?;
    let round = Round { number: plan.number, side: plan.side, stocktaking, answers, took, commits };
    view.round_ends(&round)?;
    Ok(round)
}

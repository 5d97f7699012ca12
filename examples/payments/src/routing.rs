//! The choice of a payment gateway: by the customer's mode of payment, by weight, and by health. Pure: the time and the
//! random number are arguments.

use std::time::{Duration, Instant};

use crate::words::worded;

worded! {
    /// How a customer pays.
    Mode {
        /// From an account, by telephone.
        Upi = "upi",
        /// By card.
        Card = "card",
        /// From a balance.
        Wallet = "wallet",
    }
}

/// The weight of a gateway that is best at the mode of payment, and of any other one.
const OWN: u32 = 8;
const OTHERS: u32 = 1;

/// A gateway is left out after this number of failures in a row.
const FAILURES: u32 = 5;
/// A gateway is left out for this time. Then one payment tries it again.
const LEFT_OUT: Duration = Duration::from_secs(5);

/// The health of a gateway.
#[derive(Clone, Copy, Debug, Default)]
pub struct Health {
    failures: u32,
    left_out_until: Option<Instant>,
}

impl Health {
    /// Whether it may be asked. After the time of a gateway that was left out, only the first caller may ask it.
    pub fn admits(&mut self, now: Instant) -> bool {
        match self.left_out_until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                self.left_out_until = Some(now + LEFT_OUT);
                true
            }
        }
    }

    /// Records an answer, whatever it was.
    pub fn answered(&mut self) {
        *self = Self::default();
    }

    /// Records that there was no answer.
    pub fn failed(&mut self, now: Instant) {
        self.failures += 1;
        if self.failures >= FAILURES {
            self.left_out_until = Some(now + LEFT_OUT);
        }
    }

    /// Whether it is left out.
    pub fn is_left_out(&self) -> bool {
        self.left_out_until.is_some()
    }
}

/// A gateway to choose from.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The mode it is best at.
    pub own: Mode,
    /// Its health.
    pub health: Health,
    /// Whether it has been tried for this payment.
    pub tried: bool,
}

/// The index of the one to ask; `dice` is any number.
pub fn choose(choices: &mut [Choice], mode: Mode, dice: u32, now: Instant) -> Option<usize> {
    let mut left = Vec::new();
    for (index, choice) in choices.iter().enumerate() {
        let admitted = match choice.health.left_out_until {
            None => true,
            Some(until) => now >= until,
        };
        if !choice.tried && admitted {
            left.push((index, if choice.own == mode { OWN } else { OTHERS }));
        }
    }
    let total: u32 = left.iter().map(|(_, weight)| weight).sum();
    let mut point = dice.checked_rem(total)?;
    for (index, weight) in left {
        if point < weight {
            return choices[index].health.admits(now).then_some(index);
        }
        point -= weight;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Vec<Choice> {
        [Mode::Upi, Mode::Card, Mode::Wallet]
            .map(|own| Choice { own, health: Health::default(), tried: false })
            .to_vec()
    }

    #[test]
    fn most_payments_go_to_the_gateway_of_their_mode() {
        let now = Instant::now();
        let mut counts = [0; 3];
        for dice in 0..1000 {
            counts[choose(&mut three(), Mode::Card, dice, now).unwrap()] += 1;
        }
        assert_eq!(counts, [100, 800, 100]);
    }

    #[test]
    fn a_failing_gateway_is_excluded_for_a_while_and_then_tried_with_one_payment() {
        let start = Instant::now();
        let mut choices = three();
        for _ in 0..FAILURES {
            assert!(!choices[1].health.is_left_out());
            choices[1].health.failed(start);
        }
        assert!((0..1000).all(|dice| choose(&mut choices, Mode::Card, dice, start) != Some(1)));
        let later = start + LEFT_OUT;
        let tries = (0..1000).filter(|dice| choose(&mut choices, Mode::Card, *dice, later) == Some(1));
        assert_eq!(tries.count(), 1);
        choices[1].health.answered();
        assert_eq!(choose(&mut choices, Mode::Card, 2, later), Some(1));
    }

    #[test]
    fn no_gateway_is_tried_twice_for_one_payment() {
        let now = Instant::now();
        let mut choices = three();
        for _ in 0..3 {
            let index = choose(&mut choices, Mode::Upi, 7, now).unwrap();
            assert!(!std::mem::replace(&mut choices[index].tried, true));
        }
        assert_eq!(choose(&mut choices, Mode::Upi, 7, now), None);
    }
}

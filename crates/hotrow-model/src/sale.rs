//! Sales: items with their stock, limits and times, and their reservations, which are held, then confirmed, cancelled or
//! expired for good. Requests are in `world.rs`.

use std::collections::BTreeMap;

use crate::{Answer, Id, SaleView, Status, Time};

/// The settings given to `create_sale`, and the stock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SaleTerms {
    /// The number of all pieces that were ever put up for sale, restocks included.
    pub stock: i64,
    /// The most pieces that one buyer can hold and have bought together.
    pub per_buyer: Option<i64>,
    pub starts_at: Option<Time>,
    /// The sale ends before this time.
    pub ends_at: Option<Time>,
    /// How long a reservation is held; None: without a limit.
    pub hold: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sale {
    terms: SaleTerms,
    remaining: i64,
}

/// The state of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// Held until this time; without a time, until it is confirmed or cancelled.
    Held { expires_at: Option<Time> },
    /// Sold.
    Confirmed,
    /// The buyer has given the pieces back.
    Cancelled,
    /// The hold has expired and the pieces are back in stock.
    Expired,
}

/// Some pieces of an item for a buyer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Reservation {
    item: String,
    buyer: String,
    quantity: i64,
    state: State,
}

impl Reservation {
    /// Returns whether the hold has expired. It expires at its time, not after it.
    fn is_due(&self, at: Time) -> bool {
        matches!(self.state, State::Held { expires_at: Some(expires_at) } if expires_at <= at)
    }

    fn is_held(&self) -> bool {
        matches!(self.state, State::Held { .. })
    }

    /// The answer to a command on a reservation that is no longer held; None while it is held.
    fn decided(&self) -> Option<Status> {
        match self.state {
            State::Held { .. } => None,
            State::Confirmed => Some(Status::Confirmed),
            State::Cancelled => Some(Status::Cancelled),
            State::Expired => Some(Status::Expired),
        }
    }
}

/// All items and all reservations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sales {
    items: BTreeMap<String, Sale>,
    reservations: BTreeMap<Id, Reservation>,
}

impl Sales {
    pub fn create(&mut self, item: &str, terms: SaleTerms) -> Status {
        match self.items.get(item) {
            None => {
                self.items.insert(item.to_owned(), Sale { terms, remaining: terms.stock });
                Status::Created
            }
            Some(sale) if sale.terms == terms => Status::Exists,
            Some(_) => Status::Differs,
        }
    }

    /// Returns expired holds to stock. It runs before every command, so each command sees the state at its time.
    pub fn expire(&mut self, at: Time) {
        for reservation in self.reservations.values_mut().filter(|reservation| reservation.is_due(at)) {
            reservation.state = State::Expired;
            give_back(&mut self.items, reservation);
        }
    }

    /// Checks for refusals in their order of precedence, then makes a hold.
    pub fn reserve(&mut self, item: &str, buyer: &str, quantity: i64, new: Id, at: Time) -> Answer {
        let taken = self.taken(item, buyer);
        let Some(sale) = self.items.get_mut(item) else {
            return Answer::Reserved { status: Status::UnknownItem, reservation: None, remaining: None };
        };
        let terms = sale.terms;
        let refusal = if terms.starts_at.is_some_and(|starts_at| at < starts_at) {
            Some(Status::NotStarted)
        } else if terms.ends_at.is_some_and(|ends_at| at >= ends_at) {
            Some(Status::Ended)
        } else if quantity > sale.remaining {
            Some(Status::SoldOut)
        } else if terms.per_buyer.is_some_and(|limit| quantity > limit - taken) {
            Some(Status::LimitReached)
        } else {
            None
        };
        if let Some(status) = refusal {
            return Answer::Reserved { status, reservation: None, remaining: Some(sale.remaining) };
        }
        sale.remaining -= quantity;
        let remaining = Some(sale.remaining);
        let state = State::Held { expires_at: terms.hold.map(|hold| at + hold) };
        let (item, buyer) = (item.to_owned(), buyer.to_owned());
        self.reservations.insert(new, Reservation { item, buyer, quantity, state });
        Answer::Reserved { status: Status::Reserved, reservation: Some(new), remaining }
    }

    /// Reserves all items or none. The first refusal is the status of the whole call.
    pub fn reserve_all(
        &mut self,
        items: &[String],
        quantities: &[i64],
        buyer: &str,
        new: &[Id],
        at: Time,
    ) -> Answer {
        let mut next = self.clone();
        let mut reservations = Vec::new();
        for (index, (item, quantity)) in items.iter().zip(quantities).enumerate() {
            // A refused call has drawn no IDs. The reservations that are judged before the refusal need different ones.
            let id = new.get(index).copied().unwrap_or(Id(u128::MAX - index as u128));
            match next.reserve(item, buyer, *quantity, id, at) {
                Answer::Reserved { reservation: Some(reservation), .. } => reservations.push(reservation),
                Answer::Reserved { status, .. } => {
                    let refused_item = Some(item.clone());
                    return Answer::ReservedAll { status, reservations: None, refused_item };
                }
                other => unreachable!("a reservation is not answered with {other}"),
            }
        }
        *self = next;
        let (status, reservations) = (Status::Reserved, Some(reservations));
        Answer::ReservedAll { status, reservations, refused_item: None }
    }

    /// The number of all reservations.
    pub fn reservations(&self) -> usize {
        self.reservations.len()
    }

    /// The pieces of an item that a buyer holds or has bought.
    fn taken(&self, item: &str, buyer: &str) -> i64 {
        let of_buyer = self.reservations.values().filter(|r| r.item == item && r.buyer == buyer);
        of_buyer.filter(|r| r.is_held() || r.state == State::Confirmed).map(|r| r.quantity).sum()
    }

    pub fn confirm(&mut self, id: Id) -> Status {
        let Some(reservation) = self.reservations.get_mut(&id) else { return Status::UnknownReservation };
        reservation.decided().unwrap_or_else(|| {
            reservation.state = State::Confirmed;
            Status::Confirmed
        })
    }

    pub fn cancel(&mut self, id: Id) -> Status {
        let Some(reservation) = self.reservations.get_mut(&id) else { return Status::UnknownReservation };
        reservation.decided().unwrap_or_else(|| {
            reservation.state = State::Cancelled;
            give_back(&mut self.items, reservation);
            Status::Cancelled
        })
    }

    /// Extends a hold, which never makes it shorter. A hold without an end stays as it is.
    pub fn extend(&mut self, id: Id, hold: Time, at: Time) -> Answer {
        let Some(reservation) = self.reservations.get_mut(&id) else {
            return Answer::Extended { status: Status::UnknownReservation, expires_at: None };
        };
        let status = reservation.decided().unwrap_or(Status::Extended);
        let State::Held { expires_at } = &mut reservation.state else {
            return Answer::Extended { status, expires_at: None };
        };
        *expires_at = expires_at.map(|expires_at| expires_at.max(at + hold));
        Answer::Extended { status, expires_at: *expires_at }
    }

    pub fn restock(&mut self, item: &str, quantity: i64) -> Answer {
        let Some(sale) = self.items.get_mut(item) else {
            return Answer::Restocked { status: Status::UnknownItem, remaining: None };
        };
        sale.terms.stock += quantity;
        sale.remaining += quantity;
        Answer::Restocked { status: Status::Restocked, remaining: Some(sale.remaining) }
    }

    pub fn view(&self, item: &str) -> Answer {
        let sum = |wanted: fn(&Reservation) -> bool| {
            let of_item = self.reservations.values().filter(|reservation| reservation.item == item);
            of_item.filter(|reservation| wanted(reservation)).map(|reservation| reservation.quantity).sum()
        };
        Answer::Sale(self.items.get(item).map(|sale| SaleView {
            item: item.to_owned(),
            remaining: sale.remaining,
            held: sum(Reservation::is_held),
            sold: sum(|reservation| reservation.state == State::Confirmed),
            terms: sale.terms,
        }))
    }
}

fn give_back(items: &mut BTreeMap<String, Sale>, reservation: &Reservation) {
    let sale = items.get_mut(&reservation.item).expect("the item of a reservation exists");
    sale.remaining += reservation.quantity;
}

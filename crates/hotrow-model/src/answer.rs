//! The answers, as typed rows. Their text is the columns of the SQL function's row. Other files decide them.

use std::fmt;

use crate::named::named;
use crate::{Id, SaleTerms, Time};

named! {
    /// Every value of a status column. Those after `restocked` are refusals or mean that nothing was left to do.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Status (NAMES, name) {
        "ok" Ok,
        "created" Created,
        "reserved" Reserved,
        "confirmed" Confirmed,
        "cancelled" Cancelled,
        "extended" Extended,
        "restocked" Restocked,
        "exists" Exists,
        "differs" Differs,
        "out_of_bounds" OutOfBounds,
        "overflow" Overflow,
        "unknown_item" UnknownItem,
        "not_started" NotStarted,
        "ended" Ended,
        "sold_out" SoldOut,
        "limit_reached" LimitReached,
        "unknown_reservation" UnknownReservation,
        "expired" Expired,
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The columns of `sale` for an existing item.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SaleView {
    pub item: String,
    pub remaining: i64,
    pub held: i64,
    pub sold: i64,
    pub terms: SaleTerms,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    Status { status: Status },
    Counted { value: i64, version: i64, status: Status },
    Counter { value: i64, version: i64 },
    Reserved { status: Status, reservation: Option<Id>, remaining: Option<i64> },
    ReservedAll { status: Status, reservations: Option<Vec<Id>>, refused_item: Option<String> },
    Extended { status: Status, expires_at: Option<Time> },
    Restocked { status: Status, remaining: Option<i64> },
    Sale(Option<SaleView>),
}

impl From<Status> for Answer {
    fn from(status: Status) -> Self {
        Self::Status { status }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status { status } => write!(f, "{status}"),
            Self::Counted { value, version, status } => write!(f, "{value} {version} {status}"),
            Self::Counter { value, version } => write!(f, "{value} {version}"),
            Self::Reserved { status, reservation, remaining } => {
                write!(f, "{status} {} {}", or_null(reservation), or_null(remaining))
            }
            Self::ReservedAll { status, reservations, refused_item } => {
                let ids = reservations.as_ref().map(|ids| {
                    let ids: Vec<_> = ids.iter().map(Id::to_string).collect();
                    format!("{{{}}}", ids.join(","))
                });
                write!(f, "{status} {} {}", or_null(&ids), or_null(refused_item))
            }
            Self::Extended { status, expires_at } => write!(f, "{status} {}", or_null(expires_at)),
            Self::Restocked { status, remaining } => write!(f, "{status} {}", or_null(remaining)),
            Self::Sale(None) => write!(f, "no row"),
            Self::Sale(Some(SaleView { item, remaining, held, sold, terms })) => {
                write!(f, "{item} {remaining} {held} {sold}")?;
                let settings = [terms.per_buyer, terms.starts_at, terms.ends_at, terms.hold];
                settings.iter().try_for_each(|setting| write!(f, " {}", or_null(setting)))
            }
        }
    }
}

fn or_null(value: &Option<impl fmt::Display>) -> String {
    value.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string)
}

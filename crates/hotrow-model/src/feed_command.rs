//! The commands of feeds, their limits, and how they and their answers are written. The answers are in `feed.rs`.

use std::fmt;

pub use crate::Fault;
use crate::named::named;

named! {
    /// The order of unread messages.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Sort (NAMES, name) {
        "oldest" Oldest,
        "newest" Newest,
        "author" Author,
    }
}

/// A message in an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its number in the inbox.
    pub entry: i64,
    /// The user that sent it.
    pub from: i64,
    /// The number of the post, if it is one.
    pub post: Option<i64>,
    /// The text.
    pub content: String,
}

named! {
    /// A call of a function of feeds.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum FeedCommand (FUNCTIONS, function) {
        "follow" Follow { user: i64, followee: i64, backfill: i64 },
        "unfollow" Unfollow { user: i64, followee: i64 },
        "mute" Mute { user: i64, followee: i64, muted: bool },
        "post" Post { author: i64, content: String, request: Option<u128> },
        "push" Push { user: i64, from: i64, content: String, at: Option<i64>, request: Option<u128> },
        "consume" Consume { user: i64, max: i64, sort: Sort },
        "peek" Peek { user: i64, max: i64, sort: Sort },
        "unread" Unread { user: i64 },
        "mark_read_up_to" MarkReadUpTo { user: i64, entry: i64 },
        "past" Past { user: i64, before: Option<i64>, max: i64 },
        "fan_out" FanOut { most: usize },
    }
}

impl FeedCommand {
    /// Returns whether the arguments are valid.
    pub fn check(&self) -> Result<(), Fault> {
        let fine = match self {
            Self::Follow { backfill, .. } => (0..=1000).contains(backfill),
            Self::Consume { max, .. } | Self::Peek { max, .. } | Self::Past { max, .. } => {
                (0..=1000).contains(max)
            }
            Self::Post { content, .. } | Self::Push { content, .. } => content.len() <= 1_000_000,
            Self::FanOut { most } => (1..=10_000).contains(most),
            _ => true,
        };
        fine.then_some(()).ok_or(Fault::Argument)
    }

    /// The same call without its request ID. A retry must be equal to it.
    pub fn canonical(&self) -> Self {
        let mut command = self.clone();
        if let Self::Post { request, .. } | Self::Push { request, .. } = &mut command {
            *request = None;
        }
        command
    }

    /// The arguments: for each, its literal and its type.
    pub fn arguments(&self) -> Vec<(String, &'static str)> {
        let number = |value: &i64| (value.to_string(), "bigint");
        let size = |value: &i64| (value.to_string(), "int");
        let text = |value: &str| (format!("'{value}'"), "text");
        let id = |value: &Option<u128>| {
            let literal = value.map_or_else(|| "null".to_owned(), |id| format!("'{id:032x}'"));
            (literal, "uuid")
        };
        match self {
            Self::Follow { user, followee, backfill } => vec![number(user), number(followee), size(backfill)],
            Self::Unfollow { user, followee } => vec![number(user), number(followee)],
            Self::Mute { user, followee, muted } => {
                vec![number(user), number(followee), (muted.to_string(), "boolean")]
            }
            Self::Post { author, content, request } => vec![number(author), text(content), id(request)],
            Self::Push { user, from, content, at, request } => {
                // In seconds since 1970. NULL stands for now.
                let at = at.map_or_else(|| "null".to_owned(), |at| format!("to_timestamp({at})"));
                let at = (at, "timestamptz");
                vec![number(user), number(from), text(content), at, id(request)]
            }
            Self::Consume { user, max, sort } | Self::Peek { user, max, sort } => {
                vec![number(user), size(max), text(sort.name())]
            }
            Self::Unread { user } => vec![number(user)],
            Self::MarkReadUpTo { user, entry } => vec![number(user), number(entry)],
            Self::Past { user, before, max } => {
                let before = before.map_or_else(|| "null".to_owned(), |entry| entry.to_string());
                vec![number(user), (before, "bigint"), size(max)]
            }
            Self::FanOut { most } => vec![(most.to_string(), "int")],
        }
    }
}

impl fmt::Display for FeedCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arguments: Vec<_> = self.arguments().into_iter().map(|(literal, _)| literal).collect();
        write!(f, "{}({})", self.function(), arguments.join(", "))
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let post = self.post.map_or_else(|| "-".to_owned(), |post| post.to_string());
        write!(f, "{} {} {post} {}", self.entry, self.from, self.content)
    }
}

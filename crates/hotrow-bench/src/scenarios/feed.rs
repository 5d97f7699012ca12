//! The scenarios `feed-...`: messages of 2,048 characters that go to inboxes and are consumed there; they hold no SQL and run
//! nothing.

use super::SELL_DIRECT;
use crate::scenario::{Arrivals, Beside, Clients, Figure, Rows, Scenario, Technique, Through, Worth};

/// One message goes to one inbox.
pub static FEED_PUSH: Scenario = Scenario {
    name: "feed-push",
    shows: "Messages of 2,048 characters pushed to one inbox each: how many a second, by technique",
    set_up: include_str!("../../sql/feed/tables.sql"),
    fill: "",
    pack: true,
    takes_long: false,
    before_run: include_str!("../../sql/feed/before_run.sql"),
    tables: &[],
    reading: include_str!("../../sql/feed/reading.sql"),
    rows: Rows::One,
    clients: Clients::Usually(&[56]),
    figure: Figure::Throughput,
    techniques: &[PUSH, PUSH_DIRECT, through_hotrow(PUSH_DIRECT, "the schema pack's `push`, through Hotrow")],
    remarks: &[
        ARTICLE,
        TEXT,
        CHECKS,
        "Inboxes are drawn from two thousand million, so that nearly every message goes to a new one.",
    ],
};

/// One post goes to a thousand followers.
pub static FEED_POST: Scenario = Scenario {
    name: "feed-post",
    shows: "Posts of 2,048 characters to 1,000 followers each: how many inboxes a second get one, by technique",
    techniques: &[
        POST,
        POST_DIRECT,
        POST_HOTROW,
        Technique {
            name: "status-column-repeated",
            about: "the first with the article's text, which compresses to a thirtieth",
            script: POSTS_OF_THE_ARTICLE_BY_HAND,
            warm_up: POSTS_OF_THE_ARTICLE_BY_HAND,
            against: "status-column-repeated",
            ..POST
        },
        Technique {
            name: "hotrow-repeated",
            about: "the third with that text",
            script: POSTS_OF_THE_ARTICLE,
            warm_up: POSTS_OF_THE_ARTICLE,
            against: "status-column-repeated",
            ..POST_HOTROW
        },
    ],
    remarks: &[
        ARTICLE,
        TEXT,
        "A reference is as long whatever the text. So the last two show the other end: where the text compresses to less than the \
         rest of its row, a reference to it saves nothing in the log. Messages that people write are between the two, nearer \
         the first: 2,048 characters of English prose compress to 1,500 bytes.",
        CHECKS,
        "64 authors have a thousand followers each among 16,384 users. An inbox that got a post counts as one.",
    ],
    ..FEED_PUSH
};

/// Twenty messages a call are consumed.
pub static FEED_CONSUME: Scenario = Scenario {
    name: "feed-consume",
    shows: "The next 20 messages of an inbox consumed: how many messages a second, by technique",
    rows: Rows::UsedUp { per_second: 500_000, besides: 0, in_a_hurry: 200_000 },
    techniques: &[CONSUME, CONSUME_DIRECT, CONSUME_HOTROW],
    remarks: &[ARTICLE, CONSUMED_TEXT, CHECKS, WALK],
    ..FEED_PUSH
};

/// The same while others push.
pub static FEED_BUSY: Scenario = Scenario {
    name: "feed-busy",
    shows: "The next 20 messages consumed, 1,000 times a second, while 64 clients push to the same inboxes: how long it takes",
    rows: Rows::UsedUp { per_second: 100_000, besides: 0, in_a_hurry: 200_000 },
    figure: Figure::Latency,
    techniques: &[
        Technique { arrivals: BUSY, beside: Some(PUSHERS_BY_HAND), ..CONSUME },
        Technique { arrivals: BUSY, beside: Some(PUSHERS), ..CONSUME_HOTROW },
    ],
    remarks: &[
        ARTICLE,
        TEXT,
        CONSUMED_TEXT,
        CHECKS,
        WALK,
        "Messages are pushed as fast as the 64 clients get their answers. A latency of consuming counts from the time the \
         request was due.",
    ],
    ..FEED_PUSH
};

const ARTICLE: &str = "`status-column` is the design of digoal's article \"PostgreSQL Feed Systems Similar to Weibo\" (2018): \
    partitions by inheritance, a status column under a partial index, functions that put their SQL together. It has 64 \
    partitions here instead of 1,024, which is to its advantage in short runs on a small machine: no connection lasts long enough \
    to have met a thousand tables.";

const TEXT: &str = "The text is 2,048 random hexadecimal digits, which don't compress, and each call carries it from the client. The \
    article's own, `repeat(md5('a'), 64)`, compresses to 69 bytes: with it nobody would see what 2,048 characters cost.";

const CONSUMED_TEXT: &str = "What is there to be consumed is the article's text: as many that don't compress as a run uses up would not \
    fit into memory. This is to the advantage of `status-column`, which has a text that does not compress outside its row.";

const CHECKS: &str =
    "After each run there must be as many messages, and as many of them consumed, as were acknowledged.";

const WALK: &str = "There are 1,024 inboxes, shared out among the clients, each of whom reads his own in turn: so each call gets its \
    20 messages. Two readers of one inbox would get fewer with `status-column`: who waits for the other's rows finds them read.";

const BUSY: Arrivals = Arrivals::Planned { usually: 1_000 };

const PUSH: Technique = Technique {
    name: "status-column",
    about: "one row for each message and inbox, with a status, straight to the server",
    script: PUSHES_BY_HAND,
    warm_up: PUSHES_BY_HAND,
    against: "status-column",
    ..SELL_DIRECT
};

const POST: Technique = Technique {
    prepare: include_str!("../../sql/feed/follow_by_hand.sql"),
    script: POSTS_BY_HAND,
    warm_up: POSTS_BY_HAND,
    worth: Worth::Each(1_000),
    ..PUSH
};

const CONSUME: Technique = Technique {
    prepare: include_str!("../../sql/feed/fill_by_hand.sql"),
    script: include_str!("../../sql/feed/pgbench/consume_by_hand.sql"),
    warm_up: include_str!("../../sql/feed/pgbench/consume_by_hand.sql"),
    worth: Worth::Each(20),
    ..PUSH
};

const PUSH_DIRECT: Technique = Technique {
    name: "pack-direct",
    about: "the schema pack's `push`, straight to the server",
    script: PUSHES,
    warm_up: PUSHES,
    ..PUSH
};

const POST_DIRECT: Technique = Technique {
    name: "pack-direct",
    about: "the schema pack's `post`, straight to the server",
    prepare: include_str!("../../sql/feed/follow_hotrow.sql"),
    script: POSTS,
    warm_up: POSTS,
    ..POST
};

const CONSUME_DIRECT: Technique = Technique {
    name: "pack-direct",
    about: "the schema pack's `consume`, straight to the server",
    prepare: include_str!("../../sql/feed/fill_hotrow.sql"),
    script: include_str!("../../sql/feed/pgbench/consume.sql"),
    warm_up: include_str!("../../sql/feed/pgbench/consume.sql"),
    ..CONSUME
};

const POST_HOTROW: Technique = through_hotrow(POST_DIRECT, "the schema pack's `post`, through Hotrow");

const CONSUME_HOTROW: Technique =
    through_hotrow(CONSUME_DIRECT, "the schema pack's `consume`, through Hotrow");

/// The same calls by clients of Hotrow.
const fn through_hotrow(direct: Technique, about: &'static str) -> Technique {
    Technique { name: "hotrow", about, through: Through::Hotrow, ..direct }
}

/// A script whose calls carry a text: the file that makes the text, then the one with the call.
macro_rules! with_text {
    ($text:literal, $call:literal) => {
        concat!(
            include_str!(concat!("../../sql/feed/pgbench/", $text)),
            include_str!(concat!("../../sql/feed/pgbench/", $call))
        )
    };
}

const PUSHERS_BY_HAND: Beside =
    Beside { clients: 64, script: with_text!("text.sql", "push_near_by_hand.sql") };
const PUSHERS: Beside = Beside { clients: 64, script: with_text!("text.sql", "push_near.sql") };

const PUSHES_BY_HAND: &str = with_text!("text.sql", "push_by_hand.sql");
const PUSHES: &str = with_text!("text.sql", "push.sql");

const POSTS_BY_HAND: &str = with_text!("text.sql", "post_by_hand.sql");
const POSTS: &str = with_text!("text.sql", "post.sql");

const POSTS_OF_THE_ARTICLE_BY_HAND: &str = with_text!("text_of_the_article.sql", "post_by_hand.sql");
const POSTS_OF_THE_ARTICLE: &str = with_text!("text_of_the_article.sql", "post.sql");

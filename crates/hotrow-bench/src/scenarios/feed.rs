//! The scenarios `feed-...`: messages of 2,048 characters, pushed to inboxes and consumed there. Their SQL is in `sql/`.

use super::{SELL_DIRECT, USUAL};
use crate::scenario::{
    Arrivals, Beside, Clients, Figure, Rows, Scenario, SecondLoad, Technique, Through, Worth,
};

/// One message goes to one inbox.
pub static FEED_PUSH: Scenario = Scenario {
    name: "feed-push",
    shows: "Messages of 2,048 characters pushed to one inbox each: messages per second, by technique",
    set_up: sql!("feed/tables.sql"),
    pack: true,
    before_run: sql!("feed/before_run.sql"),
    reading: sql!("feed/reading.sql"),
    clients: Clients::Usually(&[56]),
    techniques: &[
        PUSH,
        DECLARED_PUSH,
        PUSH_DIRECT,
        PUSH_DIRECT.through_hotrow("the hotrow schema's `push`, through Hotrow"),
    ],
    remarks: &[
        ARTICLE,
        TEXT,
        CHECKS,
        "Inboxes are chosen from two billion, and nearly every message goes to a new inbox.",
    ],
    ..USUAL
};

/// One post goes to a thousand followers.
pub static FEED_POST: Scenario = Scenario {
    name: "feed-post",
    shows: "Posts of 2,048 characters to 1,000 followers each: inboxes that get a post per second, by technique",
    techniques: &[
        POST,
        POST_DIRECT,
        POST_HOTROW,
        Technique {
            name: "status-column-repeated",
            about: "`status-column` with the article's text, which compresses to a thirtieth",
            script: script!("feed/pgbench/text_of_the_article.sql" "feed/pgbench/post_by_hand.sql"),
            against: "status-column-repeated",
            ..POST
        },
        Technique {
            name: "hotrow-repeated",
            about: "`hotrow` with that text",
            script: script!("feed/pgbench/text_of_the_article.sql" "feed/pgbench/post.sql"),
            against: "status-column-repeated",
            ..POST_HOTROW
        },
    ],
    remarks: &[
        ARTICLE,
        TEXT,
        "A reference has the same length for any text. The last two techniques show the other extreme: if the text compresses to \
         less than the rest of its row, a reference saves nothing in the WAL. Real messages are between the two, nearer to \
         the first: 2,048 characters of English prose compress to 1,500 bytes.",
        CHECKS,
        "64 authors have a thousand followers each among 16,384 users. Each inbox that gets a post counts as one unit.",
    ],
    ..FEED_PUSH
};

/// Each call consumes twenty messages.
pub static FEED_CONSUME: Scenario = Scenario {
    name: "feed-consume",
    shows: "The next 20 messages of an inbox consumed: messages per second, by technique",
    rows: Rows::UsedUp { per_second: 500_000, besides: 0, if_quick: 40_000 },
    techniques: &[CONSUME, DECLARED_CONSUME, CONSUME_DIRECT, CONSUME_HOTROW],
    remarks: &[ARTICLE, CONSUMED_TEXT, CHECKS, WALK],
    ..FEED_PUSH
};

/// The same while other clients push.
pub static FEED_BUSY: Scenario = Scenario {
    name: "feed-busy",
    shows: "The next 20 messages consumed, 1,000 times per second, while 64 clients push to the same inboxes: latency",
    rows: Rows::UsedUp { per_second: 100_000, besides: 0, if_quick: 40_000 },
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
        "The 64 clients push as fast as they get answers. The latency of consuming counts from the time the request was due.",
    ],
    ..FEED_PUSH
};

const ARTICLE: &str = "`status-column` is the design of digoal's article \"PostgreSQL Feed Systems Similar to Weibo\" (2018): \
    partitions by inheritance, a status column with a partial index, functions that build their SQL. It has 64 \
    partitions here instead of 1,024. This is an advantage for it in short runs on a small machine, because no connection lasts \
    long enough to cache a thousand tables.";

const TEXT: &str = "The text is 2,048 random hexadecimal digits, which do not compress, and each call sends it from the client. The \
    article's text, `repeat(md5('a'), 64)`, compresses to 69 bytes and hides the cost of 2,048 characters.";

const CONSUMED_TEXT: &str = "The messages to consume have the article's text: the messages of a run without compression would not fit into \
    memory. This is an advantage for `status-column`, which stores a text that does not compress outside its row.";

const CHECKS: &str = "After each run, the numbers of messages and of consumed messages must be the numbers of acknowledged ones.";

const WALK: &str = "There are 1,024 inboxes. Each client reads its share of them in turn, and each call gets 20 messages. With \
    `status-column`, two readers of one inbox would get fewer: a reader that waits for the other's rows finds them consumed.";

const BUSY: Arrivals = Arrivals::Planned { usually: 1_000 };

const PUSH: Technique = Technique {
    name: "status-column",
    about: "one row for each message and inbox, with a status, directly to the server",
    script: script!("feed/pgbench/text.sql" "feed/pgbench/push_by_hand.sql"),
    against: "status-column",
    ..SELL_DIRECT
};

const POST: Technique = Technique {
    prepare: sql!("feed/follow_by_hand.sql"),
    script: script!("feed/pgbench/text.sql" "feed/pgbench/post_by_hand.sql"),
    worth: Worth::Each(1_000),
    ..PUSH
};

const CONSUME: Technique = Technique {
    prepare: sql!("feed/fill_by_hand.sql"),
    script: script!("feed/pgbench/own_inbox.sql" "feed/pgbench/consume_by_hand.sql"),
    worth: Worth::Each(20),
    ..PUSH
};

const DECLARED_PUSH: Technique = Technique {
    name: "declared",
    about: "the functions of `status-column` with pack rules, through Hotrow",
    prepare: sql!("feed/declare.sql"),
    through: Through::Hotrow,
    ..PUSH
};

const DECLARED_CONSUME: Technique = Technique {
    prepare: concat!(sql!("feed/declare.sql"), sql!("feed/fill_by_hand.sql")),
    script: CONSUME.script,
    worth: CONSUME.worth,
    ..DECLARED_PUSH
};

const PUSH_DIRECT: Technique = Technique {
    name: "pack-direct",
    about: "the hotrow schema's `push`, directly to the server",
    script: script!("feed/pgbench/text.sql" "feed/pgbench/push.sql"),
    ..PUSH
};

const POST_DIRECT: Technique = Technique {
    name: "pack-direct",
    about: "the hotrow schema's `post`, directly to the server",
    prepare: sql!("feed/follow_hotrow.sql"),
    script: script!("feed/pgbench/text.sql" "feed/pgbench/post.sql"),
    ..POST
};

const CONSUME_DIRECT: Technique = Technique {
    name: "pack-direct",
    about: "the hotrow schema's `consume`, directly to the server",
    prepare: sql!("feed/fill_hotrow.sql"),
    script: script!("feed/pgbench/own_inbox.sql" "feed/pgbench/consume.sql"),
    ..CONSUME
};

const POST_HOTROW: Technique = POST_DIRECT.through_hotrow("the hotrow schema's `post`, through Hotrow");

const CONSUME_HOTROW: Technique =
    CONSUME_DIRECT.through_hotrow("the hotrow schema's `consume`, through Hotrow");

const PUSHERS_BY_HAND: SecondLoad = SecondLoad {
    clients: 64,
    does: Beside::Work(script!("feed/pgbench/text.sql" "feed/pgbench/push_near_by_hand.sql").measured),
};
const PUSHERS: SecondLoad = SecondLoad {
    clients: 64,
    does: Beside::Work(script!("feed/pgbench/text.sql" "feed/pgbench/push_near.sql").measured),
};

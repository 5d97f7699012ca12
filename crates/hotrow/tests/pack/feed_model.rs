//! Feeds against their model, one client at a time: random calls, alone and in batches, with repeated request IDs; and
//! faults planted in the SQL, which must be noticed. A difference is shown with its seed, which `HOTROW_SEED` runs
//! again.

use std::mem::discriminant;

use fastrand::Rng;
use hotrow_model::{FeedCommand, FeedLimits, Feeds, Sort};
use hotrow_postgres::PrivateServer;
use hotrow_testkit::line::Line;

use crate::planted::{Fault, missed, seeds};
use crate::same_as_model::none_differs;
use crate::workload::assert_calls_all;
use crate::{private, sql};

const SEEDS: u64 = 40;
const STEPS: usize = 60;
const SEEDS_MAX: u64 = 200;
const LIMITS: FeedLimits = FeedLimits { inline: 2, pull_above: 3, kept: 64 };
const SETTINGS: &str = "update hotrow.setting set feed_inline = 2, feed_pull_above = 3, inbox_length = 64";

/// Makes calls about a few users. Their numbers begin at `base`, which keeps runs in one database apart.
struct Workload {
    random: Rng,
    base: i64,
    requests: Vec<FeedCommand>,
    /// The model's entry number. It keeps random numbers near existing entries.
    entry: i64,
}

/// Batches of calls in their order.
type Situation = Vec<Vec<FeedCommand>>;

fn fan_out(most: usize) -> Vec<FeedCommand> {
    vec![FeedCommand::FanOut { most }]
}

impl Workload {
    fn new(seed: u64) -> Self {
        let base = (seed % 1_000_000_000) as i64 * 10;
        Workload { random: Rng::with_seed(seed), base, requests: Vec::new(), entry: 40 }
    }

    fn user(&mut self) -> i64 {
        self.base + self.random.i64(0..7)
    }

    /// Two authors that most users follow, or any user.
    fn author(&mut self) -> i64 {
        let users = if self.random.u8(0..3) > 0 { 2 } else { 7 };
        self.base + self.random.i64(0..users)
    }

    fn max(&mut self) -> i64 {
        [-1, 0, 1, 2, 3, 5, 20, 1001]
            [if self.random.u8(0..12) == 0 { self.random.usize(0..8) } else { self.random.usize(2..7) }]
    }

    fn sort(&mut self) -> Sort {
        [Sort::Oldest, Sort::Oldest, Sort::Newest, Sort::Author][self.random.usize(0..4)]
    }

    fn command(&mut self) -> FeedCommand {
        if !self.requests.is_empty() && self.random.u8(0..10) == 0 {
            return self.requests[self.random.usize(0..self.requests.len())].clone();
        }
        let request = match self.random.u8(0..30) {
            0..18 => None,
            18 => self.requests.last().and_then(|last| match last {
                FeedCommand::Post { request, .. } | FeedCommand::Push { request, .. } => *request,
                _ => None,
            }),
            _ => Some(self.random.u128(..)),
        };
        let content = format!("m{}", self.random.u16(..));
        let command = match self.random.u8(0..100) {
            0..20 => FeedCommand::Follow { user: self.user(), followee: self.author(), backfill: self.max() },
            20..24 => FeedCommand::Unfollow { user: self.user(), followee: self.author() },
            24..29 => {
                FeedCommand::Mute { user: self.user(), followee: self.author(), muted: self.random.bool() }
            }
            29..50 => FeedCommand::Post { author: self.author(), content, request },
            50..62 => {
                let at = (self.random.u8(0..4) == 0).then(|| self.random.i64(1_700_000_000..1_700_000_009));
                FeedCommand::Push { user: self.user(), from: self.author(), content, at, request }
            }
            62..75 => FeedCommand::Consume { user: self.user(), max: self.max(), sort: self.sort() },
            75..79 => FeedCommand::Peek { user: self.user(), max: self.max(), sort: self.sort() },
            79..85 => FeedCommand::Unread { user: self.user() },
            85..89 => FeedCommand::MarkReadUpTo { user: self.user(), entry: self.random.i64(0..=self.entry) },
            89..93 => {
                let before = self.random.bool().then(|| self.random.i64(0..=self.entry));
                FeedCommand::Past { user: self.user(), before, max: self.max() }
            }
            _ => FeedCommand::FanOut { most: self.random.usize(0..4) },
        };
        if matches!(
            &command,
            FeedCommand::Post { request: Some(_), .. } | FeedCommand::Push { request: Some(_), .. }
        ) {
            self.requests.push(command.clone());
        }
        command
    }

    fn follow(&self, user: i64, followee: i64) -> FeedCommand {
        FeedCommand::Follow { user: self.base + user, followee: self.base + followee, backfill: 2 }
    }

    fn post(&self, author: i64) -> Vec<FeedCommand> {
        let (author, content) = (self.base + author, "post".to_owned());
        vec![FeedCommand::Post { author, content, request: None }]
    }

    fn push(&self, user: i64, at: Option<i64>, request: Option<u128>) -> FeedCommand {
        let (user, from, content) = (self.base + user, self.base, "push".to_owned());
        FeedCommand::Push { user, from, content, at, request }
    }

    fn mute(&self, user: i64, followee: i64, muted: bool) -> Vec<FeedCommand> {
        vec![FeedCommand::Mute { user: self.base + user, followee: self.base + followee, muted }]
    }

    fn consume(&self, user: i64, max: i64, sort: Sort) -> Vec<FeedCommand> {
        vec![FeedCommand::Consume { user: self.base + user, max, sort }]
    }

    fn unread(&self, user: i64) -> Vec<FeedCommand> {
        vec![FeedCommand::Unread { user: self.base + user }]
    }

    /// An author gets so many followers that they pull its posts.
    fn growing_authors(&self) -> [Situation; 2] {
        [
            // A user follows the author during the fan-out that tells the followers, which is past this user already.
            vec![
                (2..7).map(|user| self.follow(user, 0)).collect(),
                self.post(0),
                fan_out(2),
                vec![self.follow(1, 0)],
                fan_out(9),
                fan_out(9),
                self.post(0),
            ],
            // The author posts again during the fan-out that tells the followers to pull its posts.
            vec![
                (1..6).map(|user| self.follow(user, 3)).collect(),
                [self.post(3), self.post(3)].concat(),
                fan_out(2),
                self.post(3),
                self.consume(1, 20, Sort::Oldest),
                self.unread(5),
                fan_out(9),
                self.consume(5, 20, Sort::Oldest),
            ],
        ]
    }

    fn full_inboxes_and_mutes(&self) -> [Situation; 3] {
        [
            // An inbox is full, and more messages arrive.
            vec![vec![self.push(1, None, None); LIMITS.kept as usize], self.unread(1)],
            // One of few followers has muted the author.
            vec![vec![self.follow(2, 6), self.follow(3, 6)], self.mute(2, 6, true), self.post(6)],
            // A post from the time when a follower had muted the author is still pending after the mute has ended.
            vec![
                (1..4).map(|user| self.follow(user, 6)).collect(),
                self.mute(2, 6, true),
                self.post(6),
                self.mute(2, 6, false),
                self.post(6),
                fan_out(9),
                fan_out(9),
            ],
        ]
    }

    fn repeated_requests_and_pending_posts(&mut self) -> [Situation; 3] {
        let request = Some(self.random.u128(..));
        [
            // A request is repeated with another time.
            vec![vec![self.push(5, None, request)], vec![self.push(5, Some(1_700_000_000), request)]],
            // An author's post to many followers is still pending when the author has few followers.
            vec![
                (2..5).map(|user| self.follow(user, 5)).collect(),
                self.post(5),
                vec![FeedCommand::Unfollow { user: self.base + 2, followee: self.base + 5 }],
                self.post(5),
            ],
            // The range that is marked as read ends with entries that have been read before.
            vec![
                vec![self.push(4, None, None); 5],
                self.consume(4, 2, Sort::Newest),
                vec![FeedCommand::MarkReadUpTo { user: self.base + 4, entry: self.random.i64(3..=5) }],
            ],
        ]
    }

    /// The beginning of a run: some of the situations that random calls reach too rarely to detect faults in them.
    fn opening(&mut self) -> Vec<Vec<FeedCommand>> {
        let repeated = self.repeated_requests_and_pending_posts();
        let situations =
            self.growing_authors().into_iter().chain(self.full_inboxes_and_mutes()).chain(repeated);
        situations.filter(|_| self.random.bool()).flatten().collect()
    }

    /// One call, or several of one function that has a batch function; sometimes enough to fill an inbox.
    fn next(&mut self) -> Vec<FeedCommand> {
        let first = self.command();
        let calls = match self.random.u8(0..12) {
            _ if !sql::has_batch_function(first.function()) => 1,
            0 => 40,
            1..7 => self.random.usize(2..=8),
            _ => 1,
        };
        let mut commands = vec![first];
        while commands.len() < calls {
            let other = self.command();
            if discriminant(&other) == discriminant(&commands[0]) {
                commands.push(other);
            }
        }
        commands
    }
}

/// The answer of a query: rows in the model's format, or the SQLSTATE.
fn rows(line: &mut Line, sql: &str) -> Result<Vec<String>, String> {
    let answer = line.query(sql);
    match answer.error() {
        Some(report) => Err(report.code),
        None => Ok(answer.rows().iter().map(|row| sql::answer(row)).collect()),
    }
}

/// The answer of the SQL: each call's rows.
fn ask(line: &mut Line, commands: &[FeedCommand]) -> Result<Vec<Vec<String>>, String> {
    let columns = |command: &FeedCommand| match command {
        FeedCommand::Consume { .. } | FeedCommand::Peek { .. } => "entry_id, from_user, post_id, content",
        FeedCommand::Past { .. } => "entry_id, from_user, post_id, content, consumed",
        _ => "*",
    };
    if let [command] = commands {
        return Ok(vec![rows(line, &format!("select {} from hotrow.{command}", columns(command)))?]);
    }
    let calls: Vec<_> = commands.iter().map(FeedCommand::arguments).collect();
    let arrays = (0..calls[0].len()).map(|place| {
        let values: Vec<_> = calls.iter().map(|arguments| arguments[place].0.as_str()).collect();
        format!("array[{}]::{}[]", values.join(", "), calls[0][place].1)
    });
    let batch = format!("hotrow.{}_batch({})", commands[0].function(), arrays.collect::<Vec<_>>().join(", "));
    if !matches!(commands[0], FeedCommand::Consume { .. }) {
        let rows = rows(line, &format!("select * from {batch}"))?;
        return Ok(rows.into_iter().map(|row| vec![row]).collect());
    }
    let mut answers = vec![Vec::new(); commands.len()];
    let mut last = 0;
    for row in rows(line, &format!("select call, {} from {batch}", columns(&commands[0])))? {
        let (call, row) = row.split_once(' ').unwrap();
        let call: usize = call.parse().unwrap();
        assert!(call >= last, "the rows are in the order of the calls");
        last = call;
        answers[call - 1].push(row.to_owned());
    }
    Ok(answers)
}

/// The first difference between SQL and model, with all calls up to it.
fn difference(line: &mut Line, seed: u64) -> Option<String> {
    difference_among(line, seed, LIMITS, |commands| commands)
}

/// The same with the calls that `choose` leaves of each batch.
pub fn difference_among(
    line: &mut Line,
    seed: u64,
    limits: FeedLimits,
    mut choose: impl FnMut(Vec<FeedCommand>) -> Vec<FeedCommand>,
) -> Option<String> {
    let mut workload = Workload::new(seed);
    let mut feeds = Feeds::new(limits);
    let mut trace = String::new();
    let mut opening = workload.opening().into_iter();
    let mut steps = 0;
    loop {
        let commands = match opening.next() {
            Some(commands) => commands,
            None if steps < STEPS => workload.next(),
            // Finally all pending posts arrive, because the next run must not find any.
            None => vec![FeedCommand::FanOut { most: 10_000 }],
        };
        steps += 1;
        let commands = choose(commands);
        if commands.is_empty() {
            continue;
        }
        let found = ask(line, &commands);
        let right = feeds.apply(&commands);
        let texts: Vec<_> = commands.iter().map(ToString::to_string).collect();
        trace.push_str(&format!("{} -> {found:?}\n", texts.join("; ")));
        let same = match (&found, &right) {
            (Ok(found), Ok(right)) => found == right,
            (Err(code), Err(_)) => code == "22023",
            _ => false,
        };
        if !same {
            return Some(format!("HOTROW_SEED={seed}\n{trace}  the model: {right:?}"));
        }
        if steps > STEPS && right == Ok(vec![vec!["0".to_owned()]]) {
            return None;
        }
    }
}

/// A server with limits that a few users reach.
fn server(label: &'static str) -> (PrivateServer, Line) {
    let (server, mut line) = private(label);
    assert_eq!(line.query(SETTINGS).error(), None);
    (server, line)
}

#[test]
fn random_calls_call_every_function() {
    let mut workload = Workload::new(1);
    assert_calls_all(FeedCommand::FUNCTIONS, || workload.next()[0].function());
}

#[test]
fn random_calls_get_the_models_answers() {
    let (_server, mut line) = server("feedmodel");
    none_differs(SEEDS, |seed| difference(&mut line, seed));
}

const ARGUMENTS_DIFFER: &str =
    "r.arguments <> hotrow.message_arguments(u.user_id, u.from_user, u.content, u.at)";

const FAULTS: [Fault; 19] = [
    ("write_entries", "last[w.slot] - entries[w.slot] + w.nth", "last[w.slot] - w.nth + 1"),
    ("trim_inboxes", "e.number <= u.newest - kept", "e.number <= u.newest - kept + 30"),
    ("first_numbers", "upper(part) - size, upper(part)", "lower(part), lower(part) + size"),
    ("advance", "lower(part) = read_to + 1", "lower(part) >= read_to + 1"),
    ("entries", "order by e.number desc", "order by e.number"),
    ("lock_readers", "greatest(read_to[i], last[i] - kept)", "read_to[i]"),
    ("pull_posts", "a.pulled_from - 1", "a.pulled_from - 2"),
    ("pull_posts", "a.last_post > l.pulled_to", "a.last_post > l.pulled_to + 1"),
    ("unread", "last + coming - kept", "last - kept"),
    ("mark_read_up_to", "int8range(null, upto + 1)", "int8range(null, upto)"),
    ("follow_batch", "and a.pulled_from is not null", "and false"),
    ("write_posts", "and not f.muted", ""),
    ("write_posts", "a.last_post - u.posts + 2", "a.last_post + 1"),
    (
        "write_posts",
        "or exists (select from hotrow.fan_out_turn t where t.author = any (array[w.author]))",
        "",
    ),
    ("bring", "f.since_post < u.post_id and", ""),
    ("bring", "a.pulled_from - 1", "a.pulled_from"),
    ("mute", "then entry.last_post", "then f.since_post"),
    ("write_once", ARGUMENTS_DIFFER, "false"),
    (
        "write_once",
        ARGUMENTS_DIFFER,
        "not starts_with(r.arguments, concat_ws(' ', u.user_id, u.from_user, md5(u.content)))",
    ),
];

#[test]
#[ignore = "long: make test-all"]
fn every_fault_planted_in_feeds_is_noticed() {
    let (_server, mut line) = server("feedfaults");
    let missed = missed(&mut line, &FAULTS, |line, index| {
        let noticed = seeds(index, SEEDS_MAX).any(|seed| difference(line, seed).is_some());
        // Removes pending posts of the run that noticed the fault.
        assert_eq!(line.query("truncate hotrow.fan_out, hotrow.fan_out_turn").error(), None);
        noticed
    });
    assert_eq!(missed, [], "no run noticed these");
}

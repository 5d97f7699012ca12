//! Feeds against their model, one client at a time: random calls, alone and in batches, with request ids that come again;
//! and faults planted in the SQL, which must be noticed. A difference is shown with its seed, which `HOTROW_SEED` runs again.

use std::mem::discriminant;

use fastrand::Rng;
use hotrow_model::{FeedCommand, FeedLimits, Feeds, Sort};
use hotrow_postgres::PrivateServer;
use hotrow_testkit::line::Line;

use crate::planted::{Fault, missed, seeds};
use crate::same_as_model::none_differs;
use crate::{private, sql};

const SEEDS: u64 = 60;
const STEPS: usize = 60;
const SEEDS_MAX: u64 = 200;
const LIMITS: FeedLimits = FeedLimits { inline: 2, pull_above: 3, kept: 64 };
const SETTINGS: &str = "update hotrow.setting set feed_inline = 2, feed_pull_above = 3, inbox_length = 64";

/// Makes calls about a few users, whose numbers begin at `base`, so that runs in one database don't meet.
struct Workload {
    random: Rng,
    base: i64,
    requests: Vec<FeedCommand>,
    /// What the model says, so that numbers are near those that there are.
    entry: i64,
}

impl Workload {
    fn user(&mut self) -> i64 {
        self.base + self.random.i64(0..7)
    }

    /// Two authors that nearly everybody follows, and the others.
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

    /// How a run begins: with some of the situations to which random calls come too rarely to notice what is wrong there.
    fn opening(&mut self) -> Vec<Vec<FeedCommand>> {
        let base = self.base;
        let follow = |user: i64, followee: i64| FeedCommand::Follow {
            user: base + user,
            followee: base + followee,
            backfill: 2,
        };
        let post = |author: i64| {
            vec![FeedCommand::Post { author: base + author, content: "post".to_owned(), request: None }]
        };
        let push = |user: i64| FeedCommand::Push {
            user: base + user,
            from: base,
            content: "push".to_owned(),
            at: None,
            request: None,
        };
        let mute = |user: i64, followee: i64, muted| {
            vec![FeedCommand::Mute { user: base + user, followee: base + followee, muted }]
        };
        let fan_out = |most| vec![FeedCommand::FanOut { most }];
        let id = self.random.u128(..);
        let mut told = push(5);
        if let FeedCommand::Push { request, .. } = &mut told {
            *request = Some(id);
        }
        let mut told_of_yesterday = told.clone();
        if let FeedCommand::Push { at, .. } = &mut told_of_yesterday {
            *at = Some(1_700_000_000);
        }
        let situations = [
            // Somebody comes while the followers of an author who has become too big are being told, and is past already.
            vec![
                (2..7).map(|user| follow(user, 0)).collect(),
                post(0),
                fan_out(2),
                vec![follow(1, 0)],
                fan_out(9),
                fan_out(9),
                post(0),
            ],
            // An author posts on while its followers are being told to come for its posts.
            vec![
                (1..6).map(|user| follow(user, 3)).collect(),
                [post(3), post(3)].concat(),
                fan_out(2),
                post(3),
                vec![FeedCommand::Consume { user: base + 1, max: 20, sort: Sort::Oldest }],
                vec![FeedCommand::Unread { user: base + 5 }],
                fan_out(9),
                vec![FeedCommand::Consume { user: base + 5, max: 20, sort: Sort::Oldest }],
            ],
            // An inbox is full, and more is to come.
            vec![vec![push(1); LIMITS.kept as usize], vec![FeedCommand::Unread { user: base + 1 }]],
            // One of few followers wants no posts.
            vec![vec![follow(2, 6), follow(3, 6)], mute(2, 6, true), post(6)],
            // What was posted while nobody wanted posts is still under way when they are wanted again.
            vec![
                (1..4).map(|user| follow(user, 6)).collect(),
                mute(2, 6, true),
                post(6),
                mute(2, 6, false),
                post(6),
                fan_out(9),
                fan_out(9),
            ],
            // A request comes again with another time.
            vec![vec![told], vec![told_of_yesterday]],
            // An author's post is still under way to many when he has few followers.
            vec![
                (2..5).map(|user| follow(user, 5)).collect(),
                post(5),
                vec![FeedCommand::Unfollow { user: base + 2, followee: base + 5 }],
                post(5),
            ],
            // What is marked as read ends with what has been read before.
            vec![
                vec![push(4); 5],
                vec![FeedCommand::Consume { user: base + 4, max: 2, sort: Sort::Newest }],
                vec![FeedCommand::MarkReadUpTo { user: base + 4, entry: self.random.i64(3..=5) }],
            ],
        ];
        situations.into_iter().filter(|_| self.random.bool()).flatten().collect()
    }

    /// One call, or several of one function that has a twin; sometimes so many that an inbox is full.
    fn next(&mut self) -> Vec<FeedCommand> {
        let first = self.command();
        let calls = match self.random.u8(0..12) {
            _ if !sql::has_twin(first.function()) => 1,
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

/// What a query answers: rows as the model writes them, or the SQLSTATE.
fn rows(line: &mut Line, sql: &str) -> Result<Vec<String>, String> {
    let answer = line.query(sql);
    match answer.error() {
        Some(report) => Err(report.code),
        None => Ok(answer.rows().iter().map(|row| sql::answer(row)).collect()),
    }
}

/// What the SQL answers: each call's rows.
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
        assert!(call >= last, "the calls' rows come in their order");
        last = call;
        answers[call - 1].push(row.to_owned());
    }
    Ok(answers)
}

/// The first difference between SQL and model, as a story.
fn difference(line: &mut Line, seed: u64) -> Option<String> {
    let mut workload = Workload {
        random: Rng::with_seed(seed),
        base: (seed % 1_000_000_000) as i64 * 10,
        requests: Vec::new(),
        entry: 40,
    };
    let mut feeds = Feeds::new(LIMITS);
    let mut story = String::new();
    let mut opening = workload.opening().into_iter();
    let mut steps = 0;
    loop {
        let commands = match opening.next() {
            Some(commands) => commands,
            None if steps < STEPS => workload.next(),
            // At last all that is under way arrives, so that the next run finds nothing of this one.
            None => vec![FeedCommand::FanOut { most: 10_000 }],
        };
        steps += 1;
        let found = ask(line, &commands);
        let right = feeds.apply(&commands);
        let texts: Vec<_> = commands.iter().map(ToString::to_string).collect();
        story.push_str(&format!("{} -> {found:?}\n", texts.join("; ")));
        let same = match (&found, &right) {
            (Ok(found), Ok(right)) => found == right,
            (Err(code), Err(_)) => code == "22023",
            _ => false,
        };
        if !same {
            return Some(format!("HOTROW_SEED={seed}\n{story}  the model: {right:?}"));
        }
        if steps > STEPS && right == Ok(vec![vec!["0".to_owned()]]) {
            return None;
        }
    }
}

/// A server with limits that make a few users many.
fn server(label: &'static str) -> (PrivateServer, Line) {
    let (server, mut line) = private(label);
    assert_eq!(line.query(SETTINGS).error(), None);
    (server, line)
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
    ("lock_readers", "read_to[i] < last[i] - kept", "false"),
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
fn every_fault_planted_in_feeds_is_noticed() {
    let (_server, mut line) = server("feedfaults");
    let missed = missed(&mut line, &FAULTS, |line, index| {
        let noticed = seeds(index, SEEDS_MAX).any(|seed| difference(line, seed).is_some());
        // What the run that noticed has left under way.
        assert_eq!(line.query("truncate hotrow.fan_out, hotrow.fan_out_turn").error(), None);
        noticed
    });
    assert_eq!(missed, [], "nobody noticed these");
}

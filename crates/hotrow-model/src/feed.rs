//! The answers of feeds: inboxes, followers, and posts on their way. Storage and delivery in pieces are not modelled.

use std::collections::{BTreeMap, BTreeSet};

use crate::feed_command::{Fault, FeedCommand, Message, Sort};

/// The settings that answers depend on.
#[derive(Clone, Copy, Debug)]
pub struct FeedLimits {
    /// A post goes out at once if the author has at most this number of followers.
    pub inline: usize,
    /// Followers fetch the posts of authors with more followers than this.
    pub pull_above: usize,
    /// The number of entries that an inbox keeps.
    pub kept: i64,
}

/// All feeds.
#[derive(Clone, Debug)]
pub struct Feeds {
    limits: FeedLimits,
    inboxes: BTreeMap<i64, Inbox>,
    authors: BTreeMap<i64, Author>,
    /// Posts that have not reached all followers, each with the first follower that fan-out has not yet looked at.
    under_way: BTreeMap<(i64, i64), i64>,
    /// The authors of these posts, each with the time of its last turn. The author that has waited longest is first.
    turns: BTreeSet<(u64, i64)>,
    requests: BTreeMap<u128, (FeedCommand, i64)>,
    /// Counts calls and batches. All calls of one batch have the same time.
    now: u64,
}

#[derive(Clone, Debug, Default)]
struct Inbox {
    last: i64,
    entries: BTreeMap<i64, Message>,
    unread: BTreeSet<i64>,
    /// The authors whose posts this user fetches, each with the last post that was fetched.
    pulls: BTreeMap<i64, i64>,
}

#[derive(Clone, Debug, Default)]
struct Author {
    posts: Vec<(u64, String)>,
    /// The followers, each with the post after which it follows and whether it has muted the author.
    followers: BTreeMap<i64, (i64, bool)>,
    /// Followers fetch the posts from this one on. The post before it is the last that is brought, and tells followers to
    /// fetch.
    pulled_from: Option<i64>,
}

impl Author {
    fn last(&self) -> i64 {
        self.posts.len() as i64
    }
}

impl Inbox {
    fn add(&mut self, from: i64, post: Option<i64>, content: &str, kept: i64) -> i64 {
        self.last += 1;
        let message = Message { entry: self.last, from, post, content: content.to_owned() };
        self.entries.insert(self.last, message);
        self.unread.insert(self.last);
        let gone = self.last - kept;
        self.entries.retain(|entry, _| *entry > gone);
        self.unread.retain(|entry| *entry > gone);
        self.last
    }
}

impl Feeds {
    /// Feeds without followers and posts.
    pub fn new(limits: FeedLimits) -> Self {
        let (inboxes, authors, under_way, turns, requests) = Default::default();
        Self { limits, inboxes, authors, under_way, turns, requests, now: 0 }
    }

    /// Judges the calls of one batch, or one call, one after another. Returns the rows of each. If one of them raises, all
    /// fail.
    pub fn apply(&mut self, commands: &[FeedCommand]) -> Result<Vec<Vec<String>>, Fault> {
        let mut next = self.clone();
        next.now += 1;
        let answers = commands.iter().map(|command| next.judge(command)).collect::<Result<_, _>>()?;
        *self = next;
        Ok(answers)
    }

    fn judge(&mut self, command: &FeedCommand) -> Result<Vec<String>, Fault> {
        command.check()?;
        let one = |text: &str| Ok(vec![text.to_owned()]);
        match command {
            FeedCommand::Follow { user, followee, backfill } => one(self.follow(*user, *followee, *backfill)),
            FeedCommand::Unfollow { user, followee } => one(self.unfollow(*user, *followee)),
            FeedCommand::Mute { user, followee, muted } => one(self.mute(*user, *followee, *muted)),
            FeedCommand::Post { request, .. } | FeedCommand::Push { request, .. } => {
                let known = request.and_then(|id| self.requests.get(&id));
                let number = match known {
                    Some((before, number)) if before.canonical() == command.canonical() => *number,
                    Some(_) => return Err(Fault::RequestReused),
                    None => self.write(command),
                };
                if let Some(id) = request {
                    self.requests.insert(*id, (command.clone(), number));
                }
                one(&format!("{number} ok"))
            }
            FeedCommand::Consume { user, max, sort } => Ok(self.read(*user, *max, *sort, true)),
            FeedCommand::Peek { user, max, sort } => Ok(self.read(*user, *max, *sort, false)),
            FeedCommand::Unread { user } => {
                // The number includes posts that the user would fetch now.
                let mut next = self.clone();
                next.pull(*user);
                one(&next.inboxes.get(user).map_or(0, |inbox| inbox.unread.len()).to_string())
            }
            FeedCommand::MarkReadUpTo { user, entry } => {
                self.pull(*user);
                let Some(inbox) = self.inboxes.get_mut(user) else { return one("0") };
                let before = inbox.unread.len();
                inbox.unread.retain(|unread| unread > entry);
                one(&(before - inbox.unread.len()).to_string())
            }
            FeedCommand::Past { user, before, max } => Ok(self.past(*user, *before, *max)),
            FeedCommand::FanOut { most } => one(&self.fan_out(*most).to_string()),
        }
    }

    fn write(&mut self, command: &FeedCommand) -> i64 {
        match command {
            FeedCommand::Push { user, from, content, .. } => {
                self.inboxes.entry(*user).or_default().add(*from, None, content, self.limits.kept)
            }
            FeedCommand::Post { author, content, .. } => self.post(*author, content),
            other => unreachable!("{other} writes no message"),
        }
    }

    fn follow(&mut self, user: i64, followee: i64, backfill: i64) -> &'static str {
        if user == followee {
            return "self";
        }
        let author = self.authors.entry(followee).or_default();
        if author.followers.contains_key(&user) {
            return "already";
        }
        let last = author.last();
        author.followers.insert(user, (last, false));
        let inbox = self.inboxes.entry(user).or_default();
        if author.pulled_from.is_some() {
            inbox.pulls.insert(followee, last);
        }
        let from = (last - backfill).max(0);
        for post in from + 1..=last {
            inbox.add(followee, Some(post), &author.posts[post as usize - 1].1, self.limits.kept);
        }
        "followed"
    }

    fn unfollow(&mut self, user: i64, followee: i64) -> &'static str {
        if self.authors.get_mut(&followee).and_then(|author| author.followers.remove(&user)).is_none() {
            return "not_following";
        }
        self.pull(user);
        let inbox = self.inboxes.entry(user).or_default();
        inbox.pulls.remove(&followee);
        let is_his = |message: &Message| message.from == followee && message.post.is_some();
        let gone: Vec<i64> = inbox.entries.values().filter(|m| is_his(m)).map(|m| m.entry).collect();
        for entry in gone {
            inbox.entries.remove(&entry);
            inbox.unread.remove(&entry);
        }
        "unfollowed"
    }

    fn mute(&mut self, user: i64, followee: i64, muted: bool) -> &'static str {
        let Some(author) = self.authors.get_mut(&followee) else { return "not_following" };
        let last = author.last();
        let Some(entry) = author.followers.get_mut(&user) else { return "not_following" };
        let status = if muted { "muted" } else { "unmuted" };
        if entry.1 == muted {
            return status;
        }
        if !muted {
            entry.0 = last;
        }
        entry.1 = muted;
        let is_come_for = author.pulled_from.is_some();
        if is_come_for && muted {
            self.pull(user);
            self.inboxes.entry(user).or_default().pulls.remove(&followee);
        } else if is_come_for {
            self.inboxes.entry(user).or_default().pulls.entry(followee).or_insert(last);
        }
        status
    }

    fn post(&mut self, author: i64, content: &str) -> i64 {
        let waits = self.turns.iter().any(|(_, of)| *of == author);
        let entry = self.authors.entry(author).or_default();
        entry.posts.push((self.now, content.to_owned()));
        let post = entry.last();
        let followers = entry.followers.len();
        if entry.pulled_from.is_some() {
            return post;
        }
        if followers > self.limits.pull_above {
            entry.pulled_from = Some(post + 1);
        }
        if entry.pulled_from.is_some() || waits || followers > self.limits.inline {
            self.under_way.insert((author, post), i64::MIN);
            if !waits {
                self.turns.insert((self.now, author));
            }
        } else {
            let all: Vec<i64> = entry.followers.keys().copied().collect();
            self.bring(author, post, &all);
        }
        post
    }

    /// Brings a post to those of the given followers that are not muted and follow since before it.
    fn bring(&mut self, author: i64, post: i64, followers: &[i64]) -> usize {
        let from = &self.authors[&author];
        let content = &from.posts[post as usize - 1].1;
        let wanted = |user: &&i64| {
            let (since, muted) = from.followers[*user];
            since < post && !muted
        };
        let wanting: Vec<i64> = followers.iter().filter(wanted).copied().collect();
        for user in &wanting {
            let inbox = self.inboxes.entry(*user).or_default();
            if from.pulled_from == Some(post + 1) {
                inbox.pulls.entry(author).or_insert(0);
            }
            inbox.add(author, Some(post), content, self.limits.kept);
        }
        wanting.len()
    }

    fn fan_out(&mut self, most: usize) -> usize {
        while let Some(turn @ (_, author)) = self.turns.first().copied() {
            self.turns.remove(&turn);
            let brought = self.bring_next(author, most);
            if self.next_under_way(author).is_some() {
                self.now += 1;
                self.turns.insert((self.now, author));
            }
            if brought > 0 {
                return brought;
            }
        }
        0
    }

    /// The author's first post that is on its way, with the first follower that was not yet looked at.
    fn next_under_way(&self, author: i64) -> Option<(i64, i64)> {
        let mut posts = self.under_way.range((author, i64::MIN)..=(author, i64::MAX));
        posts.next().map(|((_, post), next_user)| (*post, *next_user))
    }

    /// Brings posts of this author until a follower has got one.
    fn bring_next(&mut self, author: i64, most: usize) -> usize {
        while let Some((post, next_user)) = self.next_under_way(author) {
            let followers = self.authors[&author].followers.range(next_user..);
            let looked: Vec<i64> = followers.map(|(user, _)| *user).take(most).collect();
            let brought = self.bring(author, post, &looked);
            match looked.last().and_then(|last| last.checked_add(1)) {
                Some(next_user) if looked.len() == most => {
                    self.under_way.insert((author, post), next_user);
                }
                _ => {
                    self.under_way.remove(&(author, post));
                }
            }
            if brought > 0 {
                return brought;
            }
        }
        0
    }

    /// Brings the posts that a reader fetches, in the order in which they were posted.
    fn pull(&mut self, user: i64) {
        let Some(inbox) = self.inboxes.get_mut(&user) else { return };
        let mut found = Vec::new();
        for (followee, pulled_to) in &mut inbox.pulls {
            let author = &self.authors[followee];
            let Some(pulled_from) = author.pulled_from else { continue };
            let after = (*pulled_to).max(pulled_from - 1).max(author.last() - self.limits.kept);
            for post in after + 1..=author.last() {
                let (at, content) = &author.posts[post as usize - 1];
                found.push((*at, *followee, post, content.clone()));
            }
            *pulled_to = author.last();
        }
        found.sort();
        for (_, author, post, content) in found {
            inbox.add(author, Some(post), &content, self.limits.kept);
        }
    }

    fn read(&mut self, user: i64, max: i64, sort: Sort, taking: bool) -> Vec<String> {
        self.pull(user);
        let Some(inbox) = self.inboxes.get_mut(&user) else { return Vec::new() };
        let mut unread: Vec<&Message> =
            inbox.unread.iter().filter_map(|entry| inbox.entries.get(entry)).collect();
        match sort {
            Sort::Oldest => {}
            Sort::Newest => unread.reverse(),
            Sort::Author => unread.sort_by_key(|message| (message.from, message.entry)),
        }
        unread.truncate(max as usize);
        let rows = unread.iter().map(ToString::to_string).collect();
        let taken: Vec<i64> = unread.iter().map(|message| message.entry).collect();
        if taking {
            for entry in taken {
                inbox.unread.remove(&entry);
            }
        }
        rows
    }

    fn past(&self, user: i64, before: Option<i64>, max: i64) -> Vec<String> {
        let Some(inbox) = self.inboxes.get(&user) else { return Vec::new() };
        let page = inbox.entries.range(..before.unwrap_or(i64::MAX)).rev().take(max as usize);
        page.map(|(entry, message)| {
            format!("{message} {}", if inbox.unread.contains(entry) { "f" } else { "t" })
        })
        .collect()
    }
}

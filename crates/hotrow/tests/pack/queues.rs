//! Queues against their model: random calls, alone and in batches, hours that pass and a ring that rotates; and faults
//! planted in the SQL, which must be noticed. A difference is shown with its seed, which `HOTROW_SEED` runs again.

use std::collections::HashMap;
use std::thread;

use hotrow_model::{NewOrder, QueueAnswer, QueueCommand, QueueTerms, Receipt};
use hotrow_testkit::line::Line;

use crate::planted::{Fault, missed, seeds};
use crate::private;
use crate::same_as_model::none_differs;
use crate::sql::{Clock, has_batch_function, literal};
use crate::workload::assert_calls_all;

const SEEDS: u64 = 40;
const STEPS: usize = 40;
const SEEDS_MAX: u64 = 300;
/// The number of hours for which a finished order must be known.
const RETENTION: i64 = 4;

/// A queue on a server, and the receipts that it has issued.
struct Stage<'a> {
    line: &'a mut Line,
    /// The schema that has the queue's tables.
    schema: &'static str,
    name: String,
    clock: Clock,
    receipts: HashMap<Receipt, String>,
}

impl Stage<'_> {
    fn create(&mut self, terms: &QueueTerms) {
        let QueueTerms { strict_groups, max_attempts, retry, dead_letter, .. } = terms;
        let order_by = if terms.by_created_at { "created_at" } else { "arrival" };
        let sql = format!(
            "select hotrow.create_queue('{}', 1, {strict_groups}, {max_attempts}, '{retry} hours', {dead_letter}, '{RETENTION} hours', '{order_by}')",
            self.name
        );
        assert_eq!(self.line.query(&sql).rows(), [[Some("created".to_owned())]]);
    }

    /// Moves all stored times of the queue into the past.
    fn pass(&mut self, hours: i64) {
        // In UTC, because Citus passes only immutable expressions to a node.
        let schema = self.schema;
        let updates = format!(
            "select format('update {schema}.%I t set %s from {schema}.queue q where q.number = t.queue and q.queue = %L',
                c.relname, string_agg(format('%1$I = (t.%1$I at time zone ''UTC'' - interval ''{hours} hours'') at time zone ''UTC''',
                    a.attname), ', '), '{}')
            from pg_class c join pg_attribute a on a.attrelid = c.oid and a.atttypid = 'timestamptz'::regtype
            where c.relnamespace = '{schema}'::regnamespace
                and c.relname in ('queue_head', 'queue_tail', 'queue_order', 'queue_lease', 'queue_dead') group by c.relname",
            self.name
        );
        let updates = self.line.query(&updates).rows();
        assert_eq!(updates.len(), 5);
        for update in updates {
            assert_eq!(self.line.query(update[0].as_deref().unwrap()).error(), None);
        }
        self.clock.at += hours;
        self.pass_for_the_ring(hours);
    }

    fn pass_for_the_ring(&mut self, hours: i64) {
        let sql = format!(
            "update {}.queue_ring set opened_at = (opened_at at time zone 'UTC' - interval '{hours} hours') at time zone 'UTC'",
            self.schema
        );
        assert_eq!(self.line.query(&sql).error(), None);
    }

    /// Rotates the ring, with at most `most` orders. Returns the status.
    fn move_ring(&mut self, most: usize) -> String {
        let rotate = if self.schema == "hotrow" {
            format!("select status from hotrow.rotate_queues({most})")
        } else {
            let schema = self.schema;
            format!(
                "select f.status from {schema}.gate g cross join lateral {schema}.rotate_queues({most}) f"
            )
        };
        let answer = self.line.query(&rotate);
        assert_eq!(answer.error(), None);
        answer.rows().remove(0).remove(0).unwrap()
    }

    /// The orders in a state, page by page, or an error in the pages.
    fn listed(&mut self, state: &str) -> Result<Vec<u64>, String> {
        let (mut orders, mut after) = (Vec::new(), 0);
        loop {
            let page = format!(
                "select id, right(order_id::text, 12)::int from hotrow.list_orders('{}', '{state}', {after}, 3)",
                self.name
            );
            let answer = self.line.query(&page);
            if let Some(error) = answer.error() {
                return Err(format!("{error:?}"));
            }
            let rows = answer.rows();
            if rows.is_empty() {
                return Ok(orders);
            }
            for row in rows {
                let [id, order] =
                    [0, 1].map(|column| row[column].as_deref().unwrap().parse::<i64>().unwrap());
                if id <= after {
                    return Err(format!("{id} is listed after {after}"));
                }
                after = id;
                orders.push(order.cast_unsigned());
            }
        }
    }

    /// The first difference between the model and the functions that list and count orders.
    fn wrong_listing(
        &mut self,
        model: &hotrow_model::Queue,
        is_known: impl Fn(u64) -> bool,
    ) -> Option<String> {
        let at = self.clock.at;
        for state in ["waiting", "delayed", "leased", "dead", "processed"] {
            let right = model.listed(state, at);
            let mut found = match self.listed(state) {
                Ok(found) => found,
                Err(wrong) => return Some(format!("{state}: {wrong}")),
            };
            let mut known = right.clone();
            if state == "processed" {
                found.retain(|order| is_known(*order) || !right.contains(order));
                known.retain(|order| is_known(*order));
            }
            if found != known {
                return Some(format!("{state}: {found:?}, the model: {known:?}"));
            }
            let ids = known.iter().map(|order| format!("'00000000-0000-0000-0000-{order:012}'"));
            let find = format!(
                "select count(*) from unnest(array[{}]::uuid[]) u (order_id)
                cross join lateral hotrow.find_order('{}', u.order_id) o where o.state = '{state}'",
                ids.collect::<Vec<_>>().join(","),
                self.name
            );
            if self.line.query(&find).rows() != [[Some(known.len().to_string())]] {
                return Some(format!("not all of {known:?} are found as {state}"));
            }
        }
        let (waiting, delayed) = (model.listed("waiting", at).len(), model.listed("delayed", at).len());
        let stats = format!("select depth, oldest is null from hotrow.queue_stats('{}')", self.name);
        let right =
            [(waiting + delayed).to_string(), if waiting == 0 { "t" } else { "f" }.to_owned()].map(Some);
        let found = self.line.query(&stats).rows();
        (found != [right.clone()]).then(|| format!("stats {found:?}, the model: {right:?}"))
    }

    /// The arguments of a function after the queue's name, as text.
    fn arguments(&self, command: &QueueCommand) -> Vec<Option<String>> {
        let hours = |time: i64| Some(format!("{time} hours"));
        let receipt = |receipt: &Receipt| Some(self.receipts[receipt].clone());
        match command {
            QueueCommand::Enqueue(NewOrder { order, group, created_at, not_before, priority }) => {
                let order = format!("00000000-0000-0000-0000-{order:012}");
                let time = |time: &Option<i64>| time.map(|time| self.clock.timestamp(time));
                let priority = (*priority != 0).then(|| priority.to_string());
                vec![Some(order), None, group.clone(), time(created_at), time(not_before), priority]
            }
            QueueCommand::Take { max, lease } => vec![Some(max.to_string()), lease.and_then(hours)],
            QueueCommand::Complete { receipt: of } | QueueCommand::Release { receipt: of } => {
                vec![receipt(of)]
            }
            QueueCommand::Fail { receipt: of, retry_in } => {
                vec![receipt(of), Some("no".to_owned()), retry_in.and_then(hours)]
            }
            QueueCommand::ExtendLease { receipt: of, lease } => vec![receipt(of), hours(*lease)],
            QueueCommand::Redrive { max } => vec![Some(max.to_string())],
            QueueCommand::Pause | QueueCommand::Resume => vec![],
        }
    }

    /// The server's answers in the model's format. Records the server's receipts beside the model's.
    fn answers(&mut self, commands: &[QueueCommand], right: &[QueueAnswer]) -> Vec<String> {
        let function = commands[0].function();
        let calls: Vec<_> = commands.iter().map(|command| self.arguments(command)).collect();
        let columns = match function {
            "take" => "{CALL}, right(order_id::text, 12)::int || ':' || attempt, receipt",
            "enqueue" => "id || ' ' || status",
            "redrive" | "pause" | "resume" => "*",
            _ => "outcome",
        };
        let alone = calls.len() == 1;
        let sql = if alone {
            let values: Vec<_> = calls[0].iter().map(|value| literal(value.as_deref())).collect();
            let columns = columns.replace("{CALL}", "1");
            format!(
                "select {columns} from hotrow.{function}({})",
                [vec![literal(Some(&self.name))], values].concat().join(", ")
            )
        } else {
            let array = |values: Vec<Option<&str>>| {
                let values: Vec<_> = values.into_iter().map(literal).collect();
                format!("array[{}]", values.join(", "))
            };
            let types: &[&str] = match function {
                "enqueue" => &["uuid", "jsonb", "text", "timestamptz", "timestamptz", "int"],
                "take" => &["int", "interval"],
                "fail" => &["bigint", "text", "interval"],
                "extend_lease" => &["bigint", "interval"],
                _ => &["bigint"],
            };
            let mut arguments = vec![array(vec![Some(self.name.as_str()); calls.len()])];
            for (place, kind) in types.iter().enumerate() {
                let values = calls.iter().map(|values| values[place].as_deref()).collect();
                arguments.push(format!("{}::{kind}[]", array(values)));
            }
            format!(
                "select {} from hotrow.{function}_batch({})",
                columns.replace("{CALL}", "call"),
                arguments.join(", ")
            )
        };
        let answer = self.line.query(&sql);
        if let Some(error) = answer.error() {
            return vec![format!("{error:?} for {sql}")];
        }
        let rows = answer.rows();
        if function != "take" {
            return rows.into_iter().map(|row| row[0].clone().unwrap_or_default()).collect();
        }
        let mut taken = vec![Vec::new(); calls.len()];
        for row in rows {
            let call: usize = row[0].as_deref().and_then(|call| call.parse().ok()).unwrap_or(1);
            if let QueueAnswer::Taken(orders) = &right[call - 1]
                && let Some((_, _, Some(receipt))) = orders.get(taken[call - 1].len())
                && let Some(issued) = &row[2]
            {
                self.receipts.insert(*receipt, issued.clone());
            }
            taken[call - 1].push(row[1].clone().unwrap_or_default());
        }
        taken.into_iter().map(|orders| orders.join(" ")).collect()
    }
}

/// Random calls on one queue, with few orders and groups, because calls should meet.
struct Workload {
    random: fastrand::Rng,
    by_created_at: bool,
    receipts: Vec<Receipt>,
    /// Orders that were done so long ago that the queue may have forgotten them.
    doubtful: Vec<u64>,
}

impl Workload {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let by_created_at = random.u8(0..4) == 0;
        Workload { random, by_created_at, receipts: Vec::new(), doubtful: Vec::new() }
    }

    /// Random settings for the queue.
    fn terms(&mut self) -> QueueTerms {
        QueueTerms {
            strict_groups: self.random.u8(0..4) > 0,
            by_created_at: self.by_created_at,
            max_attempts: self.random.i64(1..=4),
            retry: self.random.i64(0..=2),
            dead_letter: self.random.u8(0..4) > 0,
        }
    }

    /// Records the receipts in the answers.
    fn learn(&mut self, answers: &[QueueAnswer]) {
        for answer in answers {
            if let QueueAnswer::Taken(orders) = answer {
                self.receipts.extend(orders.iter().filter_map(|(_, _, receipt)| *receipt));
            }
        }
    }

    fn order(&mut self) -> u64 {
        loop {
            let order = self.random.u64(0..60 + self.doubtful.len() as u64);
            if !self.doubtful.contains(&order) {
                return order;
            }
        }
    }

    fn maybe(&mut self, one_in: u8, low: i64, high: i64) -> Option<i64> {
        (self.random.u8(0..one_in) == 0).then(|| self.random.i64(low..=high))
    }

    fn command(&mut self, at: i64) -> QueueCommand {
        let newest = self.receipts.len().saturating_sub(8);
        let receipt =
            self.receipts.get(self.random.usize(newest..self.receipts.len().max(newest + 1))).copied();
        match (self.random.u8(0..24), receipt) {
            (0..9, _) => QueueCommand::Enqueue(NewOrder {
                order: self.order(),
                group: (!self.by_created_at)
                    .then(|| self.maybe(2, 0, 2))
                    .flatten()
                    .map(|group| format!("g{group}")),
                created_at: if self.by_created_at { self.maybe(2, -9, 0) } else { None },
                not_before: self.maybe(6, -1, 3).map(|hours| at + hours),
                priority: self.maybe(6, -2, 2).unwrap_or_default(),
            }),
            (9..15, Some(receipt)) => QueueCommand::Complete { receipt },
            (15..17, Some(receipt)) => QueueCommand::Fail { receipt, retry_in: self.maybe(2, 0, 2) },
            (17, Some(receipt)) => QueueCommand::Release { receipt },
            (18, Some(receipt)) => QueueCommand::ExtendLease { receipt, lease: self.random.i64(1..=4) },
            (19, _) => QueueCommand::Redrive { max: self.random.usize(1..=3) },
            (20, _) if self.random.u8(0..3) == 0 => QueueCommand::Pause,
            (20..22, _) => QueueCommand::Resume,
            _ => {
                let lease = (self.random.u8(0..3) > 0).then(|| self.random.i64(1..=3));
                QueueCommand::Take { max: self.random.usize(1..=4), lease }
            }
        }
    }

    /// One call, or several of one function.
    fn next(&mut self, at: i64) -> Vec<QueueCommand> {
        let first = self.command(at);
        let kind = std::mem::discriminant(&first);
        let has_batch_function = has_batch_function(first.function());
        let mut commands = vec![first];
        if has_batch_function && self.random.bool() {
            let more = self.random.usize(1..=6);
            for _ in 0..500 {
                let command = self.command(at);
                if commands.len() <= more && std::mem::discriminant(&command) == kind {
                    commands.push(command);
                }
            }
        }
        commands
    }
}

/// The first difference between SQL and model, with all calls up to it.
fn difference(line: &mut Line, seed: u64) -> Option<String> {
    difference_in(line, "hotrow", seed)
}

/// The same for a pack that has its queues in this schema.
pub fn difference_in(line: &mut Line, schema: &'static str, seed: u64) -> Option<String> {
    let mut workload = Workload::new(seed);
    let terms = workload.terms();
    let mut stage = Stage {
        line,
        schema,
        name: format!("{seed:x}.queue"),
        clock: Clock::start(),
        receipts: HashMap::new(),
    };
    stage.create(&terms);
    let mut model = hotrow_model::Queue::new(terms.clone());
    let mut trace = format!("HOTROW_SEED={seed}\n{terms:?}\n");
    let (mut early, passing) = (false, [1, 3][workload.random.usize(0..2)]);
    for _ in 0..STEPS {
        if workload.random.u8(0..6) < passing {
            let hours = workload.random.i64(1..=3);
            // Creation times cannot be moved into the past, because they are stored as the order's place. Such orders
            // are forgotten early.
            if terms.by_created_at {
                stage.pass_for_the_ring(hours);
                early = true;
            } else {
                stage.pass(hours);
            }
            trace.push_str(&format!("pass {hours}\n"));
        }
        if workload.random.u8(0..6) < passing {
            let most = [1, 3, 10_000, 10_000][workload.random.usize(0..4)];
            trace.push_str(&format!("the ring ({most}): {}\n", stage.move_ring(most)));
        }
        let may_be_forgotten =
            |order: u64| model.done_at(order).is_some_and(|done| early || stage.clock.at - done >= RETENTION);
        workload.doubtful = model.listed("processed", stage.clock.at);
        workload.doubtful.retain(|order| may_be_forgotten(*order));
        if workload.random.u8(0..4) == 0
            && let doubtful = workload.doubtful.clone()
            && let Some(wrong) = stage.wrong_listing(&model, |order| !doubtful.contains(&order))
        {
            return Some(format!("{trace}  {wrong}"));
        }
        let commands = workload.next(stage.clock.at);
        let right = model.apply(&commands, stage.clock.at);
        let found = stage.answers(&commands, &right);
        let expected: Vec<_> = right.iter().map(ToString::to_string).collect();
        trace.push_str(&format!("{commands:?} -> {found:?}\n"));
        if found != expected {
            return Some(format!("{trace}  the model: {expected:?}"));
        }
        workload.learn(&right);
    }
    // Later seeds would otherwise move its orders, too.
    let dropped = stage.line.query(&format!("select hotrow.drop_queue('{}')", stage.name));
    assert_eq!(dropped.rows(), [[Some("dropped".to_owned())]]);
    None
}

#[test]
fn random_calls_call_every_function() {
    let mut workload = Workload::new(1);
    let mut model = hotrow_model::Queue::new(workload.terms());
    assert_calls_all(QueueCommand::FUNCTIONS, || {
        let commands = workload.next(0);
        workload.learn(&model.apply(&commands, 0));
        commands[0].function()
    });
}

#[test]
fn random_calls_get_the_models_answers() {
    let (_server, mut line) = private("queues");
    none_differs(SEEDS, |seed| difference(&mut line, seed));
}

static FAULTS: [Fault; 21] = [
    ("sort_in", "and r.rank >= tail.place as in_order", "as in_order"),
    ("rank_of", "- priority::bigint", "+ priority::bigint"),
    (
        "search_orders",
        "exists (select from hotrow.first_of_group(",
        "not exists (select from hotrow.first_of_group(",
    ),
    (
        "search_orders",
        "(partition by b.group_hash order by b.n) > 1",
        "(partition by b.group_hash order by b.n) > 2",
    ),
    ("search_orders", "and c.leaves -", "or c.leaves -"),
    ("catch_up", "if head.next_due <= head.at then", "if false then"),
    ("pass_main_line", "head.leases := head.leases + cardinality(leases);", ""),
    ("record_chunk", "head.leases := head.leases + cardinality(leases);", ""),
    ("end_leases", "(e.l).attempt >= q.max_attempts", "(e.l).attempt > q.max_attempts"),
    ("give_back", "l.open is null or get_bit(l.open, n.spot - l.first) = 1", "true"),
    ("first_of_group", "g.rank, g.id limit 1", "g.rank desc, g.id limit 1"),
    ("fail_or_release", "g.attempt - (action = 'release')::int", "g.attempt"),
    ("extend_lease_batch", "greatest(e.due, head.at + piece.extension)", "head.at + piece.extension"),
    ("rotate_queues", "previous := (ring.part + 3) % 4", "previous := (ring.part + 1) % 4"),
    ("orders_ahead", "(o.place, o.id) > (h.place, h.id)", "false"),
    ("orders_ahead", "o.place > h.side", "false"),
    ("move_orders", "from hotrow.queue_ready r", "from hotrow.queue_ready r where false"),
    ("move_orders", "from hotrow.queue_dead d", "from hotrow.queue_dead d where false"),
    ("waiting_orders", "greatest(h.side, after)", "after"),
    ("main_line_after", "found_id <= after", "found_id < after"),
    ("list_delayed", "and o.not_before > now_at", "and false"),
];

#[test]
#[ignore = "long: make test-all"]
fn every_fault_planted_in_queues_is_noticed() {
    let of = |label, from: usize, faults: &[Fault]| {
        let (_server, mut line) = private(label);
        missed(&mut line, faults, |line, index| {
            seeds(from + index, SEEDS_MAX).any(|seed| difference(line, seed).is_some())
        })
    };
    let (first, others) = FAULTS.split_at(FAULTS.len() / 2);
    // Half at a time, because this is the longest test at the end of its program, when the other processor has nothing to do.
    let missed = thread::scope(|scope| {
        let half = scope.spawn(|| of("queue-faults", 0, first));
        let missed = of("queue-faults-more", first.len(), others);
        [half.join().unwrap(), missed].concat()
    });
    assert_eq!(missed, [], "no run noticed these");
}

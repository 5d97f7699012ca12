//! Every bound of lanes. The unit is the last part of the name. Each comment says what is bounded and what happens beyond the
//! bound. The configuration can change some of these values. The others were measured.

/// Longest estimated wait in a lane, by the lane's current pace. A unit that would wait longer is refused immediately, before
/// it has waited in vain.
pub const QUEUE_WAIT_MS: u64 = 10_000;
/// Units that wait in one lane. The lane refuses one more.
pub const LANE_QUEUE_UNITS_MAX: usize = 10_000;
/// Bytes of the units that wait in one lane. The lane refuses a unit that exceeds them.
pub const LANE_QUEUE_BYTES_MAX: usize = 64 << 20;
/// Units in a lane above which units without a fixed lane prefer another lane.
pub const LANE_FULL_UNITS: usize = 64;
/// Run time of a statement in a lane, without its wait for a lock. After that it leaves the lane. If a batch
/// runs longer, its lane gets no new units and its waiting units move to other lanes.
pub const LANE_SLOW_MS: u64 = 100;
/// Units in one batch. More units wait for the next batch. A larger batch gains nothing: at 128 units the
/// commit is one percent of the batch's work.
pub const BATCH_UNITS_MAX: usize = 256;
/// Statements in one batch, or rows that they name. More statements wait for the next batch.
pub const BATCH_STATEMENTS_MAX: usize = 1_000;
/// Bytes of one batch. More units wait for the next batch.
pub const BATCH_BYTES_MAX: usize = 1 << 20;
/// Batches of one lane under way at one time. Other units wait.
pub const BATCHES_UNDER_WAY_MAX: usize = 2;
/// Waiting units that are enough for a second batch after the one under way, unless commits take long. While the server
/// commits the first batch, as many units as the first batch has are enough too. With fewer units, batches would become
/// smaller and smaller.
pub const SECOND_BATCH_UNITS_MIN: usize = 32;
/// Time of a commit from which a lane holds its next batch back for the clients that it has just answered, for at most
/// three quarters of that time. A shorter commit is hardly longer than the wait for the clients.
pub const HOLD_COMMIT_MS: u64 = 1;
/// Commits without a hold, after several holds in vain. A hold in vain then costs less than one percent.
pub const HOLD_SKIPS_MAX: u32 = 128;
/// Rows that the statements of a packed unit name by their keys. A unit that names more rows is passed through.
pub const UNIT_ROWS_MAX: usize = 100;
/// Connections that a unit can lose in lanes. After one more, it runs on a connection of its session.
pub const UNIT_LOSSES_MAX: u8 = 2;
/// Batches in which a unit succeeds and another unit fails or is blocked. After one more, the unit runs on a
/// connection of its session. Otherwise such neighbours could starve it.
pub const UNIT_RERUNS_MAX: u8 = 16;
/// Batches that lock their rows first, after a batch with units of several rows has met another transaction's
/// lock. After them the lane tries without locks. The number is large enough to make that trial almost free.
pub const LOCK_AHEAD_BATCHES: u32 = 10_000;
/// Keys of one table that outsiders block. If one more is blocked, all units of the table are parked.
pub const BLOCKED_KEYS_MAX: usize = 4;
/// Queues of transactions that meet on the same rows. Above this, what was learned about a statement with which
/// transactions begin is forgotten.
pub const ROW_QUEUES_MAX: usize = 1_000;
/// Calls of one pool that wait for a result. One more is refused.
pub const WAITING_CALLS_MAX: usize = 5_000;
/// Key spaces of waiting calls that the gateway remembers. With one more it forgets all, and calls that are
/// under way are retried once.
pub const WAITING_SPACES_MAX: usize = 1_000;
/// Entries of a list that debug builds check after each step. They do not check longer lists.
pub(crate) const CHECKED_MAX: usize = 64;

const _: () = {
    assert!(SECOND_BATCH_UNITS_MIN <= LANE_FULL_UNITS && LANE_FULL_UNITS <= LANE_QUEUE_UNITS_MAX);
    assert!(WAITING_CALLS_MAX < LANE_QUEUE_UNITS_MAX); // all calls can be woken at one time
    assert!(UNIT_ROWS_MAX <= BATCH_STATEMENTS_MAX && BATCH_UNITS_MAX <= BATCH_STATEMENTS_MAX);
};

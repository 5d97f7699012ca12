-- Queues whose recorded numbers differ from their orders: one sentence each. The newest rows of a shard's head and tail record
-- its numbers.
with ends as (
    select q.queue as name, q.number as queue, l.shard,
        (select h from hotrow.queue_head h where h.queue = l.queue and h.shard = l.shard order by h.seq desc limit 1) as h,
        (select t from hotrow.queue_tail t where t.queue = l.queue and t.shard = l.shard order by t.seq desc limit 1) as t
    from hotrow.queue q join hotrow.queue_lock l on l.queue = q.number and l.side = 'h'
), leases as (
    select l.queue, l.shard, sum(coalesce(bit_count(l.open), l.count)) filter (where l.taken_at is not null) as leased,
        sum(l.count) filter (where l.taken_at is null) as delayed,
        min(l.due) as first_due, max(l.lease) as last,
        -- Orders of strict groups, except those that wait for their first attempt.
        sum(o.orders) as grouped
    from hotrow.queue_lease l cross join lateral (
        select count(*) filter (where o.group_hash is not null and (l.open is null or get_bit(l.open, o.number) = 1)) as orders
        from (
            select o.group_hash, (row_number() over (order by o.place, o.id))::int - 1 as number
            from hotrow.queue_order o where (l.taken_at is not null or l.attempt > 0) and o.queue = l.queue and o.line = l.line
                and (o.place, o.id) >= (l.from_place, l.from_id) and (o.place, o.id) <= (l.to_place, l.to_id)) o) o
    group by l.queue, l.shard
), ready as (
    select r.queue, r.shard, r.generation, count(*) as orders, count(r.group_hash) as grouped
    from hotrow.queue_ready r group by r.queue, r.shard, r.generation
), members as (
    select g.queue, g.shard, g.generation, count(*) as orders from hotrow.queue_group g group by g.queue, g.shard, g.generation
), waiting as (
    -- Orders after the head, and orders of the side line that no take has sorted in.
    select e.queue, e.shard,
        (select count(*) from hotrow.queue_order o where o.queue = e.queue and o.line = e.shard * 2
            and (o.place, o.id) > ((e.h).place, (e.h).id)) as fresh,
        (select count(*) from hotrow.queue_order o where o.queue = e.queue and o.line = e.shard * 2 + 1
            and o.place > (e.h).side) as unseen
    from ends e
), found as (
    select e.*, coalesce(l.leased, 0) as leased, coalesce(l.delayed, 0) as delayed, l.first_due, l.last,
        coalesce(l.grouped, 0) as leased_grouped, w.fresh, w.unseen,
        (select coalesce(sum(r.grouped), 0) from ready r where r.queue = e.queue and r.shard = e.shard) as ready_grouped,
        (select coalesce(sum(r.orders), 0) from ready r where r.queue = e.queue and r.shard = e.shard) as ready,
        (select coalesce(sum(r.orders), 0) from ready r where r.queue = e.queue and r.shard = e.shard
            and r.generation = (e.h).ready_generation) as ready_now,
        (select coalesce(sum(g.orders), 0) from members g where g.queue = e.queue and g.shard = e.shard) as members,
        (select coalesce(sum(g.orders), 0) from members g where g.queue = e.queue and g.shard = e.shard
            and g.generation = (e.h).group_generation) as members_now,
        (select count(*) from hotrow.queue_dead d where d.queue = e.queue and d.shard = e.shard) as dead
    from ends e left join leases l on l.queue = e.queue and l.shard = e.shard
        join waiting w on w.queue = e.queue and w.shard = e.shard
), counted as (
    -- Group members whose turn has not come are in no line.
    select f.*, f.fresh + f.unseen + f.ready + f.delayed + f.members - f.ready_grouped - f.leased_grouped as waits from found f
)
select format('queue %s, shard %s: %s', f.name, f.shard, w.what)
from counted f cross join lateral (values
    ((f.h).in_flight <> f.leased, format('%s orders are in flight, and the recorded number is %s', f.leased, (f.h).in_flight)),
    ((f.h).dead <> f.dead, format('%s orders are dead, and the recorded number is %s', f.dead, (f.h).dead)),
    ((f.h).ready <> f.ready or (f.h).ready_left <> f.ready - f.ready_now,
        format('%s orders are ready, %s of them of the previous generation; the recorded numbers are %s and %s', f.ready, f.ready - f.ready_now,
            (f.h).ready, (f.h).ready_left)),
    ((f.h).grouped <> f.members or (f.h).group_left <> f.members - f.members_now,
        format('%s group members are open, %s of them of the previous generation; the recorded numbers are %s and %s', f.members,
            f.members - f.members_now, (f.h).grouped, (f.h).group_left)),
    ((f.t).sidelined - (f.h).sidelined <> f.unseen,
        format('%s orders of the side line wait to be sorted in, and the recorded number is %s', f.unseen, (f.t).sidelined - (f.h).sidelined)),
    ((f.t).enqueued - (f.h).processed - (f.h).dead - (f.h).in_flight <> f.waits,
        format('%s orders wait, and the recorded number is %s', f.waits,
            (f.t).enqueued - (f.h).processed - (f.h).dead - (f.h).in_flight)),
    (f.first_due < (f.h).next_due, format('a lease ends at %s, before the next check for ended leases (%s)', f.first_due, (f.h).next_due)),
    (f.last > (f.h).leases, format('lease %s was never granted', f.last))) w (wrong, what)
where w.wrong

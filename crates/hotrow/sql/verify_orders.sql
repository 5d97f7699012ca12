-- Orders that are in two states, in none, or out of their group's order: one sentence each.
with open as (
    select r.queue, r.shard, r.line, r.place, r.id, r.group_hash, 'ready' as state, true as turn
    from hotrow.queue_ready r
    union all
    select l.queue, l.shard, l.line, o.place, o.id, o.group_hash,
        case when l.taken_at is null then 'delayed' else 'leased' end, l.taken_at is not null or l.attempt > 0
    from hotrow.queue_lease l cross join lateral (
        select o.place, o.id, o.group_hash, (row_number() over (order by o.place, o.id))::int - 1 as number
        from hotrow.queue_order o where o.queue = l.queue and o.line = l.line
            and (o.place, o.id) >= (l.from_place, l.from_id) and (o.place, o.id) <= (l.to_place, l.to_id)) o
    where l.open is null or get_bit(l.open, o.number) = 1
    union all
    select d.queue, d.shard, d.line, d.place, d.id, null, 'dead', false from hotrow.queue_dead d
), named as (
    select q.queue as name, q.strict_groups, o.* from open o join hotrow.queue q on q.number = o.queue
)
select format('queue %s: order %s is %s', n.name, n.id, string_agg(n.state, ' and ' order by n.state))
from named n group by n.name, n.queue, n.id having count(*) > 1
union all
select format('queue %s: order %s is %s and processed', n.name, n.id, n.state)
from named n join hotrow.processed_order p on p.queue = n.queue and p.id = n.id
union all
select format('queue %s: order %s is %s, and its row is missing', n.name, n.id, n.state)
from named n left join hotrow.queue_order o on o.queue = n.queue and o.line = n.line and o.place = n.place and o.id = n.id
where o.id is null
union all
select format('queue %s: a lease of %s orders covers %s', q.queue, l.count, o.orders)
from hotrow.queue_lease l join hotrow.queue q on q.number = l.queue cross join lateral (
    select count(*) as orders from hotrow.queue_order o where o.queue = l.queue and o.line = l.line
        and (o.place, o.id) >= (l.from_place, l.from_id) and (o.place, o.id) <= (l.to_place, l.to_id)) o
where l.count <> o.orders
union all
select format('queue %s: orders %s of one strict group can be taken at the same time', n.name, string_agg(n.id::text, ', ' order by n.id))
from named n where n.strict_groups and n.turn and n.group_hash is not null
group by n.name, n.queue, n.shard, n.group_hash having count(*) > 1
union all
select format('queue %s: order %s can be taken and is not a member of its group', n.name, n.id)
from named n where n.strict_groups and n.turn and n.group_hash is not null and not exists (
    select from hotrow.queue_group g where g.queue = n.queue and g.shard = n.shard and g.group_hash = n.group_hash and g.id = n.id)

-- What the group role may call: the pack's commands. Runs each time, with :role replaced by its quoted name. Rules,
-- settings and history stay with the owner.

grant usage on schema hotrow to :role;
grant execute on function
    hotrow.create_counter(text, text, bigint, bigint),
    hotrow.increment(text, bigint, uuid),
    hotrow.increment_batch(text[], bigint[], uuid[]),
    hotrow.drain(text, uuid),
    hotrow.drain_batch(text[], uuid[]),
    hotrow.counter(text),
    hotrow.create_sale(text, bigint, bigint, timestamptz, timestamptz, interval),
    hotrow.reserve(text, text, bigint, uuid, boolean),
    hotrow.reserve_batch(text[], text[], bigint[], uuid[], boolean[]),
    hotrow.reserve_all(text[], bigint[], text, uuid),
    hotrow.confirm(uuid),
    hotrow.confirm_batch(uuid[]),
    hotrow.cancel(uuid),
    hotrow.cancel_batch(uuid[]),
    hotrow.extend(uuid, interval),
    hotrow.extend_batch(uuid[], interval[]),
    hotrow.restock(text, bigint, uuid),
    hotrow.sale(text),
    hotrow.expire_holds(int)
to :role;

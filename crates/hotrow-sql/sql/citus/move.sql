-- Moves counters, sales, queues and feeds that existed before the distribution into the shards. Runs in the transaction that lets
-- calls go there.
--
-- All tables are locked first, so no call is in the middle of its work. Citus commits the shards and this node in two phases:
-- all rows have moved, or none. The rows also stay here, as they were when calls were switched over. A call that began before
-- and has waited for the locks runs its old text after them. If it writes, a trigger refuses it (close.sql). If it only reads,
-- its answer is that of the moment of the move, which is between its beginning and its end.
do $$
declare
    -- The tables, each with the name or the user that decides its rows' shard. A row of a queue without a name is an order of a dropped
    -- queue, which no call finds.
    tables text[] := array[
        'counter', 'r.counter', 'ledger', 'r.counter', 'log_entry', 'r.counter', 'snapshot', 'r.counter',
        'sale', 'r.item', 'sale_due', 'r.item', 'buyer', 'r.item',
        'queue', 'r.queue', 'queue_lock', null, 'queue_tail', null, 'queue_head', null, 'queue_order', null,
        'processed_order', null, 'queue_lease', null, 'queue_ready', null, 'queue_group', null, 'queue_dead', null,
        'inbox', 'r.user_id', 'reader', 'r.user_id', 'inbox_entry', 'r.user_id', 'author', 'r.author', 'post', 'r.author',
        'follow', 'r.author', 'fan_out', 'r.author', 'fan_out_left', 'r.author', 'fan_out_turn', 'r.author'];
    -- A request without a reservation is the record of an answer. A call with its ID for the same name finds it there. If the
    -- record does not show the name, every shard gets it. The record of a reserve_all for items of several shards is not
    -- moved: such a call is refused now, whether or not its ID is known.
    request constant text := $request$
        where case
            -- Their arguments begin with the user: message_arguments.
            when r.command in ('push', 'post') then hotrow.shard_of(split_part(r.arguments, ' ', 1)::bigint) = %1$s
            when r.item is not null then hotrow.shard_of(r.item) = %1$s
            when r.command = 'increment' then hotrow.shard_of(substr(r.arguments, strpos(r.arguments, ' ') + 1)) = %1$s
            when r.command = 'drain' then hotrow.shard_of(r.arguments) = %1$s
            when r.reservation_ids is not null then %1$s = all (
                select hotrow.shard_of(i.item) from hotrow.request i where i.request_id = any (r.reservation_ids))
            else true
        end
    $request$;
    setting hotrow.setting;
    ring hotrow.queue_ring;
    part record;
    shard int;
    source text;
    columns text;
    expressions text;
    has_rows boolean;
    moved bigint;
    present bigint;
    pulled bigint;
    readers bigint[];
    ranked text;
begin
    if (select d.in_use from hotrow.distribution d) then
        return;
    end if;
    for i in 1 .. cardinality(tables) by 2 loop
        execute format('lock table hotrow.%I in access exclusive mode', tables[i]);
    end loop;
    lock table hotrow.request, hotrow.setting, hotrow.history_part, hotrow.queue_ring, hotrow.pull, hotrow.ranking
        in access exclusive mode;
    -- In shards, no reader fetches posts, because it would need other shards. What is on its way is brought first: to all
    -- followers the last post that tells them to fetch, and then to those that fetch the posts that they have not fetched. No
    -- call holds a lock now, so no follower is left out.
    for pulled in select a.author from hotrow.author a where a.pulled_from is not null loop
        while hotrow.bring_next(pulled, 10000) > 0 loop
        end loop;
        delete from hotrow.fan_out_turn t where t.author = pulled;
    end loop;
    for readers in
        select array_agg(u.user_id) from (
            select l.user_id, (row_number() over (order by l.user_id) - 1) / 1000 as part from hotrow.pull l group by l.user_id) u
        group by u.part
    loop
        perform hotrow.lock_readers(readers);
    end loop;
    tables := tables || array['request', 'request'];
    select s.* into setting from hotrow.setting s;
    select r.* into ring from hotrow.queue_ring r;
    -- The rows keep their parts of the rings, so the rings of all shards go on where this one is.
    foreach shard in array hotrow.shards() loop
        execute format('update hotrow_shard_%s.setting set history_part = %s, history_whole = %L', shard, setting.history_part,
            setting.history_whole);
        for part in select p.* from hotrow.history_part p loop
            execute format('update hotrow_shard_%s.history_part set opened_at = %L, closed_at = %L where part = %s', shard,
                part.opened_at, part.closed_at, part.part);
        end loop;
        execute format('update hotrow_shard_%s.queue_ring set last_queue = %s, part = %s, opened_at = %L, last_lease = %s', shard,
            ring.last_queue, ring.part, ring.opened_at, ring.last_lease);
    end loop;
    for i in 1 .. cardinality(tables) by 2 loop
        execute format('select exists (select from hotrow.%I)', tables[i]) into has_rows;
        continue when not has_rows;
        select string_agg(quote_ident(a.attname), ', ' order by a.attnum),
            string_agg(case format('%s.%s', tables[i], a.attname)
                -- Inboxes of shards have copies of posts.
                when 'inbox_entry.at' then 'coalesce(r.at, p.at)'
                when 'inbox_entry.content' then 'coalesce(r.content, p.content)'
                when 'author.pulled_from' then 'null'
                when 'reader.pulls' then 'false'
                else 'r.' || quote_ident(a.attname) end, ', ' order by a.attnum)
        into columns, expressions from pg_attribute a
        where a.attrelid = to_regclass('hotrow.' || tables[i]) and a.attnum > 0 and not a.attisdropped and a.attgenerated = '';
        moved := 0;
        foreach shard in array hotrow.shards() loop
            source := case tables[i + 1]
                when 'request' then format(request, shard)
                else format('where hotrow.shard_of(%s) = %s', coalesce(tables[i + 1],
                    '(select q.queue from hotrow.queue q where q.number = r.queue)'), shard)
            end;
            if tables[i] = 'inbox_entry' then
                source := 'left join hotrow.post p on r.post_id is not null and p.author = r.from_user and p.post_id = r.post_id '
                    || source;
            end if;
            execute format('insert into hotrow_shard_%s.%I (%s) select %s from hotrow.%2$I r %5$s', shard, tables[i], columns,
                expressions, source);
            get diagnostics present = row_count;
            moved := moved + present;
        end loop;
        if tables[i + 1] like 'r.%' then
            execute format('select count(*) from hotrow.%I', tables[i]) into present;
            if moved <> present then
                raise exception using errcode = 'XX000',
                    message = format('%s of %s rows of hotrow.%s have a shard', moved, present, tables[i]),
                    hint = 'Nothing was changed. Report this as an error of hotrow.';
            end if;
        end if;
    end loop;
    for ranked in select r.ranking from hotrow.ranking r order by r.ranking loop
        perform hotrow.share_ranking(ranked);
    end loop;
end
$$;

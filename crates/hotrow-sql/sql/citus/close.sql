-- Ends the use of the coordinator's own tables. A call that began before the distribution and writes after it is refused: no
-- row is written where no call would find it.

create or replace function hotrow.refuse_late_call() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception using errcode = '55000',
        message = 'the hotrow schema was distributed while this call waited, and the call was not executed',
        hint = 'Repeat the call. It then goes to its shard.';
end
$$;

do $$
declare
    name text;
begin
    foreach name in array array['counter', 'ledger', 'log_entry', 'snapshot', 'sale', 'sale_due', 'buyer', 'queue', 'queue_lock',
        'queue_tail', 'queue_head', 'queue_order', 'processed_order', 'queue_lease', 'queue_ready', 'queue_group', 'queue_dead',
        'inbox', 'reader', 'inbox_entry', 'author', 'post', 'follow', 'pull', 'fan_out', 'fan_out_left', 'fan_out_turn']
    loop
        execute format('create or replace trigger rows_are_in_shards before insert or update or delete on hotrow.%I'
            ' for each statement execute function hotrow.refuse_late_call()', name);
    end loop;
    -- Old records are deleted.
    create or replace trigger rows_are_in_shards before insert or update on hotrow.request
        for each row execute function hotrow.refuse_late_call();
    update hotrow.distribution set in_use = true where not in_use;
end
$$;

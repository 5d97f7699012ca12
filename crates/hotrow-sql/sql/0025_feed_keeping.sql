-- What feeds forget by age: entries of inboxes and posts. Length is kept by those who write.

-- Where the next sweep goes on.
create table hotrow.feed_sweep (
    one boolean primary key default true check (one),
    next_user bigint not null default -9223372036854775808,
    next_author bigint not null default -9223372036854775808
);
insert into hotrow.feed_sweep default values;

-- Forgets what is older than the inboxes' age, in the next few inboxes and of the next few authors; past the last of them
-- it begins again. Says how many entries and posts went. Call it as often as all of them are to be seen within that age.
create function hotrow.trim_feeds(most int default 1000, out entries bigint, out posts bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_column
declare
    sweep hotrow.feed_sweep;
    old timestamptz := clock_timestamp() - (select s.inbox_age from hotrow.setting s where s.one);
    users bigint[];
    authors bigint[];
    locked record;
    settled record;
    upto bigint;
    gone bigint;
begin
    if most is null then
        perform hotrow.null_argument('most');
    elsif most not between 1 and 10000 then
        perform hotrow.bad_argument(format('most is %s', most), 'Look at 1 to 10000 inboxes at a time.');
    end if;
    entries := 0;
    -- Two at once would look at the same ones.
    select s.* into sweep from hotrow.feed_sweep s where s.one for update;
    users := array(select i.user_id from hotrow.inbox i where i.user_id >= sweep.next_user order by i.user_id limit most);
    authors := array(select a.author from hotrow.author a where a.author >= sweep.next_author order by a.author limit most);
    if users <> '{}' then
        locked := hotrow.lock_readers(users);
        for i in 1 .. cardinality(users) loop
            -- Up to the newest of those that are too old: what came later with an older time goes with them.
            -- A post that is gone was old.
            upto := (
                select max(e.number) from hotrow.inbox_entry e
                where e.user_id = users[i] and coalesce(e.at, (
                    select p.at from hotrow.post p where p.author = e.from_user and p.post_id = e.post_id), '-infinity') < old);
            continue when upto is null;
            delete from hotrow.inbox_entry e where e.user_id = users[i] and e.number <= upto;
            get diagnostics gone = row_count;
            entries := entries + gone;
            if upto > locked.read_to[i] then
                settled := hotrow.advance(upto, locked.taken[i]);
                update hotrow.reader r set read_to = settled.read_to, taken = settled.taken where r.user_id = users[i];
            end if;
        end loop;
    end if;
    delete from hotrow.post p using unnest(authors) u (author)
    where p.author = any (array[u.author]) and p.at < old
        and not exists (select from hotrow.fan_out f where f.author = any (array[p.author]) and f.post_id <= p.post_id);
    get diagnostics posts = row_count;
    update hotrow.feed_sweep s
    set next_user = case when cardinality(users) < most then -9223372036854775808 else users[most] + 1 end,
        next_author = case when cardinality(authors) < most then -9223372036854775808 else authors[most] + 1 end
    where s.one;
end
$$;

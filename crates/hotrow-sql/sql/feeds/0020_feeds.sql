-- Feeds: their tables and settings. Other files write and read them.

alter table hotrow.setting
    -- A post reaches its followers in the transaction that posts it if there are at most this many of them.
    add feed_inline int not null {{one}}default 1000 check (feed_inline >= 0){{many}}default 0 check (feed_inline = 0){{end}},
    -- If an author has more followers than this, the posts are merged in when the followers read.
    add feed_pull_above bigint not null {{one}}default 10000 check (feed_pull_above >= 0){{many}}default 9223372036854775807
        check (feed_pull_above = 9223372036854775807){{end}},
    -- How many entries an inbox keeps, read or not, and for how long.
    add inbox_length bigint not null default 1000 check (inbox_length between 64 and 100000),
    add inbox_age interval not null default '90 days' check (inbox_age > '0');

-- Gives an inbox's entries their numbers. Only writers lock it.
create table hotrow.inbox (
    user_id bigint primary key,
    -- The newest entry's number.
    last bigint not null
){{one}} partition by hash (user_id){{end}};

-- The read state of an inbox. Only readers lock it, so readers and writers never wait for each other. Without a row, nothing
-- has been read.
create table hotrow.reader (
    user_id bigint primary key,
    -- Every entry up to this one is consumed.
    read_to bigint not null default 0,
    -- The consumed entries after that one.
    taken int8multirange not null default '{}',
    -- True if posts of some authors are merged in when this user reads: see hotrow.pull.
    pulls boolean not null default false
){{one}} partition by hash (user_id){{end}};

create table hotrow.inbox_entry (
    user_id bigint not null,
    number bigint not null,
    from_user bigint not null,
    -- The post that the entry refers to, whose time and content are stored only once; NULL if they are in this row.
    post_id bigint,
    at timestamptz,
    content text,
    primary key (user_id, number)
){{one}} partition by hash (user_id){{end}};

create table hotrow.author (
    author bigint primary key,
    -- The newest post's number.
    last_post bigint not null default 0,
    -- The posts up to this one are forgotten.
    forgotten_to bigint not null default 0,
    followers bigint not null default 0,
    -- Followers fetch the posts from this one on when they read; NULL if all posts are brought to them. The post before this
    -- one is the last that is brought, and each follower that gets it also gets a row of hotrow.pull.
    pulled_from bigint
){{one}} partition by hash (author){{end}};

create table hotrow.post (
    author bigint not null,
    post_id bigint not null,
    at timestamptz not null,
    content text not null,
    primary key (author, post_id)
){{one}} partition by hash (author){{end}};

create table hotrow.follow (
    author bigint not null,
    user_id bigint not null,
    -- Posts after this one go to the follower.
    since_post bigint not null,
    muted boolean not null default false,
    primary key (author, user_id)
){{one}} partition by hash (author){{end}};

-- The authors whose posts a reader fetches, each with the last post that was merged into the inbox. Written under the reader's
-- lock.
create table hotrow.pull (
    user_id bigint not null,
    author bigint not null,
    pulled_to bigint not null,
    primary key (user_id, author)
){{one}} partition by hash (user_id){{end}};

-- Posts that have not reached all followers, each with the first follower that fan-out has not yet looked at.
create table hotrow.fan_out (
    author bigint not null,
    post_id bigint not null,
    next_user bigint not null default -9223372036854775808,
    primary key (author, post_id)
);

-- Followers whose inboxes were locked when a post was brought. They get it later, and no newer post of the author before it.
create table hotrow.fan_out_left (
    author bigint not null,
    user_id bigint not null,
    post_id bigint not null,
    primary key (author, user_id, post_id)
);

-- The authors of all these posts, each with the time of its last turn: the author that has waited longest is next. Rows are
-- inserted, updated and deleted under the author's lock.
create table hotrow.fan_out_turn (
    author bigint primary key,
    at timestamptz not null
);
create index fan_out_turn_at on hotrow.fan_out_turn (at, author);

-- Orders of unread messages besides arrival and author: for each ranking, the function that was copied for it.
create table hotrow.ranking (
    ranking text collate "C" primary key,
    function text not null
);

{{one}}
-- Partitions by user and author. All tables have the same number of partitions, which is chosen when the pack is installed and
-- does not change.
do $$
declare
    chosen text := coalesce(nullif(current_setting('hotrow.feed_partitions', true), ''), '8');
    -- Some servers are built without it.
    lz4 boolean := (
        select 'lz4' = any (s.enumvals) from pg_catalog.pg_settings s where s.name = 'default_toast_compression');
    part record;
begin
    if chosen !~ '^[0-9]{1,4}$' or chosen::int not between 1 and 1024 then
        perform hotrow.bad_argument(format('hotrow.feed_partitions is %L', chosen), 'Set it to a number from 1 to 1024.');
    end if;
    for part in
        select t.name, t.fillfactor, n from (values ('inbox', 50), ('reader', 50), ('inbox_entry', 100), ('author', 50), ('post', 100),
            ('follow', 90), ('pull', 50)) t (name, fillfactor), generate_series(0, chosen::int - 1) n
    loop
        execute format('create table hotrow.%1$s_%2$s partition of hotrow.%1$s for values with (modulus %3$s, remainder %2$s)'
            ' with (fillfactor = %4$s)', part.name, part.n, chosen, part.fillfactor);
        if part.name in ('inbox_entry', 'post') then
            -- Compressed if that helps, and stored in the row itself if it fits a page: 2 KB of text are one row instead of
            -- three.
            execute format('alter table hotrow.%s_%s alter content set storage main', part.name, part.n);
            -- This compression method costs far less, above all for text that does not become smaller.
            if lz4 then
                execute format('alter table hotrow.%s_%s alter content set compression lz4', part.name, part.n);
            end if;
        end if;
    end loop;
end
$$;
{{many}}
-- How a shard stores feeds. Its tables have no partitions, because the shards themselves divide the users.
alter table hotrow.inbox set (fillfactor = 50);
alter table hotrow.reader set (fillfactor = 50);
alter table hotrow.author set (fillfactor = 50);
alter table hotrow.follow set (fillfactor = 90);
alter table hotrow.inbox_entry alter content set storage main;
alter table hotrow.post alter content set storage main;
do $$
begin
    -- Some servers are built without it.
    if exists (select from pg_catalog.pg_settings s where s.name = 'default_toast_compression' and 'lz4' = any (s.enumvals)) then
        alter table hotrow.inbox_entry alter content set compression lz4;
        alter table hotrow.post alter content set compression lz4;
    end if;
end
$$;
{{end}}

-- Sessions of clients that run a statement, without the doctor's own.
select id, db, coalesce(state, ''), left(info, 4096), char_length(info) > 4096 from information_schema.processlist
    where command in ('Query', 'Execute') and id <> connection_id() limit 5000

-- A digest of a node's functions of a distributed pack: those of the shards, and those that find the shard of a call. It is the same on every node.
select coalesce(md5(string_agg(f.text, E'\n' order by f.text collate "C")), '')
from (
    select concat_ws(' ', n.nspname, p.proname, p.pronargs, p.provolatile, p.prosecdef, p.proconfig, p.prosrc) as text
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname ~ '^hotrow_shard_[0-9]+$'
        or n.nspname = 'hotrow' and p.proname in ('shard_of', 'shards', 'enter_shard', 'shard_of_reservation', 'check_one_shard',
            'on_shards', 'distribution_of', 'check_coordinator', 'increment', 'increment_batch', 'reserve', 'reserve_batch',
            'confirm', 'enqueue', 'enqueue_batch', 'take', 'complete', 'push', 'push_batch', 'consume', 'consume_batch',
            'post', 'post_batch', 'follow_batch', 'unfollow_batch', 'fan_out', 'shards_of', 'end_following', 'deliver',
            'take_turn', 'bring_posts')) f

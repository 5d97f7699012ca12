-- Before a run: nobody follows anybody, nothing was ever sent, and Hotrow's inboxes keep all that a run can send, so that it
-- can be counted.
truncate hotrow_bench.feed, hotrow_bench.follower, hotrow.inbox, hotrow.reader, hotrow.inbox_entry, hotrow.author, hotrow.post,
    hotrow.follow, hotrow.pull, hotrow.fan_out, hotrow.fan_out_left, hotrow.fan_out_turn;
update hotrow.setting set inbox_length = 100000;

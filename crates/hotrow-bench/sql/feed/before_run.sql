-- Before a run: there are no followers and no messages, and Hotrow's inboxes keep all messages of a run, so that they can be
-- counted.
truncate hotrow_bench.feed, hotrow_bench.follower, hotrow.inbox, hotrow.reader, hotrow.inbox_entry, hotrow.author, hotrow.post,
    hotrow.follow, hotrow.pull, hotrow.fan_out, hotrow.fan_out_left, hotrow.fan_out_turn;
update hotrow.setting set inbox_length = 100000;

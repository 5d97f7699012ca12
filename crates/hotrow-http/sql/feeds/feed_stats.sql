-- Reads the backlog of the feeds.
select posts_queued, waiting_since, followers_left from hotrow.feed_stats()

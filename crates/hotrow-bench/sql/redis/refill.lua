-- Before a run: nothing is reserved, and there is as much stock as for the SQL techniques.
redis.call('flushall')
redis.call('set', 'remaining', '1000000000')
return redis.status_reply('refilled')

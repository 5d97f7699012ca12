-- Before a run: there are no reservations, and the stock is the same as for the SQL techniques.
redis.call('flushall')
redis.call('set', 'remaining', '1000000000')
return redis.status_reply('refilled')

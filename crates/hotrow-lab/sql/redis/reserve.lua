-- One reservation, as in the SQL techniques: a request ID that counts once, a limit per buyer, a record of the reservation.
local buyer, request = ARGV[1], ARGV[2]
if redis.call('hexists', 'reservations', request) == 1 then
    return redis.status_reply('reserved')
end
if tonumber(redis.call('get', 'remaining')) < 1 then
    return redis.status_reply('sold_out')
end
if tonumber(redis.call('hget', 'taken', buyer) or '0') >= 1000 then
    return redis.status_reply('limit_reached')
end
redis.call('decr', 'remaining')
redis.call('hincrby', 'taken', buyer, 1)
redis.call('hset', 'reservations', request, buyer)
return redis.status_reply('reserved')

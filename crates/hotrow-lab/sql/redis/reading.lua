-- The reserved quantity, and the number of records that violate an invariant (stock, reservations and buyers must agree).
local sold = 1000000000 - tonumber(redis.call('get', 'remaining'))
local broken = math.abs(sold - redis.call('hlen', 'reservations'))
local taken = 0
for _, count in ipairs(redis.call('hvals', 'taken')) do
    taken = taken + tonumber(count)
    if tonumber(count) > 1000 then
        broken = broken + 1
    end
end
return {sold, broken + math.abs(sold - taken)}

-- Writes the sums of decided attempts and the next epoch. It does so only for the epoch that was closed before this
-- statement's snapshot, because another recount may have run while this statement waits for the row.
update payments.merchant_day d
set epoch = d.epoch + 1, attempts = s.attempts, declined = s.declined, authorized = s.authorized,
    captured = s.captured, refunded = s.refunded
from (
    select count(*) as attempts,
        count(*) filter (where state <> 'succeeded') as declined,
        coalesce(sum(amount) filter (where state = 'succeeded' and kind in ('authorize', 'purchase')), 0) as authorized,
        coalesce(sum(amount) filter (where state = 'succeeded' and kind in ('capture', 'purchase')), 0) as captured,
        coalesce(sum(amount) filter (where state = 'succeeded' and kind = 'refund'), 0) as refunded
    from payments.attempt
    where merchant = $1 and settled_on = $2 and currency = $3
) s
where d.merchant = $1 and d.day = $2 and d.currency = $3 and d.epoch = $4

-- The hot row. Adds nothing if the totals were recounted after the epoch was read.
update payments.merchant_day set attempts = attempts + 1, declined = declined + $5, authorized = authorized + $6,
    captured = captured + $7, refunded = refunded + $8
where merchant = $1 and day = $2 and currency = $3 and epoch = $4

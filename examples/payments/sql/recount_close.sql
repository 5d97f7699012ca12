-- Closes a day's totals, so that they can be recounted. An addition is no compare-and-set of its own: who died between
-- deciding an attempt and adding it leaves nobody who knows whether it was added. So whoever decides an attempt asks for
-- the epoch before, and adds only if it is still the same. A recount moves the epoch on, then sums up what is decided:
-- what was decided before that is in the sum and can't be added again; what is decided later and finds another epoch
-- is left with its `due_at`, for the next recount.
update payments.merchant_day set epoch = epoch + 1
where merchant = $1 and day = $2 and currency = $3 and epoch = $4

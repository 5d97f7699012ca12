-- Closes a day's totals for a recount. An addition is not a compare-and-set. If a program crashes between deciding an
-- attempt and adding it, no other program can tell whether it was added. A program therefore reads the epoch before it
-- decides an attempt, and adds the attempt only if the epoch is still the same. A recount increments the epoch and then
-- computes the sums of decided attempts. An attempt decided before that is in the sums and cannot be added again. An
-- attempt decided later that finds another epoch keeps its `due_at`, for the next recount.
update payments.merchant_day set epoch = epoch + 1
where merchant = $1 and day = $2 and currency = $3 and epoch = $4

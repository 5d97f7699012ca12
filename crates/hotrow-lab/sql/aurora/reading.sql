-- The payments that the shared row has counted, and the rows that contradict them.
select m.payments,
    abs(m.payments - (select count(*) from aurora.payment where state = 'paid'))
    + abs(m.payments - (select count(*) from aurora.payment))
    + abs(m.amount - (select coalesce(sum(amount), 0) from aurora.payment))
    + abs(m.payments - (select count(*) from aurora.request))
    + abs(m.payments - (select count(*) from aurora.attempt where state = 'succeeded' and reference = payment))
    + abs(m.payments - (select count(*) from aurora.transition where n = 1 and state = 'created'))
    + abs(m.payments - (select count(*) from aurora.transition where n = 2 and state = 'paid'))
    + abs(m.payments - (select count(*) from aurora.outbox where event = 'paid'))
from aurora.merchant m
where m.id = 1
